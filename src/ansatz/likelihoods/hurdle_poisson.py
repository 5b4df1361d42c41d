"""The hurdle Poisson distribution: whether there is anything, then how many."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, weighted_mean, weighted_sd
from ansatz.likelihoods.poisson import PoissonDistribution
from ansatz.likelihoods.special.logarithms import log_positive, positive_rate, soft_clamp
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import in_double
from ansatz.spec import TargetSpec


class HurdlePoissonDistribution(Distribution):
    """0 with probability 1 - p, else a Poisson count known to be positive.

    Args:
        log_rate: the logarithm of the Poisson rate before truncation, any shape.
        logits: the log odds of p = P(Y > 0), the same shape.

    Example:
        >>> import torch
        >>> distribution = HurdlePoissonDistribution(torch.tensor([-40.0]), torch.zeros(1))
        >>> distribution.log_prob(torch.tensor([1.0])).exp()  # the positive counts are all 1
        tensor([0.5000])
    """

    discrete = True
    lower = 0.0

    def __init__(self, log_rate: Tensor, logits: Tensor) -> None:
        self.log_rate, self.logits = torch.broadcast_tensors(log_rate, logits)

    @property
    def _counts(self) -> PoissonDistribution:
        return PoissonDistribution(self.log_rate)

    @property
    def _positive_mean(self) -> Tensor:
        """E[Y | Y > 0] = r / (1 - e^-r), 1 for a rate of nothing."""
        return (self.log_rate - log_positive(self.log_rate)).exp()

    @property
    def mean(self) -> Tensor:
        """p r / (1 - e^-r)."""
        return torch.sigmoid(self.logits) * self._positive_mean

    @property
    def variance(self) -> Tensor:
        """p m (1 + r - p m) with m = r / (1 - e^-r)."""
        rate, m = self.log_rate.exp(), self._positive_mean
        # r - m = -r / (e^r - 1), so that nothing large is subtracted; 1 + it by series near r = 0.
        r = rate.clamp(max=0.1)
        s = r * r
        low = r / 2 - s * (1 / 12 - s * (1 / 720 - s * (1 / 30240 - s / 1209600)))
        safe = torch.where(rate < 0.1, 1.0, rate)
        high = 1 - safe * (-safe).exp() / -torch.expm1(-safe)
        rest = torch.where(rate < 0.1, low, high)
        return self.mean * (rest + torch.sigmoid(-self.logits) * m)

    @property
    def mode(self) -> Tensor:
        """0, or the truncated Poisson's mode where that is more probable."""
        top = self._counts.mode.clamp(min=1)
        zero = logsigmoid(-self.logits) >= self.log_prob(top)
        return torch.where(zero, 0.0, top)

    def log_prob(self, y: Tensor) -> Tensor:
        """log(1 - p) at 0, beyond it log p + Poisson's - log(1 - e^-r)."""
        positive = torch.where(y == 0, 1.0, y)
        count = self._counts.log_prob(positive) - log_positive(self.log_rate)
        return torch.where(y == 0, logsigmoid(-self.logits), logsigmoid(self.logits) + count)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails."""
        k = y.floor()
        # From the survival where that is small. Elsewhere the truncated cdf is below 1/2, so that
        # P(N <= k) and P(N = 0), N the Poisson count, are far from equal: F(k) >= (1 + r) F(0).
        survival = self.log_survival(y)
        high = survival < -math.log(2)
        near = torch.where(high, survival, -1.0)
        upper = torch.log1p(-near.exp())
        far = ~high & (k >= 1)
        log_rate = torch.where(far, self.log_rate, 1.0)
        counts = PoissonDistribution(log_rate)
        whole = counts.log_cdf(torch.where(far, k, 1.0))
        gap = (whole + log_rate.exp()).clamp(min=1e-6)  # log of F(k) / F(0)
        part = whole + torch.log1p(-(-gap).exp()) - log_positive(log_rate)
        zero = logsigmoid(-self.logits)
        lower = torch.where(far, torch.logaddexp(zero, logsigmoid(self.logits) + part), zero)
        return torch.where(k < 0, -math.inf, torch.where(high & (k >= 1), upper, lower))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails."""
        k = y.floor()
        inside = torch.where(k >= 1, k, 1.0)
        tail = self._counts.log_survival(inside) - log_positive(self.log_rate)
        value = logsigmoid(self.logits) + torch.where(k >= 1, tail, 0.0)
        return torch.where(k < 0, 0.0, value)

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        zero, rate = torch.sigmoid(-self.logits), self.log_rate.exp()
        inner = ((q - zero) / torch.sigmoid(self.logits)).clamp(1e-300, 1 - 1e-16)
        among_all = inner - (-rate).exp() * (inner - 1)  # the level among all counts; 1 for rate 0
        z = torch.special.ndtri(among_all.clamp(max=1 - 1e-16))
        guess = (rate + z * rate.sqrt() + (z * z - 1) / 6).clamp(min=1)  # Cornish and Fisher
        return count_search(self, q, torch.where(q <= zero, 0.0, guess))

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        r"""The closed form, from that of the Poisson distribution, in double precision.

        A distribution that is 0 with probability 1 - p and else has the score :math:`C_T(y)` has
        the score :math:`(1 - p)|y| + p\, C_T(y) - p (1 - p)\, C_T(0)`; the Poisson distribution
        itself is of this form, which gives the truncated one's. Where nearly all counts are 1, by
        their first few probabilities.
        """
        log_rate, p = self.log_rate, torch.sigmoid(self.logits)
        small = log_rate.exp() < 0.05
        at, at_zero = _positive_crps(y, torch.where(small, 0.0, log_rate))
        few, few_zero = _few_crps(y, torch.where(small, log_rate, -5.0))
        at, at_zero = torch.where(small, few, at), torch.where(small, few_zero, at_zero)
        return (1 - p) * y.abs() + p * at - p * torch.sigmoid(-self.logits) * at_zero

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """The Poisson process whose first event is placed before the end.

        With U uniform, the first event of a positive count comes at T = -log(1 - U (1 - e^-r));
        the rest of the count is Poisson with rate r - T.
        """
        rate = self.log_rate.exp().expand(size)
        kind = {"generator": generator, "dtype": rate.dtype, "device": rate.device}
        first = -torch.log1p(torch.rand(rate.shape, **kind) * torch.expm1(-rate))
        rest = PoissonDistribution((rate - first).clamp(min=0).log()).sample((), generator)
        some = torch.rand(rate.shape, **kind) < torch.sigmoid(self.logits)
        return torch.where(some, 1 + rest, 0.0)


