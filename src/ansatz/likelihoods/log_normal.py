"""The log-normal distribution: products of many small factors."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, unit_and_floor, weighted_mean, weighted_sd
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI
from ansatz.likelihoods.special.logarithms import continued, safe_log, soft_clamp
from ansatz.likelihoods.special.normal import log_ndtr
from ansatz.likelihoods.special.tensors import in_double


class LogNormalDistribution(Distribution):
    """exp(N(log_median, sigma^2)).

    Args:
        log_median: the mean of log y, any shape.
        sigma: the standard deviation of log y, positive, the same shape.

    Example:
        >>> import torch
        >>> d = LogNormalDistribution(torch.zeros(1), torch.ones(1))
        >>> d.median, d.mean
        (tensor([1.]), tensor([1.6487]))
    """

    lower = 0.0

    def __init__(self, log_median: Tensor, sigma: Tensor) -> None:
        self.log_median, self.sigma = torch.broadcast_tensors(log_median, sigma)

    @property
    def mean(self) -> Tensor:
        """exp(mu + sigma^2 / 2), infinite where that exceeds the largest number."""
        return (self.log_median + 0.5 * self.sigma**2).exp()

    @property
    def variance(self) -> Tensor:
        """(exp(sigma^2) - 1) mean^2, infinite where that exceeds the largest number."""
        square = self.sigma**2
        return torch.expm1(square) * (2 * self.log_median + square).exp()

    @property
    def mode(self) -> Tensor:
        """exp(mu - sigma^2)."""
        return (self.log_median - self.sigma**2).exp()

    @property
    def median(self) -> Tensor:
        """exp(mu)."""
        return self.log_median.exp()

    @property
    def entropy(self) -> Tensor:
        """mu + log sigma + log(2 pi e)/2."""
        return self.log_median + self.sigma.log() + HALF_LOG_2PI + 0.5

    def _z(self, y: Tensor) -> Tensor:
        """(log y - mu) / sigma."""
        return (safe_log(y) - self.log_median) / self.sigma

    def log_prob(self, y: Tensor) -> Tensor:
        """-z^2/2 - log sigma - log y - log(2 pi)/2, z = (log y - mu)/sigma; -inf for y <= 0."""
        value = -0.5 * self._z(y) ** 2 - self.sigma.log() - safe_log(y) - HALF_LOG_2PI
        return continued(value, y, -math.inf, -math.inf)

    def cdf(self, y: Tensor) -> Tensor:
        """Phi(z)."""
        # erfc, as torch's ndtr has only ten digits in the lower tail
        return continued(0.5 * torch.erfc(-self._z(y) / math.sqrt(2)), y, 0.0, 1.0)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log Phi(z), accurate in both tails."""
        return continued(log_ndtr(self._z(y)), y, -math.inf, 0.0)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log Phi(-z)."""
        return continued(log_ndtr(-self._z(y)), y, 0.0, -math.inf)

    def icdf(self, q: Tensor) -> Tensor:
        """exp(mu + sigma Phi^{-1}(q))."""
        return (self.log_median + self.sigma * torch.special.ndtri(q)).exp()

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """y (2 Phi(z) - 1) - 2 mean (Phi(z - sigma) + Phi(sigma / sqrt 2) - 1).

        (Baran and Lerch 2015.) In double precision, as its terms cancel.
        """
        ndtr = torch.special.ndtr
        below = continued(ndtr(self._z(y) - self.sigma), y, 0.0, 1.0)
        # Phi(a) + Phi(b) - 1 = Phi(a) - Phi(-b), which keeps the digits of a large sigma
        pair = below - ndtr(-self.sigma / math.sqrt(2))
        return y * (2 * self.cdf(y) - 1) - 2 * self.mean * pair

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        sd = self.sigma
        noise = torch.randn(size, generator=generator, dtype=sd.dtype, device=sd.device)
        return (self.log_median + self.sigma * noise).exp()


class LogNormal(Dispersed):
    r"""Positive outcomes whose logarithm is normal: an accelerated failure time.

    .. math:: -\log p(y) = \frac{(\log y - \mu)^2}{2\sigma^2} + \log\sigma + \log y
              + \frac12\log 2\pi

    with :math:`\mu` = raw[0], the mean of log y and the logarithm of the *median* of y, and
    :math:`\sigma` = unit * softplus(raw[1]) + floor, so that a coefficient is the log of the factor
    by which times stretch. The unit is sd(log y); the floor is the normal distribution's sd floor
    over the mean of y, at most half the unit. raw[0] beyond +-50 grows logarithmically.

    ``predict`` gives the mean, :math:`e^{\mu + \sigma^2/2}`, as for the other likelihoods. It
    exists for every :math:`\sigma`, but exceeds float32's largest number once :math:`\mu +
    \sigma^2/2 > 88`, and is infinite then; the median never is.

    Args:
        dispersion: sigma ``"predicted"`` from x, ``"constant"`` as in a linear model, or known.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, positive.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import LogNormal
        >>> LogNormal(dispersion=1.0).loss(torch.zeros(1, 1), torch.ones(1))
        tensor([0.9189])

    References:
        Kalbfleisch and Prentice (2002), The Statistical Analysis of Failure Time Data, chapter 2.
    """

    name = "log_normal"
    support = "positive"
    link_name = "log"

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of sigma."""
        self.dispersion.observe(*relative_unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of log y."""
        mean, sd = weighted_mean(y.log(), weight), weighted_sd(y.log(), weight)
        return self.dispersion.append(mean, torch.where(sd > 0, sd, 1.0), sd)

    def distribution(self, raw: Tensor) -> LogNormalDistribution:
        """Log-normal with median exp(raw[0])."""
        return LogNormalDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))


def relative_unit_and_floor(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """sd(log y), and the least sd of log y that the resolution of y > 0 supports.

    The floor is the sd floor of y over the mean of y, at most half the unit; where all y are equal
    the unit is 1e-3.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    _, floor = unit_and_floor(y, weight)
    floor, unit = floor / weighted_mean(y, weight), weighted_sd(y.log(), weight)
    # Rounding leaves a trace of a variance where all y are equal.
    unit = torch.where(unit > 1e-9, unit, torch.maximum(2 * floor, torch.full_like(unit, 1e-3)))
    return unit.to(dtype), torch.minimum(floor, unit / 2).to(dtype)
