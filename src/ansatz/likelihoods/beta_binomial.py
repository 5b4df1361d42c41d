"""The beta-binomial distribution: successes whose probability varies beyond what x explains."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.beta import BetaDistribution
from ansatz.likelihoods.binomial import (
    BinomialDistribution,
    as_trials,
    check_trials,
    pooled_probability,
)
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, require_same_shape, weighted_mean
from ansatz.likelihoods.special.beta import log_beta_peak, log_sum_below, relative_entropy
from ansatz.likelihoods.special.gamma import digamma_gap
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.roots import count_search
from ansatz.likelihoods.special.tensors import in_double, wide

_BLOCK = 2**21  # probabilities of a sum at once: 16 MB


class BetaBinomialDistribution(Distribution):
    """Successes in ``trials`` trials of one probability, drawn from a beta distribution.

    The beta distribution has mean mu and precision phi = 1 / dispersion: a = mu phi, b = (1 - mu)
    phi. Two trials correlate by rho = 1 / (1 + phi). Tails are sums over the counts on that side of
    y which has the smaller mass, so that their cost grows with the number of trials.

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
        """Log probability: the binomial's, and what the variation of the probability adds.

        With a' = y + a, b' = n - y + b: relative_entropy(a', b'; mu) + peak(a, b) - peak(a', b'),
        all small where phi is large.
        """
        binomial = BinomialDistribution(self.logits, self.trials).log_prob(y)
        count = (y >= 0) & (y <= self.trials) & (y == y.floor())
        y, (a, b) = torch.where(count, y, 0.0), self.shapes
        a_more, b_more = a + y, b + (self.trials - y)
        log_p, log_q = logsigmoid(self.logits), logsigmoid(-self.logits)
        extra = relative_entropy(a_more, b_more, log_p, log_q)
        extra = extra + log_beta_peak(a, b) - log_beta_peak(a_more, b_more)
        return torch.where(count, binomial + extra, -math.inf)

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
        """log P(Y <= y) and log P(Y > y), in double precision; the smaller as a sum."""
        y, *parameters = torch.broadcast_tensors(
            *wide(y, self.logits, self.dispersion, self.trials)
        )
        distribution, n = BetaBinomialDistribution(*parameters), parameters[2]
        if y.is_meta:
            return torch.empty_like(y), torch.empty_like(y)
        inside = (y >= 0) & (y < n)
        k = torch.where(inside, y.floor(), 0.0)
        upper = k >= distribution.mean.detach()
        log_sum = distribution._log_tail(k, upper)
        # Where most of the mass is on the far side of the mean, the other sum is the smaller.
        most = (log_sum > -0.6) & inside & (n > 0)
        if most.any():
            rest = BetaBinomialDistribution(*(v[most] for v in parameters))
            log_sum = log_sum.masked_scatter(most, rest._log_tail(k[most], ~upper[most]))
            upper = upper ^ most
        log_sum = torch.where(inside, log_sum, -1.0)
        other = torch.log1p(-log_sum.exp().clamp(max=1.0))
        low, high = torch.where(upper, other, log_sum), torch.where(upper, log_sum, other)
        low = torch.where(inside, low, torch.where(y < 0, -math.inf, 0.0))
        return low, torch.where(inside, high, torch.where(y < 0, 0.0, -math.inf))

    def _log_tail(self, k: Tensor, upper: Tensor) -> Tensor:
        """log P(Y > k) where ``upper`` holds, else log P(Y <= k); 0 <= k < n."""
        # n - Y has a distribution of the same kind, with the shapes exchanged.
        logits = torch.where(upper, -self.logits, self.logits)
        k = torch.where(upper, (self.trials - 1 - k).clamp(min=0), k)
        distribution = BetaBinomialDistribution(logits, self.dispersion, self.trials)
        return distribution.log_prob(k) + log_sum_below(k, *distribution.shapes, self.trials)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(Y <= y), accurate in both tails and differentiable in mu and phi."""
        return self._log_tails(y)[0].to(y)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), accurate in both tails and differentiable in mu and phi."""
        return self._log_tails(y)[1].to(y)

    @in_double
    def _solve(self, q: Tensor) -> Tensor:
        z = torch.special.ndtri(q.clamp(1e-300, 1 - 1e-16))
        guess = (self.mean + z * self.stddev - 0.5).ceil().clamp(min=0)
        return count_search(self, q, torch.minimum(guess, self.trials), self.trials)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """The sum of (F(k) - 1[k >= y])^2 over the counts, and the distance of a y beyond them."""
        total, mass = torch.zeros_like(y), torch.zeros_like(y)
        for k, term in self._blocks(y.shape):
            reached = mass + term.exp().cumsum(0)
            total = total + torch.where(k < y, reached, 1 - reached).square().sum(0)
            mass = reached[-1]
        return total

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """A probability from the beta distribution, then a count."""
        p = BetaDistribution(self.logits, self.dispersion)._draw(size, generator)
        return torch.binomial(self.trials.expand_as(p).contiguous(), p, generator=generator)


