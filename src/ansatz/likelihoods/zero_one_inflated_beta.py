"""The zero-one-inflated beta distribution: proportions among which exact 0 and 1 are outcomes."""

import math

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from ansatz.likelihoods.beta import BetaDistribution, beta_unit_and_floor, start_beta
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, expand_weight
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.tensors import wide
from ansatz.likelihoods.support import refuse_outside
from ansatz.spec import TargetSpec


class ZeroOneInflatedBetaDistribution(Distribution):
    """0 and 1 with probabilities of their own, otherwise a beta distribution.

    A mixed distribution: ``log_prob`` is a log probability at 0 and 1 and a log density between
    them; the cdf jumps at both ends.

    Args:
        inner: the distribution of the outcomes strictly between 0 and 1.
        logits: ``(..., 2)``, the log odds of 0 and of 1, each against the inside.

    Example:
        >>> import torch
        >>> inner = BetaDistribution(torch.zeros(1), torch.full((1,), 0.5))
        >>> distribution = ZeroOneInflatedBetaDistribution(inner, torch.zeros(1, 2))
        >>> distribution.cdf(torch.tensor([0.0])), distribution.cdf(torch.tensor([0.5]))
        (tensor([0.3333]), tensor([0.5000]))
    """

    lower, upper = 0.0, 1.0
    reparameterized = False  # the probabilities of 0 and 1 depend on the parameters

    def __init__(self, inner: BetaDistribution, logits: Tensor) -> None:
        self.inner, self.logits = inner, logits

    @property
    def log_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """log P(Y = 0), log P(Y = 1) and log P(0 < Y < 1)."""
        inside = torch.zeros_like(self.logits[..., :1])
        zero, one, rest = log_softmax(torch.cat([self.logits, inside], -1), -1).unbind(-1)
        return zero, one, rest

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """P(Y = 0), P(Y = 1) and P(0 < Y < 1)."""
        zero, one, rest = self.log_parts
        return zero.exp(), one.exp(), rest.exp()

    @property
    def mean(self) -> Tensor:
        """P(Y = 1) + P(0 < Y < 1) mu."""
        _, one, rest = self.parts
        return one + rest * self.inner.mean

    @property
    def variance(self) -> Tensor:
        """That of the inside and that between the three parts."""
        zero, one, rest = self.parts
        m, mean = self.inner.mean, self.mean
        between = zero * mean**2 + one * (1 - mean) ** 2 + rest * (m - mean) ** 2
        return between + rest * self.inner.variance

    @property
    def mode(self) -> Tensor:
        """The likelier of 0 and 1: no other value has a probability."""
        return (self.logits[..., 1] > self.logits[..., 0]).to(self.logits.dtype)

    @property
    def entropy(self) -> Tensor:
        """That of the three parts + P(0 < Y < 1) times that of the inside."""
        which = -sum((p * log_p for p, log_p in zip(self.parts, self.log_parts, strict=True)))
        return which + self.parts[2] * self.inner.entropy

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability of 0 and 1, log density between them, -inf elsewhere."""
        zero, one, rest = self.log_parts
        inside = (y > 0) & (y < 1)
        density = rest + self.inner.log_prob(torch.where(inside, y, 0.5))
        value = torch.where(inside, density, torch.where(y == 0, zero, one))
        return torch.where((y >= 0) & (y <= 1), value, -math.inf)

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y), which jumps at 0 and at 1."""
        zero, _, rest = self.parts
        inside = (y > 0) & (y < 1)
        value = zero + rest * self.inner.cdf(torch.where(inside, y, 0.5))
        value = torch.where(inside, value, torch.where(y >= 1, 1.0, zero))
        return torch.where(y < 0, 0.0, value)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails."""
        zero, one, rest = self.log_parts
        low, high = self._log_sides(y, zero, one, rest)
        value = torch.where(low < -0.7, low, torch.log1p(-high.clamp(max=-1e-300).exp()))
        return torch.where(y < 0, -math.inf, torch.where(y >= 1, 0.0, value))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails."""
        zero, one, rest = self.log_parts
        low, high = self._log_sides(y, zero, one, rest)
        value = torch.where(high < -0.7, high, torch.log1p(-low.clamp(max=-1e-300).exp()))
        return torch.where(y < 0, 0.0, torch.where(y >= 1, -math.inf, value))

    def _log_sides(
        self, y: Tensor, zero: Tensor, one: Tensor, rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        """log P(Y <= y) and log P(Y > y) for 0 <= y < 1, each as a sum of its own parts."""
        inside = (y > 0) & (y < 1)
        safe = torch.where(inside, y, 0.5)
        low = torch.logaddexp(zero, rest + self.inner.log_cdf(safe))
        high = torch.logaddexp(one, rest + self.inner.log_survival(safe))
        return torch.where(inside, low, zero), torch.where(inside, high, torch.logaddexp(one, rest))

    def icdf(self, q: Tensor) -> Tensor:
        """0 up to P(Y = 0), then the inner quantile, 1 above P(Y < 1); differentiable inside."""
        zero, one, rest = self.parts
        level = (q - zero) / rest.clamp(min=torch.finfo(rest.dtype).tiny)
        inside = (q > zero) & (1 - q >= one) & (level < 1)
        value = self.inner.icdf(torch.where(inside, level, 0.5))
        value = torch.where(inside, value, (q > zero).to(value))
        return torch.where((q >= 0) & (q <= 1), value, math.nan)

    def crps(self, y: Tensor) -> Tensor:
        """E|Y - y| - E|Y - Y'|/2, part by part; in double precision, as the terms cancel."""
        value, logit, dispersion, logits = wide(
            y, self.inner.logits, self.inner.dispersion, self.logits
        )
        inner = BetaDistribution(logit, dispersion)
        zero, one, rest = ZeroOneInflatedBetaDistribution(inner, logits).parts
        distance = zero * value.abs() + one * (1 - value).abs() + rest * inner.distance(value)
        across = zero * one + rest * (zero * inner.mean + one * torch.sigmoid(-logit))
        return (distance - across - 0.5 * rest**2 * inner.difference).to(y)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws."""
        with torch.no_grad():
            zero, one, _ = self.parts
            inner = self.inner.sample(shape, generator)
            u = torch.rand(inner.shape, generator=generator, dtype=inner.dtype, device=inner.device)
            return torch.where(u < zero, 0.0, torch.where(u < zero + one, 1.0, inner))


class ZeroOneInflatedBeta(Dispersed):
    r"""Proportions in [0, 1] with exact 0 and 1 as outcomes of their own.

    .. math:: P(Y = 0) = \pi_0, \quad P(Y = 1) = \pi_1, \quad
              p(y) = (1 - \pi_0 - \pi_1) \frac{y^{a-1} (1-y)^{b-1}}{B(a, b)} \text{ between}

    with :math:`\mathrm{logit}\,\mu` = raw[0] (logit link), :math:`(\pi_0, \pi_1)` the first two
    entries of softmax(raw[1], raw[2], 0), :math:`a = \mu\phi`, :math:`b = (1-\mu)\phi` and the
    dispersion :math:`1/\phi` = unit * softplus(raw[3]) + floor, with the unit and the floor of the
    beta distribution of the outcomes between 0 and 1. The loss is a log probability at 0 and 1 and
    a log density between. raw[0] beyond +-50 grows logarithmically. ``predict`` gives the mean of
    y.

    Args:
        dispersion: 1/phi ``"predicted"`` from x, ``"constant"``, or known (0.1 means phi = 10).

    Shapes:
        - raw: ``(..., 4)``, or ``(..., 3)`` unless the dispersion is predicted.
        - y: ``(...)``, in [0, 1].

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import ZeroOneInflatedBeta
        >>> ZeroOneInflatedBeta().loss(torch.zeros(1, 4), torch.zeros(1))  # log 3
        tensor([1.0986])

    References:
        Ospina and Ferrari (2010), Inflated beta distributions.
        https://doi.org/10.1007/s00362-008-0125-4
    """

    name = "zero_one_inflated_beta"
    link_name = "logit"

    def outputs(self, target: TargetSpec) -> int:
        """4 with a predicted dispersion, else 3."""
        return 3 + self.dispersion.outputs

    def check(self, y: Tensor) -> None:
        """Numbers from 0 to 1."""
        bad = ~(y.isfinite() & (y >= 0) & (y <= 1))
        refuse_outside(bad, y, "Zero-one-inflated beta outcomes must be proportions from 0 to 1")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion, from the outcomes between 0 and 1."""
        self.dispersion.observe(*beta_unit_and_floor(*_between(y, weight)))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The shares of 0 and 1, and the maximum-likelihood beta distribution between them.

        A part without outcomes has no finite maximum-likelihood log odds: half a row is added.
        """
        full = expand_weight(weight, y)
        counts = [torch.where(y == end, full, 0).sum(0) for end in (0, 1)]
        counts.append(torch.where((y > 0) & (y < 1), full, 0).sum(0))
        zero, one, rest = (torch.where(c > 0, c, 0.5).log() for c in counts)
        logit, scale, dispersion = start_beta(*_between(y, weight), self.dispersion)
        r = self.dispersion.start(dispersion).expand_as(logit)
        shifts, scales = [logit, zero - rest, one - rest], [scale, *[torch.ones_like(scale)] * 2]
        if self.dispersion.outputs:
            shifts, scales = [*shifts, r], [*scales, torch.ones_like(scale)]
        return torch.stack(shifts, -1), torch.stack(scales, -1)

    def distribution(self, raw: Tensor) -> ZeroOneInflatedBetaDistribution:
        """Beta with mean sigmoid(raw[0]) between 0 and 1, which have log odds raw[1] and raw[2]."""
        inner = BetaDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))
        return ZeroOneInflatedBetaDistribution(inner, raw[..., 1:3])


def _between(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Outcomes and weights of the rows strictly between 0 and 1, others without weight.

    Without any such row, 1/4 and 3/4 stand in for them: near a uniform distribution around 1/2.
    """
    full = expand_weight(weight, y)
    inside = (y > 0) & (y < 1) & (full > 0)
    inner = torch.where(inside, full, 0.0)
    none = (inner.sum(0) == 0).expand_as(y)
    stand_in = torch.where(torch.arange(len(y)) % 2 == 0, 0.25, 0.75).to(weight)
    stand_in = stand_in.reshape(-1, *(1,) * (y.ndim - 1)).expand_as(y)
    between = torch.where(inside, y, torch.where(none, stand_in, 0.5))
    return between, torch.where(none, 1.0, inner)
