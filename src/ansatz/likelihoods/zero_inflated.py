"""Zero-inflated likelihoods: counts with more zeros than their likelihood explains."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Dispersed, Likelihood, expand_weight, weighted_mean
from ansatz.likelihoods.negative_binomial import NegativeBinomial, NegativeBinomialDistribution
from ansatz.likelihoods.poisson import Poisson, PoissonDistribution
from ansatz.likelihoods.special.logarithms import positive_rate, soft_cap
from ansatz.likelihoods.special.tensors import wide
from ansatz.spec import TargetSpec


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
        """The probability pi of a zero that is not a count."""
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
    the share of zeros that are not counts. The mean of y is :math:`(1 - \pi)\mu`. As for the
    Poisson likelihood, beyond raw[0] = 50 the exponential continues along its tangent.

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
    support = "counts"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """2: the log mean of the counts and the log odds of an extra zero."""
        return 2

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        r"""The maximum-likelihood constants, exactly.

        Where there are more zeros than :math:`e^{-\bar y}`, the likelihood reproduces their share,
        and mu is the rate of a zero-truncated Poisson distribution with the positive counts' mean.
        Elsewhere pi = 0 is best, whose log odds are infinite: pi is half a row then, and mu keeps
        the mean of y.
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

    def distribution(self, raw: Tensor) -> ZeroInflatedDistribution:
        """Poisson with log mean raw[0] behind extra zeros with log odds raw[1]."""
        return ZeroInflatedDistribution(PoissonDistribution(soft_cap(raw[..., 0])), raw[..., 1])


class ZeroInflatedNegativeBinomial(Dispersed):
    r"""Overdispersed counts among which some zeros have another cause.

    .. math:: P(0) = \pi + (1 - \pi) (1 + \alpha\mu)^{-1/\alpha}, \qquad
              P(y) = (1 - \pi)\, \text{NB}(y; \mu, \alpha) \quad (y \ge 1)

    with :math:`\log\mu` = raw[0], the log mean of the counts, their dispersion :math:`\alpha` =
    unit * softplus(raw[1]) + floor, so that they have the variance :math:`\mu + \alpha\mu^2`, and
    :math:`\pi = \sigma` (the last raw number), the share of zeros that are not counts. Unit and
    floor are the negative binomial distribution's. Overdispersion alone makes many zeros: where the
    counts do not need :math:`\pi` it goes to 0. raw[0] beyond 50 grows logarithmically.

    Args:
        dispersion: alpha ``"predicted"`` from x, ``"constant"``, or known.

    Shapes:
        - raw: ``(..., 3)``, or ``(..., 2)`` unless the dispersion is predicted.
        - y: ``(...)``, whole numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import ZeroInflatedNegativeBinomial
        >>> likelihood = ZeroInflatedNegativeBinomial(dispersion=1.0)
        >>> likelihood.loss(torch.zeros(1, 2), torch.zeros(1)).exp()  # P(0) = 1/2 + 1/2 * 1/2
        tensor([1.3333])

    References:
        Greene (1994), Accounting for excess zeros and sample selection in Poisson and negative
        binomial regression models. https://ssrn.com/abstract=1293115
    """

    name = "zero_inflated_negative_binomial"
    support = "counts"
    link_name = "log"

    def outputs(self, target: TargetSpec) -> int:
        """3 with a predicted dispersion, else 2."""
        return 2 + self.dispersion.outputs

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion, those of the negative binomial distribution."""
        counts = NegativeBinomial()
        counts.observe(y, weight)
        self.dispersion.observe(counts.dispersion.unit, counts.dispersion.floor)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constants.

        Where pi = 0 is best, whose log odds are infinite, pi is half a row, and mu keeps the mean
        of y.
        """
        y = y.to(weight.dtype)
        columns, rows = y.reshape(len(y), -1), expand_weight(weight, y).reshape(len(y), -1)
        solved = [self._solve_constant(columns[:, k], rows[:, k], k) for k in range(rows.shape[1])]
        shift, alpha = (torch.stack(part).to(y.dtype) for part in zip(*solved, strict=True))
        log_mean, logit = (shift[:, i].reshape(y.shape[1:]) for i in (0, -1))
        scale = Poisson().start(y, weight)[1][..., 0]
        shift, scale = self.dispersion.append(log_mean, scale, alpha.reshape(y.shape[1:]))
        last = logit.unsqueeze(-1)
        return torch.cat([shift, last], -1), torch.cat([scale, torch.ones_like(last)], -1)

    def _solve_constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[Tensor, Tensor]:
        """Raw numbers and alpha of one target, from its distinct counts."""
        counts, index = y[weight > 0].double().unique(return_inverse=True)
        rows = torch.zeros_like(counts).index_add_(0, index, weight[weight > 0].double())
        one = copy.deepcopy(self).double().cpu()
        for name in ("unit", "floor"):
            value = getattr(self.dispersion, name).double().reshape(-1)
            setattr(one.dispersion, name, value[min(target, len(value) - 1)])
        if one.dispersion.constant is not None:
            one.dispersion.constant = nn.Parameter(torch.zeros((), dtype=torch.float64))
        best = _without_inflation(one, counts, rows)
        if 0 < float(_positive_share(counts, rows)) < 1:  # else there is nothing to inflate
            for alpha in (0.1, 1.0):  # where the first leads nowhere, the second may
                found = _with_inflation(one, counts, rows, alpha)
                if found[0] < best[0]:
                    return found[1:]
        return best[1:]

    def distribution(self, raw: Tensor) -> ZeroInflatedDistribution:
        """Negative binomial with log mean raw[0] behind extra zeros."""
        alpha = self.dispersion(raw[..., :-1])
        counts = NegativeBinomialDistribution(soft_cap(raw[..., 0]), alpha)
        return ZeroInflatedDistribution(counts, raw[..., -1])


