"""The beta-binomial law: successes whose probability varies beyond what x tells."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.beta import BetaDistribution
from ansatz.likelihoods.beta_binomial_fit import fit_beta_binomial
from ansatz.likelihoods.beta_weight import log_beta_peak, relative_entropy
from ansatz.likelihoods.binomial import BinomialDistribution
from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.elementwise import wide
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.log_link import soft_clamp
from ansatz.likelihoods.trials import as_trials, check_trials, pooled_probability
from ansatz.spec import TargetSpec

_BLOCK = 2**21  # probabilities of a sum at once: 16 MB


class BetaBinomialDistribution(Distribution):
    """Successes in ``trials`` trials of one probability, drawn from a beta law.

    The beta law has mean mu and precision phi = 1 / dispersion: a = mu phi, b = (1 - mu) phi. Two
    trials correlate by rho = 1 / (1 + phi). Tails and quantiles are sums over the counts, in
    blocks, so that their cost grows with the largest number of trials.

    Args:
        logits: log(mu / (1 - mu)), any shape.
        dispersion: 1 / phi, positive.
        trials: n, whole numbers. All three broadcast.

    Example:
        >>> import torch
        >>> half, two = torch.full((1,), 0.5), torch.full((1,), 2.0)
        >>> d = BetaBinomialDistribution(torch.zeros(1), half, two)  # uniform on 0, 1, 2
        >>> d.cdf(torch.zeros(1))
        tensor([0.3333])
    """

    discrete = True
    lower = 0.0

    def __init__(self, logits: Tensor, dispersion: Tensor, trials: Tensor) -> None:
        self.logits, self.dispersion, self.trials = torch.broadcast_tensors(
            logits, dispersion, trials.to(logits)
        )
        known = self.trials.numel() and not self.trials.is_meta
        self.upper = float(self.trials.max()) if known else math.inf

    @property
    def shapes(self) -> tuple[Tensor, Tensor]:
        """a = mu phi and b = (1 - mu) phi."""
        return BetaDistribution(self.logits, self.dispersion).shapes

    @property
    def mean(self) -> Tensor:
        """n mu."""
        return self.trials * torch.sigmoid(self.logits)

    @property
    def variance(self) -> Tensor:
        """n mu (1 - mu) (1 + (n - 1) rho)."""
        rho = self.dispersion / (1 + self.dispersion)
        return self.mean * torch.sigmoid(-self.logits) * (1 + (self.trials - 1) * rho)

    @property
    def mode(self) -> Tensor:
        """The count where the ratio of neighbours passes 1, or an end; the likelier if both."""
        a, b = self.shapes
        # p(k) >= p(k - 1) exactly where k (a + b - 2) <= (n + 1)(a - 1)
        peaked = (a > 1) & (b > 1)
        inner = ((self.trials + 1) * (a - 1) / torch.where(peaked, a + b - 2, 1.0)).floor()
        ends = torch.where(a > b, self.trials, 0.0)
        ends = torch.where((a > 1) & (b <= 1), self.trials, ends)
        ends = torch.where((a <= 1) & (b > 1), torch.zeros_like(ends), ends)
        inner = torch.minimum(inner.clamp(min=0), self.trials)
        return torch.where(peaked, inner, ends)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability: the binomial's, and what the spread of the probability adds.

        With a' = y + a, b' = n - y + b: relative_entropy(a', b'; mu) + peak(a, b) - peak(a', b'),
        all small where phi is large.
        """
        binomial = BinomialDistribution(self.logits, self.trials).log_prob(y)
        count = (y >= 0) & (y <= self.trials) & (y == y.floor())
        y, (a, b) = torch.where(count, y, 0.0), self.shapes
        a_more, b_more = a + y, b + (self.trials - y)
        log_p, log_q = logsigmoid(self.logits), logsigmoid(-self.logits)
        spread = relative_entropy(a_more, b_more, log_p, log_q)
        spread = spread + log_beta_peak(a, b) - log_beta_peak(a_more, b_more)
        return torch.where(count, binomial + spread, -math.inf)

    def _blocks(self, shape: torch.Size) -> Iterator[tuple[Tensor, Tensor]]:
        """Counts ``(M, ...)`` from 0 to the largest n and their log probabilities, in blocks."""
        size = max(1, min(1024, _BLOCK // max(1, math.prod(shape))))
        last = 0 if self.upper == math.inf else int(self.upper)
        for first in range(0, last + 1, size):
            k = torch.arange(
                first,
                min(first + size, last + 1),
                dtype=self.logits.dtype,
                device=self.logits.device,
            )
            k = k.reshape(-1, *(1,) * len(shape)).expand(-1, *shape)
            yield k, self.log_prob(k)

    def _log_tails(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """log P(Y <= y) and log P(Y > y), each as a sum of its own terms."""
        y, *parameters = torch.broadcast_tensors(
            *wide(y, self.logits, self.dispersion, self.trials)
        )
        low, high = torch.full_like(y, -math.inf), torch.full_like(y, -math.inf)
        for k, term in BetaBinomialDistribution(*parameters)._blocks(y.shape):
            low = _log_add(low, _log_sum(term, k <= y))
            high = _log_add(high, _log_sum(term, k > y))
        return low, high

    def cdf(self, y: Tensor) -> Tensor:
        """The sum of the probabilities up to y."""
        return self.log_cdf(y).exp()

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails and differentiable in mu and phi."""
        low, high = self._log_tails(y)
        return _from_smaller(low, high).to(y)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails and differentiable in mu and phi."""
        low, high = self._log_tails(y)
        return _from_smaller(high, low).to(y)

    def _solve(self, q: Tensor) -> Tensor:
        level, *parameters = torch.broadcast_tensors(
            *wide(q, self.logits, self.dispersion, self.trials)
        )
        below, mass = torch.zeros_like(level), torch.zeros_like(level)
        for _, term in BetaBinomialDistribution(*parameters)._blocks(level.shape):
            reached = mass + term.exp().cumsum(0)
            below, mass = below + (reached < level).sum(0), reached[-1]
        # Rounding may leave the whole sum a little below a level next to 1.
        y = torch.minimum(below, parameters[2])
        y = torch.where(level >= 1, parameters[2], y)
        return torch.where((level >= 0) & (level <= 1), y, math.nan).to(q)

    def crps(self, y: Tensor) -> Tensor:
        """The sum of (F(k) - 1[k >= y])^2 over the counts, and the distance of a y beyond them."""
        value, *parameters = torch.broadcast_tensors(
            *wide(y, self.logits, self.dispersion, self.trials)
        )
        total, mass = torch.zeros_like(value), torch.zeros_like(value)
        for k, term in BetaBinomialDistribution(*parameters)._blocks(value.shape):
            reached = mass + term.exp().cumsum(0)
            total = total + torch.where(k < value, reached, 1 - reached).square().sum(0)
            mass = reached[-1]
        return total.to(y)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws: a probability from the beta law, then the binomial's count."""
        with torch.no_grad():
            p = BetaDistribution(self.logits, self.dispersion).sample(shape, generator)
            return torch.binomial(self.trials.expand_as(p).contiguous(), p, generator=generator)


def _log_sum(term: Tensor, mask: Tensor) -> Tensor:
    """log of the sum of e^term where ``mask`` holds, with no gradient where nothing does."""
    kept = torch.where(mask & (term > -math.inf), term, -1e300)
    largest = kept.amax(0).detach()
    total = (kept - largest).exp().sum(0).log() + largest
    return torch.where(largest > -1e300, total, -math.inf)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """logaddexp without nan gradients where both are -inf."""
    return _log_sum(torch.stack([a, b]), torch.ones_like(torch.stack([a, b]), dtype=torch.bool))


def _from_smaller(log_this: Tensor, log_other: Tensor) -> Tensor:
    """log P from whichever of P and 1 - P is smaller."""
    small = log_other < log_this
    return torch.where(small, torch.log1p(-torch.where(small, log_other, -1e300).exp()), log_this)


class BetaBinomial(Likelihood):
    r"""k successes of n trials, more variable than the binomial law allows.

    .. math:: p(k) = \binom{n}{k} \frac{B(k + a, n - k + b)}{B(a, b)}, \qquad
              a = \mu\phi, \quad b = (1-\mu)\phi

    with :math:`\mathrm{logit}\,\mu` = raw[0] (logit link) and the dispersion :math:`1/\phi` = unit
    * softplus(raw[1]) + floor, as for the beta law; the trials of a row correlate by
    :math:`\rho = 1/(1+\phi)`, and :math:`1/\phi \to 0` is the binomial law. The unit is the
    maximum-likelihood :math:`1/\phi` of the constant model; the floor is 1e-4 over the largest
    number of trials, at most half the unit: there the variance exceeds the binomial's by less than
    1e-4 of it. raw[0] beyond +-50 grows logarithmically. With one trial in every row nothing tells
    :math:`\phi`.

    Args:
        dispersion: 1/phi ``"predicted"`` from x, ``"constant"``, or known (0.1 means phi = 10).

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(..., 2)``, the pair (successes, trials), whole numbers, 0 <= k <= n, n >= 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import BetaBinomial
        >>> BetaBinomial(dispersion=0.5).loss(torch.zeros(1, 1), torch.tensor([[1.0, 2.0]]))
        tensor([1.0986])

    References:
        Williams (1982), Extra-binomial variation in logistic linear models.
        https://doi.org/10.2307/2347977
    """

    name = "beta_binomial"
    link_name = "logit"
    event_ndim = 1

    def __init__(self, *, dispersion: Dispersion = "predicted") -> None:
        super().__init__()
        self.spread = PositiveHead(dispersion)

    def outputs(self, target: TargetSpec) -> int:
        """2 with a predicted dispersion, else 1."""
        return 1 + self.spread.outputs

    def check(self, y: Tensor) -> None:
        """Pairs of whole numbers, successes <= trials."""
        check_trials(y, "Beta-binomial")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        _, unit = fit_beta_binomial(y, weight)
        observed = (weight > 0).reshape(-1, *(1,) * (y.ndim - 2))
        floor = 1e-4 / torch.where(observed, y[..., 1], 1).amax(0).clamp(min=1).to(unit)
        # Where the counts vary no more than the binomial's: a tenth of an extra variance.
        unit = torch.where(unit > 0, unit, 1e3 * floor)
        self.spread.observe(unit, torch.minimum(floor, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood mean and dispersion."""
        known = self.spread.known if self.spread.kind == "known" else None
        logit, dispersion = fit_beta_binomial(y, weight, known)
        p = pooled_probability(y, weight)
        successes = (weight.reshape(-1, *(1,) * (y.ndim - 2)) > 0) & (y[..., 0] > 0)
        failures = (weight.reshape(-1, *(1,) * (y.ndim - 2)) > 0) & (y[..., 0] < y[..., 1])
        both = successes.any(0) & failures.any(0)
        logit = torch.where(both, logit, torch.logit(p))
        return self.spread.append(logit, torch.ones_like(logit), dispersion)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y, event=(2,))
        law, successes = self.given(raw, y)
        return -law.log_prob(successes)

    def distribution(self, raw: Tensor, trials: Tensor | int = 1) -> BetaBinomialDistribution:
        """The successes in ``trials`` trials; by default in one."""
        logits = soft_clamp(raw[..., 0])
        return BetaBinomialDistribution(logits, self.spread(raw), as_trials(trials, raw))

    def given(self, raw: Tensor, y: Tensor) -> tuple[BetaBinomialDistribution, Tensor]:
        """The law of the successes in y's own trials, and those successes."""
        return self.distribution(raw, y[..., 1]), y[..., 0].to(raw.dtype)

    def point(self, raw: Tensor) -> Tensor:
        """The probability of a success, mu."""
        return torch.sigmoid(soft_clamp(raw[..., 0]))
