"""The binomial distribution: k successes of n trials."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.errors import DataError
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
)
from ansatz.likelihoods.special.beta import (
    log_beta_weight,
    log_betainc,
    log_betaincc,
    relative_entropy,
)
from ansatz.likelihoods.special.quadrature import count_difference
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import in_double
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec


class BinomialDistribution(Distribution):
    """The number of successes in ``trials`` independent trials.

    Args:
        logits: the log odds of a success, any shape.
        trials: n, whole numbers of a shape that broadcasts with it.

    Example:
        >>> import torch
        >>> d = BinomialDistribution(torch.zeros(1), torch.tensor([2.0]))
        >>> d.log_prob(torch.tensor([1.0])).exp(), d.mean
        (tensor([0.5000]), tensor([1.]))
    """

    discrete = True
    lower = 0.0

    def __init__(self, logits: Tensor, trials: Tensor) -> None:
        self.logits, self.trials = torch.broadcast_tensors(logits, trials.to(logits))
        known = self.trials.numel() and not self.trials.is_meta
        self.upper = float(self.trials.max()) if known else math.inf

    @property
    def probs(self) -> Tensor:
        """The probability p of a success."""
        return torch.sigmoid(self.logits)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.trials * self.probs

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.mean * torch.sigmoid(-self.logits)

    @property
    def mode(self) -> Tensor:
        """The largest whole number up to (n + 1) p."""
        return torch.minimum(((self.trials + 1) * self.probs).floor(), self.trials)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability, arranged so that large counts cancel; -inf for what is not a count."""
        n = self.trials
        count = (y >= 0) & (y <= n) & (y == y.floor())
        inner = count & (y > 0) & (y < n)
        k, rest = torch.where(inner, y, 1.0), torch.where(inner, n - y, 1.0)
        log_p, log_q = logsigmoid(self.logits), logsigmoid(-self.logits)
        # n! / (k! (n - k)!) = n / (k (n - k)) / B(k, n - k)
        value = log_beta_weight(k, rest, log_p, log_q) + (k + rest).log() - k.log() - rest.log()
        value = torch.where(inner, value, n * torch.where(y == 0, log_q, log_p))
        return torch.where(count, value, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """log(1 - I_p(floor(y) + 1, n - floor(y))), accurate in both tails."""
        inside, *arguments = self._beta(y)
        value = torch.where(inside, log_betaincc(*arguments, logit=True), 0.0)
        return torch.where(y < 0, -math.inf, value)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails and differentiable in the logit."""
        inside, *arguments = self._beta(y)
        value = torch.where(inside, log_betainc(*arguments, logit=True), -math.inf)
        return torch.where(y < 0, 0.0, value)

    def _beta(self, y: Tensor) -> tuple[Tensor, ...]:
        k = y.floor()
        inside = (k >= 0) & (k < self.trials)
        first, second = torch.where(inside, k + 1, 1.0), torch.where(inside, self.trials - k, 1.0)
        return inside, first, second, self.logits

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        z = torch.special.ndtri(q.clamp(1e-300, 1 - 1e-16))
        guess = self.mean + z * self.stddev + (1 - 2 * self.probs) * (z * z - 1) / 6 - 0.5
        return count_search(self, q, guess.ceil(), self.trials)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """(y - n p)(2 F(y) - 1) + 2 p (n - k) P(Y = k) - E|Y - Y'|/2, k = floor(y).

        The first two are E|Y - y|. In double precision, as the terms cancel.
        """
        n, k = self.trials, y.floor()
        edge = 2 * self.probs * (n - k).clamp(min=0) * self.log_prob(k).exp()
        # |characteristic function|^2 = (1 - 4 p (1 - p) sin^2(t/2))^n
        width = 4 * self.probs * torch.sigmoid(-self.logits)
        pair = count_difference(
            lambda u: -n * torch.log1p(-(width * u).clamp(max=1 - 1e-16)), self.variance
        )
        return (y - self.mean) * (2 * self.cdf(y) - 1) + edge - 0.5 * pair

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        n, p = (v.expand(size).contiguous() for v in (self.trials, self.probs))
        return torch.binomial(n, p, generator=generator)


class Binomial(Likelihood):
    r"""k successes of n trials, n known for each row.

    .. math:: -\log p(k) = -\log\binom{n}{k} - k \log\sigma(\eta) - (n - k) \log(1 - \sigma(\eta))

    with :math:`\eta` = raw[0], the log odds (logit link): logistic regression for grouped data, and
    the Bernoulli distribution where n = 1. The loss is exact for any raw number. ``predict`` gives
    the probability; ``distribution(raw, trials)`` the number of successes in these trials.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(..., 2)``, the pair (successes, trials), whole numbers, 0 <= k <= n, n >= 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Binomial
        >>> Binomial().loss(torch.zeros(1, 1), torch.tensor([[1.0, 2.0]]))  # log 2
        tensor([0.6931])

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapter 4.
    """

    name = "binomial"
    link_name = "logit"
    event_ndim = 1

    def outputs(self, target: TargetSpec) -> int:
        """1: the log odds."""
        return 1

    def check(self, y: Tensor) -> None:
        """Pairs of whole numbers, successes <= trials."""
        check_trials(y, "Binomial")

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log odds of all successes together.

        Without a success or a failure no log odds are best: half a one is added.
        """
        p = pooled_probability(y, weight)
        return torch.logit(p).unsqueeze(-1), torch.ones_like(p).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y, event=(2,))
        distribution, successes = self.given(raw, y)
        return -distribution.log_prob(successes)

    def distribution(self, raw: Tensor, trials: Tensor | int = 1) -> BinomialDistribution:
        """The successes in ``trials`` trials with log odds raw; by default in one."""
        return BinomialDistribution(raw[..., 0], as_trials(trials, raw))

    def given(self, raw: Tensor, y: Tensor) -> tuple[BinomialDistribution, Tensor]:
        """The distribution of the successes in y's own trials, and those successes."""
        return self.distribution(raw, y[..., 1]), y[..., 0].to(raw.dtype)

    def point(self, raw: Tensor) -> Tensor:
        """The probability of a success."""
        return torch.sigmoid(raw[..., 0])

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """2 (k log(k / (n p)) + (n - k) log((n - k) / (n (1 - p))))."""
        require_same_shape(self.name, raw, y, event=(2,))
        k, n = y.to(raw.dtype).unbind(-1)
        log_p, log_q = logsigmoid(raw[..., 0]), logsigmoid(-raw[..., 0])
        inner = (k > 0) & (k < n)
        a, b = torch.where(inner, k, 1.0), torch.where(inner, n - k, 1.0)
        ends = -n * torch.where(k == 0, log_q, log_p)
        return 2 * torch.where(inner, relative_entropy(a, b, log_p, log_q), ends)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu (1 - mu): the variance of the share k / n is V / n."""
        return mu * (1 - mu)

    def pearson(self, raw: Tensor, y: Tensor) -> Tensor:
        """(k - n p) / sqrt(n p (1 - p))."""
        require_same_shape(self.name, raw, y, event=(2,))
        distribution, successes = self.given(raw, y)
        return (successes - distribution.mean) / distribution.stddev


def check_trials(y: Tensor, likelihood: str) -> None:
    """Rejects what is not a pair (successes, trials), 0 <= successes <= trials, trials >= 1."""
    if y.ndim < 2 or y.shape[-1] != 2:
        raise DataError(
            f"{likelihood} outcomes are pairs (successes, trials), y of shape (N, 2), got "
            f"{tuple(y.shape)}. For 0 and 1 use bernoulli; for proportions without their number "
            "of trials use beta."
        )
    whole = y.isfinite() & (y >= 0) & (y == y.round())
    refuse_where(
        ~whole, y, f"{likelihood} outcomes must be whole numbers >= 0", "Repair or drop the row."
    )
    none = torch.zeros_like(y, dtype=torch.bool)
    none[..., 1] = y[..., 1] < 1
    refuse_where(none, y, f"{likelihood} trials must be at least 1", "Drop rows without trials.")
    many = torch.zeros_like(y, dtype=torch.bool)
    many[..., 0] = y[..., 0] > y[..., 1]
    advice = "The pair is (successes, trials), not (successes, failures)."
    refuse_where(many, y, f"{likelihood} successes must be at most the trials", advice)


def pooled_probability(y: Tensor, weight: Tensor) -> Tensor:
    """Successes over trials of all rows; half a one is added where it would be 0 or 1."""
    k, n = y.to(weight.dtype).unbind(-1)
    successes, trials = weighted_mean(k, weight), weighted_mean(n, weight)
    half = 0.5 / (trials * expand_weight(weight, k).sum(0) + 1)
    p = successes / trials
    return torch.where(p > 0, torch.where(p < 1, p, 1 - half), half)


def as_trials(trials: Tensor | int, raw: Tensor) -> Tensor:
    """A number of trials as a tensor like ``raw``."""
    return torch.as_tensor(trials, dtype=raw.dtype, device=raw.device)
