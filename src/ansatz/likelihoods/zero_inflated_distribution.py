"""A count distribution behind extra zeros."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.elementwise import wide


class ZeroInflatedDistribution(Distribution):
    """0 with probability pi, else a count from another distribution, which may be 0 as well.

    Args:
        counts: the distribution of the counts, on 0, 1, 2, ...
        logits: the log odds of pi, of the distribution's batch shape.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import PoissonDistribution
        >>> d = ZeroInflatedDistribution(PoissonDistribution(torch.zeros(1)), torch.zeros(1))
        >>> d.mean, d.variance
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
        value = self.inflation + torch.sigmoid(-self.logits) * self.counts.cdf(y)
        return torch.where(y < 0, 0.0, value)

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
