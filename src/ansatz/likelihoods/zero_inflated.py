"""Zero-inflated laws: counts with more zeros than their law explains."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.elementwise import wide
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
)
from ansatz.likelihoods.log_link import soft_cap
from ansatz.likelihoods.poisson import Poisson, PoissonDistribution
from ansatz.likelihoods.support import refuse_outside
from ansatz.likelihoods.zero_truncated import positive_rate
from ansatz.spec import TargetSpec


class ZeroInflatedDistribution(Distribution):
    """0 with probability pi, else a count from another law, which may be 0 as well.

    Args:
        counts: the law of the counts, on 0, 1, 2, ...
        logits: the log odds of pi, of the law's batch shape.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import PoissonDistribution
        >>> law = ZeroInflatedDistribution(PoissonDistribution(torch.zeros(1)), torch.zeros(1))
        >>> law.mean, law.variance
        (tensor([0.5000]), tensor([0.7500]))
    """

    discrete = True
    lower = 0.0

    def __init__(self, counts: Distribution, logits: Tensor) -> None:
        self.counts, self.logits = counts, logits

    @property
    def inflation(self) -> Tensor:
        """The probability pi of a zero that is no count."""
        return torch.sigmoid(self.logits)

    @property
    def mean(self) -> Tensor:
        """(1 - pi) m, m the mean of the counts."""
        return torch.sigmoid(-self.logits) * self.counts.mean

    @property
    def variance(self) -> Tensor:
        """(1 - pi) (v + pi m^2), v the variance of the counts."""
        m = self.counts.mean
        return torch.sigmoid(-self.logits) * (self.counts.variance + self.inflation * m * m)

    @property
    def mode(self) -> Tensor:
        """0, or the mode of the counts where that is more probable."""
        top = self.counts.mode
        zero = self.log_prob(torch.zeros_like(top)) >= self.log_prob(top)
        return torch.where(zero, 0.0, top)

    def log_prob(self, y: Tensor) -> Tensor:
        """log(pi + (1 - pi) P(0)) at 0, beyond it log(1 - pi) + log P(y), P of the counts."""
        none = self.counts.log_prob(torch.zeros_like(y))
        # Where zero is the rule, from the share of positive counts, which is then the exact part.
        share = -torch.sigmoid(-self.logits) * torch.expm1(none)
        rule = share < 0.5
        zero = torch.where(
            rule,
            torch.log1p(-torch.where(rule, share, 0.0)),
            torch.logaddexp(logsigmoid(self.logits), logsigmoid(-self.logits) + none),
        )
        value = logsigmoid(-self.logits) + self.counts.log_prob(torch.where(y == 0, 1.0, y))
        return torch.where(y == 0, zero, value)

    def cdf(self, y: Tensor) -> Tensor:
        """pi + (1 - pi) F(y), F of the counts; differentiable in all parameters."""
        return self.log_cdf(y).exp()

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails."""
        inside = torch.where(y < 0, 0.0, y)
        survival = self.log_survival(inside)
        high = survival < -math.log(2)
        upper = torch.log1p(-torch.where(high, survival, -1.0).exp())
        part = logsigmoid(-self.logits) + self.counts.log_cdf(inside)
        lower = torch.logaddexp(logsigmoid(self.logits), part)
        return torch.where(y < 0, -math.inf, torch.where(high, upper, lower))

    def log_survival(self, y: Tensor) -> Tensor:
        """log(1 - pi) + log P(N > y), N a count; accurate in both tails."""
        inside = torch.where(y < 0, 0.0, y)
        value = logsigmoid(-self.logits) + self.counts.log_survival(inside)
        return torch.where(y < 0, 0.0, value)

    def _solve(self, q: Tensor) -> Tensor:
        level, logits = torch.broadcast_tensors(*wide(q, self.logits))
        if level.is_meta:
            return torch.empty_like(level, dtype=q.dtype)
        # P(N > y) = (1 - q) / (1 - pi), N a count; a level of exactly 1 would be infinite.
        inner = (1 - (1 - level) / torch.sigmoid(-logits)).clamp(0, 1 - 1e-16)
        y = self.counts.icdf(inner).clamp(min=0)
        # The cdf has the last word, so that rounding in the level cannot move the answer.
        y = torch.where(self.cdf(y) < level, y + 1, torch.where(self.cdf(y - 1) >= level, y - 1, y))
        y = torch.where(level >= 1, torch.inf, y.clamp(min=0))
        return torch.where((level >= 0) & (level <= 1), y, torch.nan).to(q)

    def crps(self, y: Tensor) -> Tensor:
        r"""Closed wherever the counts' own score C is.

        .. math:: \pi |y| + (1 - \pi)\, C(y) - \pi (1 - \pi)\, C(0)

        from :math:`E|Y - y| - \tfrac12 E|Y - Y'|`, whose second part for the counts is E N - C(0).
        """
        pi, rest = self.inflation, torch.sigmoid(-self.logits)
        zero = self.counts.crps(torch.zeros_like(y))
        return pi * y.abs() + rest * self.counts.crps(y) - pi * rest * zero

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws."""
        with torch.no_grad():
            counts = self.counts.sample(shape, generator)
            zero = torch.bernoulli(self.inflation.expand(counts.shape), generator=generator)
            return torch.where(zero > 0, 0.0, counts)


class ZeroInflatedPoisson(Likelihood):
    r"""Poisson counts among which some zeros have another cause.

    .. math:: P(0) = \pi + (1 - \pi) e^{-\mu}, \qquad
              P(y) = (1 - \pi) \frac{e^{-\mu} \mu^y}{y!} \quad (y \ge 1)

    with :math:`\log\mu` = raw[0], the log mean of the counts, and :math:`\pi = \sigma` (raw[1]),
    the share of zeros that are no counts. The mean of y is :math:`(1 - \pi)\mu`. As for the Poisson
    law, beyond raw[0] = 50 the exponential continues along its tangent.

    Shapes:
        - raw: ``(..., 2)``.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import ZeroInflatedPoisson
        >>> ZeroInflatedPoisson().loss(torch.tensor([[0.0, -50.0]]), torch.zeros(1))  # no inflation
        tensor([1.])

    References:
        Lambert (1992), Zero-inflated Poisson regression, with an application to defects in
        manufacturing. https://doi.org/10.2307/1269547
    """

    name = "zero_inflated_poisson"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """2: the log mean of the counts and the log odds of an extra zero."""
        return 2

    def check(self, y: Tensor) -> None:
        """Whole numbers >= 0."""
        _refuse_no_counts(y, self.name)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        r"""The maximum-likelihood constants, exactly.

        Where there are more zeros than :math:`e^{-\bar y}`, the law reproduces their share, and mu
        is the rate of a zero-truncated Poisson law with the positive counts' mean. Elsewhere pi = 0
        is best, whose log odds are infinite: pi is half a row then, and mu keeps the mean of y.
        """
        y = y.to(weight.dtype)
        poisson, scale = Poisson().start(y, weight)
        positive, mean = _positive_share(y, weight), weighted_mean(y, weight)
        excess = (mean > 0) & (1 - positive > (-mean).exp())
        mu = positive_rate((mean / torch.where(positive > 0, positive, 1.0)).double()).to(y.dtype)
        excess = excess & (mu > mean)  # rounding may leave nothing of a tiny excess
        half = 0.5 / (expand_weight(weight, y).sum(0) + 1)
        pi = torch.where(excess, 1 - mean / torch.where(excess, mu, 1.0), half)
        log_mu = torch.where(excess, mu.log(), poisson[..., 0] - torch.log1p(-half))
        shift = torch.stack([log_mu, torch.logit(pi)], -1)
        return shift, torch.stack([scale[..., 0], torch.ones_like(pi)], -1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

    def distribution(self, raw: Tensor) -> ZeroInflatedDistribution:
        """Poisson with log mean raw[0] behind extra zeros with log odds raw[1]."""
        return ZeroInflatedDistribution(PoissonDistribution(soft_cap(raw[..., 0])), raw[..., 1])


def _positive_share(y: Tensor, weight: Tensor) -> Tensor:
    return weighted_mean((y > 0).to(weight.dtype), weight)


def _refuse_no_counts(y: Tensor, name: str) -> None:
    bad = ~(y.isfinite() & (y >= 0) & (y == y.round()))
    refuse_outside(bad, y, f"Counts of {name} must be whole numbers >= 0")