class BetaBinomial(Dispersed):
    r"""k successes of n trials, more variable than the binomial distribution allows.

    .. math:: p(k) = \binom{n}{k} \frac{B(k + a, n - k + b)}{B(a, b)}, \qquad
              a = \mu\phi, \quad b = (1-\mu)\phi

    with :math:`\mathrm{logit}\,\mu` = raw[0] (logit link) and the dispersion :math:`1/\phi` = unit
    * softplus(raw[1]) + floor, as for the beta distribution; the trials of a row correlate by
    :math:`\rho = 1/(1+\phi)`, and :math:`1/\phi \to 0` is the binomial distribution. The unit is
    the maximum-likelihood :math:`1/\phi` of the constant model; the floor is 1e-4 over the largest
    number of trials, at most half the unit: there the variance exceeds the binomial's by less than
    1e-4 of it. raw[0] beyond +-50 grows logarithmically. One trial in every row does not
    identify :math:`\phi`.

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
        self.dispersion.observe(unit, torch.minimum(floor, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood mean and dispersion."""
        known = self.dispersion.known if self.dispersion.kind == "known" else None
        logit, dispersion = fit_beta_binomial(y, weight, known)
        p = pooled_probability(y, weight)
        successes = (weight.reshape(-1, *(1,) * (y.ndim - 2)) > 0) & (y[..., 0] > 0)
        failures = (weight.reshape(-1, *(1,) * (y.ndim - 2)) > 0) & (y[..., 0] < y[..., 1])
        both = successes.any(0) & failures.any(0)
        logit = torch.where(both, logit, torch.logit(p))
        return self.dispersion.append(logit, torch.ones_like(logit), dispersion)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y, event=(2,))
        distribution, successes = self.given(raw, y)
        return -distribution.log_prob(successes)

    def distribution(self, raw: Tensor, trials: Tensor | int = 1) -> BetaBinomialDistribution:
        """The successes in ``trials`` trials; by default in one."""
        logits = soft_clamp(raw[..., 0])
        return BetaBinomialDistribution(logits, self.dispersion(raw), as_trials(trials, raw))

    def given(self, raw: Tensor, y: Tensor) -> tuple[BetaBinomialDistribution, Tensor]:
        """The distribution of the successes in y's own trials, and those successes."""
        return self.distribution(raw, y[..., 1]), y[..., 0].to(raw.dtype)

    def point(self, raw: Tensor) -> Tensor:
        """The probability of a success, mu."""
        return torch.sigmoid(soft_clamp(raw[..., 0]))


