"""The hurdle negative binomial distribution: whether there is anything, then how many."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, special, stats
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.hurdle_poisson import HurdlePoisson
from ansatz.likelihoods.likelihood import Dispersed, expand_weight
from ansatz.likelihoods.negative_binomial import NegativeBinomialDistribution, log1p_over
from ansatz.likelihoods.poisson import PoissonDistribution
from ansatz.likelihoods.special.logarithms import log_positive, soft_clamp
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import elementwise, in_double
from ansatz.spec import TargetSpec

_FEW = 0.05  # (1 + alpha) mu below which nearly all positive counts are 1
_WIDEST = 1e3  # alpha of a start: beyond, the positive counts are a logarithmic series


class HurdleNegativeBinomialDistribution(Distribution):
    """0 with probability 1 - p, else a negative binomial count known to be positive.

    Args:
        log_mean: the logarithm of the negative binomial mean before truncation, any shape.
        dispersion: alpha, positive, the same shape.
        logits: the log odds of p = P(Y > 0), the same shape.

    Example:
        >>> import torch
        >>> one = torch.ones(1)
        >>> d = HurdleNegativeBinomialDistribution(torch.zeros(1), one, torch.zeros(1))
        >>> d.mean, d.log_prob(one).exp()  # positive counts are geometric with p = 1/2
        (tensor([1.]), tensor([0.2500]))
    """

    discrete = True
    lower = 0.0

    def __init__(self, log_mean: Tensor, dispersion: Tensor, logits: Tensor) -> None:
        self.log_mean, self.dispersion, self.logits = torch.broadcast_tensors(
            log_mean, dispersion, logits
        )

    @property
    def _counts(self) -> NegativeBinomialDistribution:
        return NegativeBinomialDistribution(self.log_mean, self.dispersion)

    @property
    def _clusters(self) -> Tensor:
        """-log P(N = 0) = log(1 + alpha mu) / alpha, N the count before truncation."""
        return log1p_over(self.dispersion, self.log_mean.exp())

    @property
    def _log_some(self) -> Tensor:
        """log P(N > 0)."""
        return log_positive(self._clusters.log())

    @property
    def _positive_mean(self) -> Tensor:
        return (self.log_mean - self._log_some).exp()

    @property
    def mean(self) -> Tensor:
        """p m with m = mu / P(N > 0), N the count before truncation."""
        return torch.sigmoid(self.logits) * self._positive_mean

    @property
    def variance(self) -> Tensor:
        """p m (1 + (1 + alpha) mu - p m)."""
        m = self._positive_mean
        excess = (1 + self.dispersion) * self.log_mean.exp()
        # 1 + excess - m: where nearly all counts are 1, m - 1 = E[T - 1] by its first terms.
        small = excess < _FEW
        t, probability = self._few(small)
        above = (probability * (t - 1)).sum(-1)
        rest = torch.where(small, excess - above, 1 + excess - m)
        return self.mean * (rest + torch.sigmoid(-self.logits) * m)

    def _few(self, small: Tensor) -> tuple[Tensor, Tensor]:
        """The counts 1..12 and their probabilities ``(..., 12)`` where these are nearly all."""
        t = torch.arange(1.0, 13.0, dtype=self.log_mean.dtype, device=self.log_mean.device)
        inner = HurdleNegativeBinomialDistribution(
            torch.where(small, self.log_mean, -5.0).unsqueeze(-1),
            torch.where(small, self.dispersion, 1.0).unsqueeze(-1),
            torch.zeros_like(self.logits).unsqueeze(-1),
        )
        return t, (inner._counts.log_prob(t) - inner._log_some).exp()

    @property
    def mode(self) -> Tensor:
        """0, or the truncated distribution's mode where that is more probable."""
        top = self._counts.mode.clamp(min=1)
        return torch.where(logsigmoid(-self.logits) >= self.log_prob(top), 0.0, top)

    def log_prob(self, y: Tensor) -> Tensor:
        """log(1 - p) at 0, beyond it log p + log P(N = y) - log P(N > 0)."""
        count = self._counts.log_prob(torch.where(y == 0, 1.0, y)) - self._log_some
        return torch.where(y == 0, logsigmoid(-self.logits), logsigmoid(self.logits) + count)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails."""
        k = y.floor()
        survival = self.log_survival(y)
        high = survival < -math.log(2)  # from the survival where that is small
        upper = torch.log1p(-torch.where(high, survival, -1.0).exp())
        far = ~high & (k >= 1)
        log_mean, alpha = (torch.where(far, v, 1.0) for v in (self.log_mean, self.dispersion))
        inner = HurdleNegativeBinomialDistribution(log_mean, alpha, self.logits)
        whole = inner._counts.log_cdf(torch.where(far, k, 1.0))
        gap = (whole + inner._clusters).clamp(min=1e-12)  # log of F(k) / F(0)
        part = whole + log_positive(gap.log()) - inner._log_some
        zero = logsigmoid(-self.logits)
        lower = torch.where(far, torch.logaddexp(zero, logsigmoid(self.logits) + part), zero)
        return torch.where(k < 0, -math.inf, torch.where(high & (k >= 1), upper, lower))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails."""
        k = y.floor()
        tail = self._counts.log_survival(torch.where(k >= 1, k, 1.0)) - self._log_some
        value = logsigmoid(self.logits) + torch.where(k >= 1, tail, 0.0)
        return torch.where(k < 0, 0.0, value)

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        zero, mu = torch.sigmoid(-self.logits), self.log_mean.exp()
        inner = ((1 - q) / torch.sigmoid(self.logits)).clamp(max=1)
        among_all = (1 - inner * self._log_some.exp()).clamp(1e-300, 1 - 1e-16)
        shape = 1 / mu + self.dispersion  # the gamma distribution with N's mean and variance
        guess = elementwise(special.gammaincinv, 1 / shape, among_all) * shape * mu
        return count_search(self, q, torch.where(q <= zero, 0.0, guess.clamp(min=1)))

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        r"""The closed form, from that of the negative binomial distribution, in double precision.

        With :math:`C_T` the score of the positive counts,
        :math:`(1 - p)|y| + p\, C_T(y) - p (1 - p)\, C_T(0)`. The negative binomial distribution
        itself is of this form, which gives :math:`C_T`; where nearly all counts are 1, by their
        first few probabilities.
        """
        p, small = torch.sigmoid(self.logits), (1 + self.dispersion) * self.log_mean.exp() < _FEW
        safe = HurdleNegativeBinomialDistribution(
            torch.where(small, 0.0, self.log_mean), self.dispersion, self.logits
        )
        s = safe._log_some.exp()
        at_zero = safe._counts.crps(torch.zeros_like(y)) / s**2
        at = (safe._counts.crps(y) - (1 - s) * y.abs()) / s + (1 - s) * at_zero
        t, few = self._few(small)
        pair = torch.einsum("...i,...j,ij->...", few, few, (t - t.unsqueeze(-1)).abs()) / 2
        near = (few * (t - y.unsqueeze(-1)).abs()).sum(-1) - pair
        at = torch.where(small, near, at)
        at_zero = torch.where(small, (few * t).sum(-1) - pair, at_zero)
        return (1 - p) * y.abs() + p * at - p * torch.sigmoid(-self.logits) * at_zero

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """A Poisson process of clusters whose first one is placed before the end.

        A negative binomial count is a Poisson number of clusters, -log P(N = 0) on average, whose
        sizes follow the logarithmic series. The first of a positive number comes at T, and what
        follows is negative binomial again. The size is Kemp's (1981) algorithm LK.
        """
        log_mean, alpha = self.log_mean.expand(size), self.dispersion.expand(size)
        clusters = self._clusters.expand(size)
        kind: dict[str, Any] = {"dtype": log_mean.dtype, "device": log_mean.device}
        first, u, v, some = torch.rand((4, *clusters.shape), generator=generator, **kind)
        time = -torch.log1p(first * torch.expm1(-clusters))
        left = (1 - time / clusters).clamp(min=0)
        log_q = log_positive((u * alpha * clusters).log())
        cluster = 1 + (torch.log1p(-v) / log_q).floor()
        gamma = torch._standard_gamma((left / alpha).contiguous(), generator=generator)
        rest = PoissonDistribution(gamma.log() + log_mean + alpha.log()).sample((), generator)
        return torch.where(some < torch.sigmoid(self.logits), cluster + rest, 0.0)


