"""The gamma distribution: positive magnitudes."""

import math

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.distribution import LogMeanDistribution
from ansatz.likelihoods.likelihood import (
    Dispersed,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.gamma import (
    HALF_LOG_2PI,
    log_gamma_half,
    log_gammainc,
    log_gammaincc,
    log_minus_digamma,
    stirling,
)
from ansatz.likelihoods.special.logarithms import soft_cap, soft_clamp
from ansatz.likelihoods.special.tensors import elementwise, in_double, wide


class GammaDistribution(LogMeanDistribution):
    """Gamma with mean mu and variance phi mu^2: shape a = 1 / phi, rate a / mu.

    Args:
        log_mean: the logarithm of the mean, any shape.
        dispersion: phi, positive, the same shape.

    Example:
        >>> import torch
        >>> d = GammaDistribution(torch.zeros(1), torch.ones(1))  # the exponential distribution
        >>> d.log_survival(torch.tensor([1000.0]))
        tensor([-1000.])
    """

    lower = 0.0

    @property
    def shape(self) -> Tensor:
        """a = 1 / phi."""
        return 1 / self.dispersion

    @property
    def variance(self) -> Tensor:
        """phi mu^2."""
        return self.dispersion * self.mean**2

    @property
    def mode(self) -> Tensor:
        """mu (1 - phi), or 0 where phi > 1."""
        return self.mean * (1 - self.dispersion).clamp(min=0)

    @property
    def entropy(self) -> Tensor:
        """a + log(mu / a) + log Gamma(a) + (1 - a) digamma(a)."""
        (a,) = wide(self.shape)
        rest = a - a.log() + torch.lgamma(a) + (1 - a) * torch.digamma(a)
        return self.log_mean + rest.to(self.log_mean)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density, arranged so that a large shape cancels before rounding.

        With d = log(y / mu): -a (e^d - 1 - d) + log(a / 2 pi)/2 - S(a) - log y, S being Stirling's
        correction. Beyond d = 60, where the density is below exp(-a e^60), e^d continues along its
        tangent. A y <= 0 has density 0.
        """
        inside = (y > 0) & (y < math.inf)
        log_y = torch.where(inside, y, 1.0).log()
        d = soft_cap(log_y - self.log_mean, 60.0)
        a = self.shape
        norm = 0.5 * a.log() - HALF_LOG_2PI - stirling(a)
        return torch.where(inside, norm - a * (torch.expm1(d) - d) - log_y, -math.inf)

    def _x(self, y: Tensor) -> Tensor:
        """a y / mu, the argument of the incomplete gamma functions."""
        return self.shape * y.clamp(min=0) * (-self.log_mean).exp()

    def cdf(self, y: Tensor) -> Tensor:
        """P(a, a y / mu)."""
        if torch.is_grad_enabled():
            return self.log_cdf(y).exp()
        return elementwise(special.gammainc, self.shape, self._x(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """log P(a, a y / mu), differentiable in y, mu and phi."""
        return log_gammainc(self.shape, self._x(y))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log Q(a, a y / mu)."""
        return log_gammaincc(self.shape, self._x(y))

    def _solve(self, q: Tensor) -> Tensor:
        a, q = torch.broadcast_tensors(self.shape, q)
        # The upper half through the complement, where q has digits to give.
        high = q > 0.5
        value = torch.empty_like(q)
        value[~high] = elementwise(special.gammaincinv, a[~high], q[~high])
        value[high] = elementwise(special.gammainccinv, a[high], 1 - q[high])
        return value / a * self.mean

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """y (2 F_a - 1) - mu (2 F_{a+1} - 1) - mu B(a + 1/2, 1/2) / pi.

        F_a and F_{a+1} being the gamma cdfs of either shape at a y / mu (Scheuerer and Moeller
        2015, eq. 4). In double precision, as its terms cancel.
        """
        a, mu, x = self.shape, self.mean, self._x(y)
        first = y * (2 * log_gammainc(a, x).exp() - 1)
        second = mu * (2 * log_gammainc(a + 1, x).exp() - 1)
        # B(a + 1/2, 1/2) / pi = Gamma(a + 1/2) / (Gamma(a) a sqrt(pi))
        pair = mu * (log_gamma_half(a) - a.log()).exp() / math.sqrt(math.pi)
        return first - second - pair

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        a = self.shape.expand(size).contiguous()
        draw = torch._standard_gamma(a, generator=generator)
        return (draw / a * self.mean).clamp(min=torch.finfo(a.dtype).tiny)


class Gamma(Dispersed):
    r"""Positive outcomes whose standard deviation is proportional to their mean.

    .. math:: -\log p(y) = \frac1\phi \left(\frac{y}{\mu} - \log\frac{y}{\mu}\right)
              + \log\Gamma\left(\frac1\phi\right) + \frac{\log\phi}{\phi} + \log y

    with :math:`\log\mu` = raw[0] (log link) and the dispersion :math:`\phi` = unit *
    softplus(raw[1]) + floor, so that the variance is :math:`\phi\mu^2` and the linear model is the
    gamma GLM with log link. The unit is the maximum-likelihood :math:`\phi` of the constant model;
    the floor is (sd floor / mean of y)^2 with the normal distribution's sd floor, at most half the
    unit. raw[0] beyond +-50 grows logarithmically, so that nothing overflows and gradients stay.

    Args:
        dispersion: phi ``"predicted"`` from x, ``"constant"`` as in glm, or known (1: exponential).

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, positive.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Gamma
        >>> Gamma(dispersion=1.0).loss(torch.zeros(1, 1), torch.tensor([3.0]))
        tensor([3.])

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapter 8.
    """

    name = "gamma"
    support = "positive"
    link_name = "log"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        _, floor = unit_and_floor(y, weight)
        unit = _dispersion(y, weight)
        floor = (floor / weighted_mean(y, weight)) ** 2
        unit = torch.where(unit > 0, unit, torch.maximum(2 * floor, torch.full_like(unit, 1e-6)))
        self.dispersion.observe(unit, torch.minimum(floor, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Log mean and maximum-likelihood dispersion; the scale is the coefficient of variation."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        return self.dispersion.append(mean.log(), scale, _dispersion(y, weight))

    def distribution(self, raw: Tensor) -> GammaDistribution:
        """Gamma with mean exp(raw[0])."""
        return GammaDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """2 ((y - mu) / mu - log(y / mu))."""
        require_same_shape(self.name, raw, y)
        d = soft_cap(y.log() - soft_clamp(raw[..., 0]), 60.0)
        return 2 * (torch.expm1(d) - d)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu^2."""
        return mu**2


def _dispersion(y: Tensor, weight: Tensor) -> Tensor:
    """The maximum-likelihood phi of the constant model, 0 where all y are equal.

    a = 1 / phi solves log a - digamma(a) = log(mean y) - mean(log y) = s; Newton's method in log a
    from Minka's start converges in a handful of steps.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    mean = weighted_mean(y, weight)
    s = -weighted_mean((y / mean).log(), weight)
    s = torch.where(s > 1e-14, s, 0)  # rounding leaves a trace of it where all y are equal
    safe = torch.where(s > 0, s, 1.0)
    a = (3 - safe + ((safe - 3) ** 2 + 24 * safe).sqrt()) / (12 * safe)
    for _ in range(20):
        value = _log_minus_digamma(a) - safe
        slope = 1 - a * torch.special.polygamma(1, a)  # d / d log a
        a = a * (-value / slope).clamp(-2, 2).exp()
    return torch.where(s > 0, 1 / a, 0).to(dtype)


def _log_minus_digamma(a: Tensor) -> Tensor:
    series = log_minus_digamma(a.clamp(min=30.0))  # where the two nearly cancel
    return torch.where(a > 30, series, a.log() - torch.digamma(a))