def fit_beta_binomial(
    y: Tensor, weight: Tensor, known: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Fits logit(mu) and 1/phi; 1/phi is 0 where no extra variance shows.

    Newton's method in (logit mu, log phi), the Hessian shifted where it is not negative definite,
    steps of at most 2. At :math:`1/\phi = 0` the slope of the log-likelihood in it is half the mean
    of :math:`k(k-1)/p + (n-k)(n-k-1)/(1-p) - n(n-1)`; where that is not positive, the binomial
    distribution is the best.
    """
    dtype, weight = weight.dtype, weight.double()
    p = pooled_probability(y.double(), weight)
    # where, not multiplication: an unobserved row may hold nan
    observed = (weight > 0).reshape(-1, *(1,) * (y.ndim - 1))
    k, n = torch.where(observed, y.double(), 1.0).unbind(-1)
    rest = n - k
    slope = k * (k - 1) / p + rest * (rest - 1) / (1 - p) - n * (n - 1)
    extra = weighted_mean(slope, weight)
    over = extra > 1e-10 * weighted_mean(n * (n - 1), weight)
    free = over if known is None else torch.zeros_like(over)
    moment = extra / weighted_mean(n * (n - 1), weight).clamp(min=1)  # near 1/phi where small
    dispersion = moment.clamp(1e-6, 1.0) if known is None else known.double().expand_as(p)
    eta, scale = torch.logit(p), -torch.log(torch.where(over, dispersion, 1.0))
    if known is not None:
        scale = -known.double().log().expand_as(p)
    for _ in range(200):
        step = _newton(eta, scale, k, rest, weight, free)
        eta, scale = (eta + step[0]).clamp(-60, 60), (scale + step[1]).clamp(-40, 40)
        if bool((step.abs() < 1e-14 * (1 + eta.abs())).all()):
            break
    if known is None:
        eta = torch.where(over, eta, torch.logit(p))
        return eta.to(dtype), torch.where(over, (-scale).exp(), 0).to(dtype)
    return eta.to(dtype), known.to(dtype).expand_as(eta)


def _newton(
    eta: Tensor, scale: Tensor, k: Tensor, rest: Tensor, weight: Tensor, free: Tensor
) -> Tensor:
    """The step in (eta, scale), ``(2, ...)``; that in scale is 0 where it is not free."""
    mu, nu, phi = torch.sigmoid(eta), torch.sigmoid(-eta), scale.exp()
    a, b, c = (v.expand_as(k) for v in (mu * phi, nu * phi, phi))
    n = k + rest

    def mean(value: Tensor) -> Tensor:
        return weighted_mean(value, weight)

    both = digamma_gap(c, n)
    in_a, in_b = mean(digamma_gap(a, k) - both), mean(digamma_gap(b, rest) - both)
    cross = -mean(_trigamma_gap(c, n))
    in_aa, in_bb = mean(_trigamma_gap(a, k)) + cross, mean(_trigamma_gap(b, rest)) + cross
    # da / deta = mu nu phi = -db / deta; da / dscale = a, db / dscale = b
    t, a, b = mu * nu * phi, mu * phi, nu * phi
    g_eta, g_scale = t * (in_a - in_b), a * in_a + b * in_b
    h_ee = t * t * (in_aa - 2 * cross + in_bb) + t * (nu - mu) * (in_a - in_b)
    h_es = t * (a * in_aa + (b - a) * cross - b * in_bb) + t * (in_a - in_b)
    h_ss = a * a * in_aa + 2 * a * b * cross + b * b * in_bb + g_scale
    h_es, h_ss = torch.where(free, h_es, 0.0), torch.where(free, h_ss, -1.0)
    g_scale = torch.where(free, g_scale, 0.0)
    half, radius = (h_ee + h_ss) / 2, (((h_ee - h_ss) / 2) ** 2 + h_es**2).sqrt()
    largest = half + radius  # eigenvalue; below 0 near a maximum
    size = half.abs() + radius
    shift = torch.where(largest < 0, 0.0, largest + 0.1 * size + 1e-12)
    h_ee, h_ss = h_ee - shift, h_ss - shift
    determinant = h_ee * h_ss - h_es**2
    step = -torch.stack(
        [(h_ss * g_eta - h_es * g_scale), (h_ee * g_scale - h_es * g_eta)]
    ) / torch.where(determinant > 0, determinant, 1e-300)
    return torch.nan_to_num(step).clamp(-2, 2)


def _trigamma_gap(a: Tensor, b: Tensor) -> Tensor:
    """trigamma(a + b) - trigamma(a), by its integral's midpoint where b is small beside a."""
    direct = torch.special.polygamma(1, a + b) - torch.special.polygamma(1, a)
    slight = b * torch.special.polygamma(2, a + b / 2)
    return torch.where(b < 1e-4 * a, slight, direct)