def _positive_crps(y: Tensor, log_rate: Tensor) -> tuple[Tensor, Tensor]:
    """The score of the truncated distribution at y and at 0, solved from Poisson's."""
    likelihood, s = PoissonDistribution(log_rate), log_positive(log_rate).exp()
    zero = likelihood.crps(torch.zeros_like(y)) / s**2
    return (likelihood.crps(y) - (1 - s) * y.abs()) / s + (1 - s) * zero, zero


def _few_crps(y: Tensor, log_rate: Tensor) -> tuple[Tensor, Tensor]:
    """The same for a small rate: E|T - y| - E|T - T'| / 2 over the counts 1..12."""
    t = torch.arange(1.0, 13.0, dtype=y.dtype, device=y.device)
    wide_rate = log_rate.unsqueeze(-1)
    p = (PoissonDistribution(wide_rate).log_prob(t) - log_positive(wide_rate)).exp()  # (..., 12)
    pair = torch.einsum("...i,...j,ij->...", p, p, (t - t.unsqueeze(-1)).abs()) / 2
    return (p * (t - y.unsqueeze(-1)).abs()).sum(-1) - pair, (p * t).sum(-1) - pair


class HurdlePoisson(Likelihood):
    r"""Counts where being positive is one question and how many is another.

    .. math:: P(0) = 1 - p, \qquad P(y) = p\, \frac{e^{-r} r^y / y!}{1 - e^{-r}} \quad (y \ge 1)

    with :math:`\log r` = raw[0], the log rate of the Poisson count before its zeros are cut off,
    and :math:`p = \sigma` (raw[1]), the probability of a positive count. The two parts share no
    parameter, so the linear model is a logistic regression of y > 0 and a zero-truncated Poisson
    regression of the positive counts. Unlike a zero-inflated distribution it can also have *fewer*
    zeros than a Poisson distribution. raw[0] beyond +-50 grows logarithmically; as r goes to 0 the
    positive counts become 1, and every digit stays.

    Shapes:
        - raw: ``(..., 2)``.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import HurdlePoisson
        >>> HurdlePoisson().loss(torch.zeros(1, 2), torch.zeros(1))  # log 2
        tensor([0.6931])

    References:
        Mullahy (1986), Specification and testing of some modified count data models.
        https://doi.org/10.1016/0304-4076(86)90002-3
    """

    name = "hurdle_poisson"
    support = "counts"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """2: the log rate and the log odds of a positive count."""
        return 2

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The rate of the positive counts' mean, and the log odds of their share.

        Where no finite number is best half a row is added: positive counts that are all 1 get half
        a count more, zeros alone half a positive row, positive counts alone half a zero.
        """
        y = y.to(weight.dtype)
        rows = expand_weight(weight, y)
        positive = torch.where(y > 0, rows, 0.0)
        total, some = rows.sum(0), positive.sum(0)
        mean = torch.where(rows > 0, rows * y, 0.0).sum(0) / torch.where(some > 0, some, 1.0)
        mean = torch.where(mean > 1, mean, 1 + 0.5 / (some + 1))
        half = 0.5 / (total + 1)
        share = torch.where(some > 0, torch.where(some < total, some / total, 1 - half), half)
        log_rate = positive_rate(mean.double()).log().to(y.dtype)
        whole, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / torch.where(sd > 0, whole, 1.0)).clamp(max=1), 1.0)
        shift = torch.stack([log_rate, torch.logit(share)], -1)
        return shift, torch.stack([scale, torch.ones_like(scale)], -1)

    def distribution(self, raw: Tensor) -> HurdlePoissonDistribution:
        """Hurdle Poisson with log rate raw[0] and log odds raw[1]."""
        return HurdlePoissonDistribution(soft_clamp(raw[..., 0]), raw[..., 1])
