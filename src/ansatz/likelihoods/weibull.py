"""The Weibull distribution: lifetimes whose hazard rises or falls as a power of time."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, expand_weight, weighted_mean, weighted_sd
from ansatz.likelihoods.log_normal import relative_unit_and_floor
from ansatz.likelihoods.special.gamma import log_gammainc
from ansatz.likelihoods.special.logarithms import (
    continued,
    log_complement,
    safe_log,
    soft_cap,
    soft_clamp,
)
from ansatz.likelihoods.special.tensors import in_double, wide

_EULER = 0.5772156649015329


class WeibullDistribution(Distribution):
    """P(Y > y) = exp(-(y / scale)^(1 / sigma)): the shape is 1 / sigma.

    Args:
        log_scale: the logarithm of the scale, any shape; P(Y > scale) = 1 / e.
        sigma: 1 / shape, positive, the same shape; 1 is the exponential distribution.

    Example:
        >>> import torch
        >>> d = WeibullDistribution(torch.zeros(1), torch.tensor([0.5]))
        >>> d.log_survival(torch.tensor([3.0]))
        tensor([-9.])
    """

    lower = 0.0

    def __init__(self, log_scale: Tensor, sigma: Tensor) -> None:
        self.log_scale, self.sigma = torch.broadcast_tensors(log_scale, sigma)

    @property
    def mean(self) -> Tensor:
        """scale Gamma(1 + sigma), infinite where that exceeds the largest number."""
        return (self.log_scale + torch.lgamma(1 + self.sigma)).exp()

    @property
    def variance(self) -> Tensor:
        """scale^2 (Gamma(1 + 2 sigma) - Gamma(1 + sigma)^2)."""
        log_scale, sigma = wide(self.log_scale, self.sigma)
        first, second = torch.lgamma(1 + sigma), torch.lgamma(1 + 2 * sigma)
        # Gamma(1 + 2s) / Gamma(1 + s)^2 - 1, whose logarithm is small for a small sigma.
        value = torch.expm1(second - 2 * first) * (2 * (log_scale + first)).exp()
        return value.to(self.sigma)

    @property
    def mode(self) -> Tensor:
        """scale (1 - sigma)^sigma, or 0 where sigma >= 1."""
        rest = (1 - self.sigma).clamp(min=0)
        return self.log_scale.exp() * rest**self.sigma

    @property
    def entropy(self) -> Tensor:
        """Euler's constant * (1 - sigma) + log(scale sigma) + 1."""
        return _EULER * (1 - self.sigma) + self.log_scale + self.sigma.log() + 1

    def _w(self, y: Tensor) -> Tensor:
        """w = log(y / scale) / sigma; beyond 60 it grows logarithmically."""
        return soft_cap((safe_log(y) - self.log_scale) / self.sigma, 60.0)

    def log_prob(self, y: Tensor) -> Tensor:
        """w - e^w - log sigma - log y with w = log(y / scale) / sigma; -inf for y <= 0.

        Beyond w = 60 the exponential continues along its tangent.
        """
        w = self._w(y)
        value = w - w.exp() - self.sigma.log() - safe_log(y)
        return continued(value, y, -math.inf, -math.inf)

    def cdf(self, y: Tensor) -> Tensor:
        """1 - exp(-e^w)."""
        return -torch.expm1(self.log_survival(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log(1 - exp(-e^w)), exact for the smallest y."""
        return continued(log_complement(self._w(y)), y, -math.inf, 0.0)

    def log_survival(self, y: Tensor) -> Tensor:
        """-e^w."""
        return continued(-self._w(y).exp(), y, 0.0, -math.inf)

    def icdf(self, q: Tensor) -> Tensor:
        """scale (-log(1 - q))^sigma."""
        return (self.log_scale + self.sigma * (-torch.log1p(-q)).log()).exp()

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """y (2 F(y) - 1) - 2 mean P(1 + sigma, e^w) + mean 2^-sigma.

        P is the regularised incomplete gamma function: E[Y; Y <= y] = mean P, and the smaller of
        two draws is Weibull with scale * 2^-sigma. In double precision, as its terms cancel.
        """
        share = log_gammainc(1 + self.sigma, self._w(y).exp()).exp()
        rest = 2**-self.sigma - 2 * continued(share, y, 0.0, 1.0)
        return y * (2 * self.cdf(y) - 1) + self.mean * rest

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        draw = self.sigma.new_empty(size).exponential_(generator=generator)
        tiny = torch.finfo(draw.dtype).tiny
        log_y = self.log_scale + self.sigma * draw.clamp(min=tiny).log()
        return log_y.exp().clamp(min=tiny)


class Weibull(Dispersed):
    r"""Positive lifetimes with hazard proportional to a power of time; an accelerated failure time.

    .. math:: S(y) = \exp\left(-(y/\lambda)^{1/\sigma}\right), \qquad
              -\log p(y) = e^w - w + \log\sigma + \log y, \quad w = \frac{\log y - \eta}{\sigma}

    with :math:`\eta = \log\lambda` = raw[0] and :math:`\sigma` = unit * softplus(raw[1]) + floor,
    the ``scale`` of R's survreg: the shape of the textbooks is :math:`1/\sigma`, and :math:`\sigma
    = 1` is the exponential distribution. A coefficient is the log of the factor by which times
    stretch; with constant :math:`\sigma`, minus it over :math:`\sigma` is a log hazard ratio. The
    unit is sd(log y); the floor is the normal distribution's sd floor over the mean of y, at most
    half the unit. raw[0] beyond +-50 grows logarithmically. Both tails are twice differentiable.

    ``predict`` gives the mean, :math:`\lambda\,\Gamma(1 + \sigma)`.

    Args:
        dispersion: sigma ``"predicted"`` from x, ``"constant"`` as in survreg, or known.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, positive.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Weibull
        >>> Weibull(dispersion=1.0).loss(torch.zeros(1, 1), torch.tensor([3.0]))
        tensor([3.])

    References:
        Kalbfleisch and Prentice (2002), The Statistical Analysis of Failure Time Data, chapter 2.
    """

    name = "weibull"
    support = "positive"
    link_name = "log"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of sigma."""
        self.dispersion.observe(*relative_unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood log scale and sigma, by Newton's method in log sigma."""
        unit, floor = self.dispersion.unit.double(), self.dispersion.floor.double()
        sigma = torch.maximum(_sigma(y, weight), floor + 1e-4 * unit)
        if self.dispersion.kind == "known":
            sigma = self.dispersion.known.double().expand_as(sigma)
        eta = _log_scale(y, weight, sigma).to(y.dtype)
        sd = weighted_sd(y.log(), weight)
        return self.dispersion.append(eta, torch.where(sd > 0, sd, 1.0), sigma.to(y.dtype))

    def distribution(self, raw: Tensor) -> WeibullDistribution:
        """Weibull with scale exp(raw[0])."""
        return WeibullDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))


def _centred(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log y less its mean, the log weights, and the mean; an unobserved row may hold nan."""
    y, weight = y.double(), expand_weight(weight, y).double()
    log_y = torch.where(weight > 0, y, 1.0).log()
    mean = weighted_mean(log_y, weight)
    return log_y - mean, (weight / weight.sum(0)).log(), mean


def _sigma(y: Tensor, weight: Tensor) -> Tensor:
    """The maximum-likelihood sigma of the constant model, 0 where all y are equal.

    k = 1 / sigma solves A(k) = 1 / k, A(k) being the mean of v = log y - mean(log y) under weights
    proportional to e^(kv). A rises from 0, so the root is unique.
    """
    v, log_weight, _ = _centred(y, weight)
    variance = (log_weight.exp() * v * v).sum(0)
    differs = variance > 1e-18
    k = torch.where(differs, 1.2825 / variance.clamp(min=1e-18).sqrt(), 1.0)  # pi / sqrt 6
    for _ in range(30):
        tilted = torch.softmax(k * v + log_weight, 0)
        mean = (tilted * v).sum(0)
        slope = (tilted * (v - mean) ** 2).sum(0) + 1 / k**2
        k = k * (-(mean - 1 / k) / (k * slope)).clamp(-1, 1).exp()
    return torch.where(differs, 1 / k, 0.0)


def _log_scale(y: Tensor, weight: Tensor, sigma: Tensor) -> Tensor:
    """The maximum-likelihood log scale: scale^(1/sigma) is the mean of y^(1/sigma)."""
    v, log_weight, mean = _centred(y, weight)
    return mean + sigma * torch.logsumexp(v / sigma + log_weight, 0)
