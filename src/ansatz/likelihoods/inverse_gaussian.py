"""The inverse Gaussian distribution: positive outcomes with a heavy right tail."""

import math
from typing import Any

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.distribution import LogMeanDistribution, bisect
from ansatz.likelihoods.likelihood import (
    Dispersed,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI
from ansatz.likelihoods.special.logarithms import continued, safe_log, soft_cap, soft_clamp
from ansatz.likelihoods.special.normal import (
    log_inverse_gaussian_cdf,
    log_inverse_gaussian_survival,
    log_tails,
)
from ansatz.likelihoods.special.roots import positive_quantile
from ansatz.likelihoods.special.tensors import elementwise, wide


class InverseGaussianDistribution(LogMeanDistribution):
    """Inverse Gaussian with mean mu and variance phi mu^3; the textbooks' lambda is 1 / phi.

    Args:
        log_mean: the logarithm of the mean, any shape.
        dispersion: phi, positive, the same shape, in the unit of 1 / y.

    Example:
        >>> import torch
        >>> d = InverseGaussianDistribution(torch.zeros(1), torch.ones(1))
        >>> d.log_survival(torch.tensor([1000.0]))
        tensor([-509.5910])
    """

    lower = 0.0

    @property
    def variance(self) -> Tensor:
        """phi mu^3."""
        return self.dispersion * self.mean**3

    @property
    def mode(self) -> Tensor:
        """mu (sqrt(1 + k^2) - k) with k = 3 phi mu / 2."""
        k = 1.5 * self.dispersion * self.mean
        return self.mean / ((1 + k * k).sqrt() + k)

    @property
    def entropy(self) -> Tensor:
        """(log(2 pi e phi mu^3) - 3 e^x E1(x)) / 2 with x = 2 / (phi mu), E1 the integral."""
        x = 2 * (-self._c).exp()
        rest = self.dispersion.log() + 3 * self.log_mean
        return HALF_LOG_2PI + 0.5 + 0.5 * rest - 1.5 * _ScaledIntegral.apply(x)

    @property
    def _c(self) -> Tensor:
        """log(phi mu), twice the logarithm of the coefficient of variation."""
        return self.log_mean + self.dispersion.log()

    def _d(self, y: Tensor) -> Tensor:
        """log(y / mu)."""
        return safe_log(y) - self.log_mean

    def log_prob(self, y: Tensor) -> Tensor:
        """-(y - mu)^2 / (2 phi mu^2 y) - log(2 pi phi y^3)/2; -inf for y <= 0.

        With d = log(y / mu) the first term is 2 sinh(d/2)^2 / (phi mu), beyond e^63 along a
        tangent.
        """
        gap = _scaled_gap(self._d(y), self._c)
        value = -0.5 * (gap + self.dispersion.log()) - HALF_LOG_2PI - 1.5 * safe_log(y)
        return continued(value, y, -math.inf, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails, twice differentiable."""
        return continued(log_inverse_gaussian_cdf(self._d(y), self._c), y, -math.inf, 0.0)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails, twice differentiable."""
        return continued(log_inverse_gaussian_survival(self._d(y), self._c), y, 0.0, -math.inf)

    def _solve(self, q: Tensor) -> Tensor:
        """Newton's method in log y on the log of the nearer tail; bisection where it fails."""
        c, log_mean, level = torch.broadcast_tensors(*wide(self._c, self.log_mean, q))
        inside = (level > 0) & (level < 1)
        level = torch.where(inside, level, 0.5)
        # Phi(a) = q with a = 2 sinh(d/2) / sqrt(phi mu): the first term of the cdf alone.
        guess = 2 * torch.asinh(torch.special.ndtri(level) * (c / 2).exp() / 2)
        d, lost = positive_quantile(
            lambda d, low: torch.where(low, *log_tails(d, c)),
            lambda d: -0.5 * (_scaled_gap(d, c) + c + d) - HALF_LOG_2PI,
            level,
            1 - level,
            guess,
        )
        y = (d + log_mean).exp()
        if lost.any():
            distribution = InverseGaussianDistribution(log_mean[lost], (c - log_mean)[lost].exp())
            rest = bisect(distribution, level[lost])
            y = y.masked_scatter(lost, rest)
        y = torch.where(inside, y, math.nan).to(q)
        return torch.where(q == 0, 0.0, torch.where(q == 1, math.inf, y))

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Independent draws (Michael, Schucany and Haas 1976)."""
        mean = self.mean.expand(size)
        noise, u = (
            draw(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
            for draw in (torch.randn, torch.rand)
        )
        k = self._c.exp() * noise**2 / 2
        root = 1 / (1 + k + (2 * k + k * k).sqrt())  # the other root is its reciprocal
        smaller = u * (1 + root) <= 1
        y = mean * torch.where(smaller, root, 1 / root)
        return y.clamp(min=torch.finfo(y.dtype).tiny)


def _scaled_gap(d: Tensor, c: Tensor) -> Tensor:
    """4 sinh(d/2)^2 e^-c without overflow: beyond e^63 along a tangent."""
    c = -soft_cap(-c, 60.0)
    near = d.abs() < 1
    inner, outer = torch.where(near, d, 0.0), torch.where(near, 1.0, d).abs()
    close = 4 * torch.sinh(inner / 2) ** 2 * (-c).exp()
    far = soft_cap(outer + 2 * torch.log1p(-(-outer).exp()) - c, 65.0).exp()
    return torch.where(near, close, far)


class _ScaledIntegral(torch.autograd.Function):
    """e^x E1(x), the scaled exponential integral, whose derivative is itself less 1/x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        # U(1, 1, x) overflows in exp1's own factor: beyond 50 by the series sum (-1)^k k! / x^(k+1)
        u = 1 / x.clamp(min=50.0)
        series = torch.zeros_like(u)
        for k in range(20, 0, -1):
            series = k * u * (1 - series)
        near = x.clamp(max=50.0)
        value = elementwise(special.exp1, near) * near.exp()
        return torch.where(x > 50, u * (1 - series), value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * (_ScaledIntegral.apply(x) - 1 / x)


class InverseGaussian(Dispersed):
    r"""Positive outcomes whose variance grows as the cube of their mean: first-passage times.

    .. math:: -\log p(y) = \frac{(y - \mu)^2}{2\phi\mu^2 y} + \frac12\log(2\pi\phi y^3)

    with :math:`\log\mu` = raw[0] and the dispersion :math:`\phi` = unit * softplus(raw[1]) + floor,
    so that the variance is :math:`\phi\mu^3`. The link is the logarithm, which keeps every mean
    positive; the canonical one would be :math:`1/\mu^2`. The unit is the maximum-likelihood
    :math:`\phi` of the constant model; the floor is (sd floor)^2 / mean^3 with the normal
    distribution's sd floor, at most half the unit. raw[0] beyond +-50 grows logarithmically.

    As :math:`\mu \to \infty` the distribution tends to Levy's, which has no mean, and the gradient
    fades as :math:`1/(\phi\mu)`: a mean that is far too large comes back slowly.

    Args:
        dispersion: phi ``"predicted"`` from x, ``"constant"`` as in glm, or known.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, positive.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import InverseGaussian
        >>> InverseGaussian(dispersion=1.0).loss(torch.zeros(1, 1), torch.ones(1))
        tensor([0.9189])

    References:
        Chhikara and Folks (1989), The Inverse Gaussian Distribution.
        McCullagh and Nelder (1989), Generalized Linear Models, table 2.1.
    """

    name = "inverse_gaussian"
    support = "positive"
    link_name = "log"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        dtype, y, weight = y.dtype, y.double(), weight.double()
        _, floor = unit_and_floor(y, weight)
        mean, unit = weighted_mean(y, weight), _dispersion(y, weight)
        floor = floor**2 / mean**3
        unit = torch.where(unit > 0, unit, torch.maximum(2 * floor, 1e-6 / mean))
        self.dispersion.observe(unit.to(dtype), torch.minimum(floor, unit / 2).to(dtype))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Log mean and maximum-likelihood phi, both closed; the scale is sd / mean, at most 1."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        phi = _dispersion(y.double(), weight.double()).to(y.dtype)
        return self.dispersion.append(mean.log(), scale, phi)

    def distribution(self, raw: Tensor) -> InverseGaussianDistribution:
        """Inverse Gaussian with mean exp(raw[0])."""
        return InverseGaussianDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """(y - mu)^2 / (mu^2 y)."""
        require_same_shape(self.name, raw, y)
        eta = soft_clamp(raw[..., 0])
        return _scaled_gap(y.log() - eta, eta)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu^3."""
        return mu**3


def _dispersion(y: Tensor, weight: Tensor) -> Tensor:
    """The maximum-likelihood phi of the constant model: the mean of (y - m)^2 / (m^2 y).

    It equals mean(1/y) - 1/m, without its cancellation; 0 where all y are equal.
    """
    mean = weighted_mean(y, weight)
    phi = weighted_mean((y / mean - 1) ** 2 / y, weight)
    return torch.where(phi * mean > 1e-18, phi, 0.0)
