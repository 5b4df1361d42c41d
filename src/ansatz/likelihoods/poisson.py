"""The Poisson law: counts."""

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    refuse_where,
    require_same_shape,
    weighted_mean,
)
from ansatz.spec import TargetSpec


class PoissonDistribution(Distribution):
    """Counts with mean and variance ``rate``, held by its logarithm.

    Args:
        log_rate: the logarithm of the mean.

    Example:
        >>> import torch
        >>> PoissonDistribution(torch.tensor([0.0])).cdf(torch.tensor([0.0]))
        tensor([0.3679])
    """

    discrete = True
    lower = 0.0

    def __init__(self, log_rate: Tensor) -> None:
        self.log_rate = log_rate

    @property
    def mean(self) -> Tensor:
        """The rate."""
        return self.log_rate.exp()

    @property
    def variance(self) -> Tensor:
        """The rate."""
        return self.log_rate.exp()

    @property
    def mode(self) -> Tensor:
        """The largest whole number below the rate."""
        return (self.mean.ceil() - 1).clamp(min=0)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability: y log(rate) - rate - log y!."""
        return y * self.log_rate - self.log_rate.exp() - torch.lgamma(y + 1)

    def cdf(self, y: Tensor) -> Tensor:
        """Q(floor(y) + 1, rate), the regularised upper incomplete gamma function."""
        k = y.floor()
        inside = torch.special.gammaincc(k.clamp(min=0) + 1, self.mean)
        return torch.where(k < 0, torch.zeros_like(inside), inside)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws."""
        with torch.no_grad():
            return torch.poisson(self.mean.expand((*shape, *self.batch_shape)), generator=generator)


class Poisson(Likelihood):
    r"""Counts 0, 1, 2, ... whose variance equals their mean.

    .. math:: -\log p(y) = e^{\eta} - y \eta + \log y!

    with :math:`\eta` = raw[0], the logarithm of the mean (log link). raw is clamped to +-30 inside
    the exponential, beyond which float32 would overflow after a few steps.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> Poisson().loss(torch.zeros(1, 1), torch.zeros(1))
        tensor([1.])

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapter 6.
    """

    name = "poisson"

    def outputs(self, target: TargetSpec) -> int:
        """1: the log mean."""
        return 1

    def check(self, y: Tensor) -> None:
        """Whole numbers >= 0."""
        bad = ~(y.isfinite() & (y >= 0) & (y == y.floor()))
        advice = "For positive fractions use gamma; for signed values use normal."
        refuse_where(bad, y, "Poisson counts must be whole numbers >= 0", advice)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the mean; the scale of the log mean is 1."""
        mean = weighted_mean(y, weight).clamp(min=1e-3)
        return mean.log().unsqueeze(-1), torch.ones_like(mean).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

    def distribution(self, raw: Tensor) -> PoissonDistribution:
        """Poisson with mean exp(raw)."""
        return PoissonDistribution(raw[..., 0].clamp(-30, 30))