class HurdleNegativeBinomial(Dispersed):
    r"""Counts where being positive is one question and how many, with large variance, another.

    .. math:: P(0) = 1 - p, \qquad
              P(y) = p\, \frac{\text{NB}(y; \mu, \alpha)}{1 - (1 + \alpha\mu)^{-1/\alpha}}
              \quad (y \ge 1)

    with :math:`\log\mu` = raw[0], the log mean of the negative binomial count before its zeros are
    cut off, its dispersion :math:`\alpha` = unit * softplus(raw[1]) + floor and :math:`p = \sigma`
    (the last raw number), the probability of a positive count. With a constant dispersion the
    linear model is a logistic regression of y > 0 and a zero-truncated negative binomial regression
    of the positive counts. As :math:`\alpha \to 0` it is the hurdle Poisson distribution; as
    :math:`\mu \to 0` the positive counts become 1. The unit is the maximum-likelihood
    :math:`\alpha` of the constant model, the floor 1e-4 over the largest count, at most half the
    unit. raw[0] beyond +-50 grows logarithmically.

    Args:
        dispersion: alpha ``"predicted"`` from x, ``"constant"``, or known.

    Shapes:
        - raw: ``(..., 3)``, or ``(..., 2)`` unless the dispersion is predicted.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import HurdleNegativeBinomial
        >>> HurdleNegativeBinomial(dispersion=1.0).loss(torch.zeros(1, 2), torch.ones(1))  # log 4
        tensor([1.3863])

    References:
        Cameron and Trivedi (2013), Regression Analysis of Count Data, section 4.3.
    """

    name = "hurdle_negative_binomial"
    support = "counts"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """3 with a predicted dispersion, else 2."""
        return 2 + self.dispersion.outputs

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion, from the positive counts."""
        y = y.to(weight.dtype)
        _, alpha = _fit_targets(y, weight, None)
        rows = expand_weight(weight, y)
        floor = 1e-4 / torch.where(rows > 0, y, 0).amax(0).clamp(min=1)
        some = torch.where(y > 0, rows, 0.0)
        mean = (some * y).sum(0) / some.sum(0).clamp(min=1)
        # Where they vary no more than Poisson's: what chance alone makes alpha look like.
        chance = (2 / some.sum(0).clamp(min=1)).sqrt() / mean.clamp(min=1)
        unit = torch.where(alpha > 0, alpha, torch.maximum(chance, 2 * floor))
        self.dispersion.observe(unit, torch.minimum(floor, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constants, the log odds as for ``hurdle_poisson``.

        Positive counts that are all 1 get half a count more.
        """
        y = y.to(weight.dtype)
        known = self.dispersion.known if self.dispersion.kind == "known" else None
        log_mean, alpha = _fit_targets(y, weight, known)
        other, scales = HurdlePoisson().start(y, weight)
        shift, scale = self.dispersion.append(log_mean, scales[..., 0], alpha)
        return torch.cat([shift, other[..., 1:]], -1), torch.cat([scale, scales[..., 1:]], -1)

    def distribution(self, raw: Tensor) -> HurdleNegativeBinomialDistribution:
        """Hurdle negative binomial with log mean raw[0] and log odds in the last raw number."""
        alpha = self.dispersion(raw[..., :-1])
        return HurdleNegativeBinomialDistribution(soft_clamp(raw[..., 0]), alpha, raw[..., -1])


