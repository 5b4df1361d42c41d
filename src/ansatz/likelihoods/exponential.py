"""The exponential distribution: waiting times without memory."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape, weighted_mean, weighted_sd
from ansatz.likelihoods.special.logarithms import (
    continued,
    log_complement,
    safe_log,
    soft_cap,
    soft_clamp,
)
from ansatz.likelihoods.special.tensors import in_double
from ansatz.spec import TargetSpec


class ExponentialDistribution(Distribution):
    """Exponential with mean mu, held by its logarithm: the hazard is 1 / mu at every age.

    Args:
        log_mean: the logarithm of the mean, any shape.

    Example:
        >>> import torch
        >>> ExponentialDistribution(torch.zeros(1)).log_survival(torch.tensor([1000.0]))
        tensor([-1000.])
    """

    lower = 0.0

    def __init__(self, log_mean: Tensor) -> None:
        self.log_mean = log_mean

    @property
    def mean(self) -> Tensor:
        """mu."""
        return self.log_mean.exp()

    @property
    def variance(self) -> Tensor:
        """mu^2."""
        return self.mean**2

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.log_mean)

    @property
    def entropy(self) -> Tensor:
        """1 + log mu."""
        return 1 + self.log_mean

    def _log_ratio(self, y: Tensor) -> Tensor:
        return safe_log(y) - self.log_mean

    def _hazard(self, y: Tensor) -> Tensor:
        """y / mu, the cumulative hazard; 0 before 0, and beyond e^60 along a tangent."""
        d = self._log_ratio(y)
        far = d > 60
        near = torch.where(far | (y == math.inf), 0.0, y) * (-self.log_mean).exp()
        value = torch.where(far, soft_cap(torch.where(far, d, 60.0), 60.0).exp(), near)
        return continued(value, y, 0.0, math.inf)

    def log_prob(self, y: Tensor) -> Tensor:
        """-y / mu - log mu; beyond y / mu = e^60 along a tangent. A y < 0 has density 0."""
        return torch.where(y >= 0, -self._hazard(y) - self.log_mean, -math.inf)

    def cdf(self, y: Tensor) -> Tensor:
        """1 - e^(-y / mu)."""
        return -torch.expm1(-self._hazard(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log(1 - e^(-y / mu)), exact for the smallest y."""
        return continued(log_complement(soft_cap(self._log_ratio(y), 60.0)), y, -math.inf, 0.0)

    def log_survival(self, y: Tensor) -> Tensor:
        """-y / mu."""
        return -self._hazard(y)

    def icdf(self, q: Tensor) -> Tensor:
        """-mu log(1 - q)."""
        return -self.mean * torch.log1p(-q)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """y - 2 mu F(y) + mu / 2 for y >= 0, in double precision, as its terms cancel."""
        return y.abs() - 2 * self.mean * self.cdf(y) + self.mean / 2

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        draw = self.log_mean.new_empty(size).exponential_(generator=generator)
        return (draw * self.mean).clamp(min=torch.finfo(draw.dtype).tiny)


class Exponential(Likelihood):
    r"""Outcomes >= 0 whose standard deviation is their mean: gamma with dispersion 1.

    .. math:: -\log p(y) = \frac{y}{\mu} + \log\mu

    with :math:`\log\mu` = raw[0] (log link); the hazard :math:`1/\mu` does not depend on the time
    already waited. raw[0] beyond +-50 grows logarithmically, so that nothing overflows and
    gradients stay. There is nothing else to estimate; both tails are twice differentiable.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``, numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Exponential
        >>> Exponential().loss(torch.zeros(1, 1), torch.tensor([3.0]))
        tensor([3.])

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapters 8 and 13.
    """

    name = "exponential"
    support = "nonnegative"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """1: the log mean."""
        return 1

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the mean; its scale is the coefficient of variation, at most 1.

        Zeros alone have no finite maximum-likelihood log mean: they start from a mean of 1e-3.
        """
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        mean = torch.where(mean > 0, mean, 1e-3)
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        return mean.log().unsqueeze(-1), scale.unsqueeze(-1)

    def distribution(self, raw: Tensor) -> ExponentialDistribution:
        """Exponential with mean exp(raw)."""
        return ExponentialDistribution(soft_clamp(raw[..., 0]))

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """2 ((y - mu) / mu - log(y / mu)), infinite at y = 0."""
        require_same_shape(self.name, raw, y)
        d = soft_cap(y.log() - soft_clamp(raw[..., 0]), 60.0)
        return 2 * (torch.expm1(d) - d)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu^2."""
        return mu**2
