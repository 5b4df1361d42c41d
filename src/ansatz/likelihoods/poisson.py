"""The Poisson distribution: counts."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, log_gammainc, log_gammaincc, stirling
from ansatz.likelihoods.special.logarithms import soft_cap
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import in_double
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
        """Log probability, y log(rate) - rate - log y!, arranged so that large counts cancel.

        With d = log(rate) - log(y) it is -y (e^d - 1 - d) - log(2 pi y)/2 - S(y), S being
        Stirling's correction: at a count of 1e9 the plain terms are 2e10 each. A y that is not a
        count has probability 0.
        """
        count = (y >= 0) & (y == y.floor()) & (y < math.inf)
        positive = torch.where(count & (y > 0), y, 1.0)
        d = self.log_rate - positive.log()
        gap = positive * (torch.expm1(d) - d)
        value = -gap - HALF_LOG_2PI - 0.5 * positive.log() - stirling(positive)
        value = torch.where(y == 0, -self.log_rate.exp(), value)
        return torch.where(count, value, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """log Q(floor(y) + 1, rate), Q the upper incomplete gamma function."""
        k = y.floor()
        value = log_gammaincc(k.clamp(min=0) + 1, self.mean)
        return torch.where(k < 0, -math.inf, value)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails and differentiable in the rate."""
        k = y.floor()
        value = log_gammainc(k.clamp(min=0) + 1, self.mean)
        return torch.where(k < 0, 0.0, value)

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        # Cornish-Fisher's guess is within a few counts.
        rate, z = self.mean, torch.special.ndtri(q.clamp(1e-300, 1 - 1e-16))
        guess = rate + z * rate.sqrt() + (z * z - 1) / 6 - 0.5
        return count_search(self, q, guess.ceil())

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """(y - r)(2 F(y) - 1) + 2 r p(floor y) - r e^-2r (I0(2r) + I1(2r)), r the rate.

        (Wei and Held 2014.) In double precision, as its terms cancel.
        """
        r, f = self.mean, self.log_prob(y.floor()).exp()
        bessel = torch.special.i0e(2 * r) + torch.special.i1e(2 * r)
        return (y - r) * (2 * self.cdf(y) - 1) + 2 * r * f - r * bessel

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Beyond a rate of 1e12 from the normal limit, equal to 1e-6 sd."""
        rate = self.mean.expand(size)
        large = rate > 1e12
        counts = torch.poisson(torch.where(large, 1.0, rate), generator=generator)
        noise = torch.randn(rate.shape, generator=generator, dtype=rate.dtype, device=rate.device)
        return torch.where(large, (rate + rate.sqrt() * noise).round(), counts)


class Poisson(Likelihood):
    r"""Counts from 0 on whose variance equals their mean.

    .. math:: -\log p(y) = e^{\eta} - y \eta + \log y!

    with :math:`\eta` = raw[0], the logarithm of the mean (log link). Beyond :math:`\eta` = 50 the
    exponential continues along its tangent, so that no raw number overflows float32 and the
    gradient still points back.

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
    support = "counts"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """1: the log mean."""
        return 1

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the mean; its scale is the coefficient of variation, at most 1.

        Zeros alone have no finite maximum-likelihood log mean: half a count is added to them.
        """
        y = y.to(weight.dtype)
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        total = expand_weight(weight, y).sum(0)
        mean = torch.where(mean > 0, mean, 0.5 / (total + 1))
        scale = torch.where(sd > 0, (sd / mean).clamp(max=1), 1.0)
        return mean.log().unsqueeze(-1), scale.unsqueeze(-1)

    def distribution(self, raw: Tensor) -> PoissonDistribution:
        """Poisson with mean exp(raw)."""
        return PoissonDistribution(soft_cap(raw[..., 0]))

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """2 (y log(y / mu) - (y - mu))."""
        require_same_shape(self.name, raw, y)
        eta = soft_cap(raw[..., 0])
        positive = torch.where(y > 0, y, 1.0)
        d = eta - positive.log()
        return 2 * torch.where(y > 0, positive * (torch.expm1(d) - d), eta.exp())

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu."""
        return mu