Array = NDArray[np.float64]


def _fit_targets(y: Tensor, weight: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
    """Log mean and alpha of the zero-truncated constant model of each target."""
    columns = y.detach().double().cpu().reshape(len(y), -1)
    rows = expand_weight(weight, y).detach().double().cpu().reshape(len(y), -1)
    alphas = [None] * columns.shape[1] if known is None else known.reshape(-1).tolist()
    alphas = alphas * columns.shape[1] if len(alphas) == 1 else alphas
    solved = []
    for k, alpha in enumerate(alphas):
        use = (columns[:, k] > 0) & (rows[:, k] > 0)
        counts, index = columns[use, k].unique(return_inverse=True)
        total = torch.zeros_like(counts).index_add_(0, index, rows[use, k])
        solved.append(_fit_positive(counts.numpy(), total.numpy(), alpha))
    found = torch.tensor(solved, dtype=torch.float64).to(y)
    return found[:, 0].reshape(y.shape[1:]), found[:, 1].reshape(y.shape[1:])


def _fit_positive(counts: Array, rows: Array, known: float | None) -> tuple[float, float]:
    """Maximises the zero-truncated likelihood in alpha, with the mean of the counts kept.

    By a grid of log alpha, then Brent's method between the neighbours of the best. An alpha of 0
    means that the counts vary no more than Poisson's.
    """
    some = float(rows.sum())
    mean = float(rows @ counts) / some if some else 1.0
    if mean <= 1:
        return _log_mean(1 + 0.5 / (some + 1), known or 1e-8), known or 0.0
    if known is not None:
        return _log_mean(mean, known), known

    def loss(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        mu = math.exp(_log_mean(mean, alpha))
        log_p = stats.nbinom.logpmf(counts, 1 / alpha, 1 / (1 + alpha * mu))
        return float(-(rows @ log_p) / some + np.log(-np.expm1(-np.log1p(alpha * mu) / alpha)))

    grid = np.linspace(math.log(1e-6), math.log(_WIDEST), 25)
    best = int(np.argmin([loss(a) for a in grid]))
    if best == 0:
        return _log_mean(mean, 1e-8), 0.0
    if best == len(grid) - 1:
        return _log_mean(mean, _WIDEST), _WIDEST
    found = optimize.minimize_scalar(
        loss, bracket=tuple(grid[best - 1 : best + 2]), method="brent", options={"xtol": 1e-10}
    )
    return _log_mean(mean, math.exp(found.x)), math.exp(found.x)


def _log_mean(mean: float, alpha: float) -> float:
    """The log mu at which the positive counts have a given mean > 1."""

    def gap(log_mu: float) -> float:
        none = math.log1p(alpha * math.exp(log_mu)) / alpha
        return log_mu - math.log(-math.expm1(-none)) - math.log(mean)

    return float(optimize.brentq(gap, -45.0, math.log(mean) + 1e-9, xtol=1e-13, rtol=1e-14))