Fit = tuple[Tensor, Tensor, Tensor]  # mean loss, raw numbers, alpha


def _without_inflation(likelihood: ZeroInflatedNegativeBinomial, y: Tensor, weight: Tensor) -> Fit:
    """The negative binomial constant, with half a row of inflation."""
    likelihood, counts = copy.deepcopy(likelihood), NegativeBinomial(dispersion="constant").double()
    counts.dispersion.observe(likelihood.dispersion.unit, likelihood.dispersion.floor)
    (log_mean,), _ = counts.start(y, weight)
    alpha = counts.dispersion.value(y.dtype).detach()
    if likelihood.dispersion.kind == "known":
        alpha = likelihood.dispersion.known
    half = 0.5 / (weight.sum() + 1)
    shift, _ = likelihood.dispersion.append(
        log_mean - torch.log1p(-half), torch.ones_like(half), alpha
    )
    exact = counts.distribution(log_mean.unsqueeze(-1))
    if likelihood.dispersion.kind == "known":
        exact = NegativeBinomialDistribution(log_mean, alpha)
    loss = weighted_mean(-exact.log_prob(y), weight).detach()  # with pi = 0, its limit
    return loss, torch.cat([shift, torch.logit(half).reshape(1)]), alpha


def _with_inflation(
    likelihood: ZeroInflatedNegativeBinomial, y: Tensor, weight: Tensor, alpha: float
) -> Fit:
    """The minimum reached from a given alpha and the inflation that zeros leave room for."""
    likelihood = copy.deepcopy(likelihood)
    mean, share = weighted_mean(y, weight), _positive_share(y, weight)
    mu = (mean / share).clamp(min=1.1)
    none = (1 + alpha * mu) ** (-1 / alpha)
    pi = (1 - share / (1 - none)).clamp(0.02, 0.98)
    one = torch.ones_like(mu)
    first = likelihood.dispersion.append(mu.log(), one, alpha * one)
    shift, scale = (
        torch.cat([v, w.reshape(1)]) for v, w in zip(first, (pi.logit(), one), strict=True)
    )
    shift = fit_constant(likelihood, y, weight, shift, scale)
    loss = weighted_mean(likelihood.loss(shift.expand(len(y), -1), y), weight).detach()
    if float(shift[-1]) < -20:  # all the way to pi = 0, which is not for here
        loss = torch.full_like(loss, math.inf)
    return loss, shift, likelihood.dispersion(shift[:-1]).detach()


def _positive_share(y: Tensor, weight: Tensor) -> Tensor:
    return weighted_mean((y > 0).to(weight.dtype), weight)
