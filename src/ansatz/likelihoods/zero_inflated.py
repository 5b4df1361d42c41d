"""Zero-inflated likelihoods: counts with more zeros than their likelihood explains."""

import copy
import math

import torch
from torch import Tensor, nn

from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
)
from ansatz.likelihoods.negative_binomial import NegativeBinomial, NegativeBinomialDistribution
from ansatz.likelihoods.poisson import Poisson, PoissonDistribution
from ansatz.likelihoods.special.logarithms import positive_rate, soft_cap
from ansatz.likelihoods.support import refuse_outside
from ansatz.likelihoods.zero_inflated_distribution import ZeroInflatedDistribution
from ansatz.spec import TargetSpec


class ZeroInflatedPoisson(Likelihood):
    r"""Poisson counts among which some zeros have another cause.

    .. math:: P(0) = \pi + (1 - \pi) e^{-\mu}, \qquad
              P(y) = (1 - \pi) \frac{e^{-\mu} \mu^y}{y!} \quad (y \ge 1)

    with :math:`\log\mu` = raw[0], the log mean of the counts, and :math:`\pi = \sigma` (raw[1]),
    the share of zeros that are no counts. The mean of y is :math:`(1 - \pi)\mu`. As for the Poisson
    likelihood, beyond raw[0] = 50 the exponential continues along its tangent.

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

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

    def distribution(self, raw: Tensor) -> ZeroInflatedDistribution:
        """Poisson with log mean raw[0] behind extra zeros with log odds raw[1]."""
        return ZeroInflatedDistribution(PoissonDistribution(soft_cap(raw[..., 0])), raw[..., 1])


class ZeroInflatedNegativeBinomial(Likelihood):
    r"""Overdispersed counts among which some zeros have another cause.

    .. math:: P(0) = \pi + (1 - \pi) (1 + \alpha\mu)^{-1/\alpha}, \qquad
              P(y) = (1 - \pi)\, \text{NB}(y; \mu, \alpha) \quad (y \ge 1)

    with :math:`\log\mu` = raw[0], the log mean of the counts, their dispersion :math:`\alpha` =
    unit * softplus(raw[1]) + floor, so that they have the variance :math:`\mu + \alpha\mu^2`, and
    :math:`\pi = \sigma` (the last raw number), the share of zeros that are no counts. Unit and
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
    link_name = "log"

    def __init__(self, *, dispersion: Dispersion = "predicted") -> None:
        super().__init__()
        self.dispersion = PositiveHead(dispersion)

    def outputs(self, target: TargetSpec) -> int:
        """3 with a predicted dispersion, else 2."""
        return 2 + self.dispersion.outputs

    def check(self, y: Tensor) -> None:
        """Whole numbers >= 0."""
        _refuse_no_counts(y, self.name)

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

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

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


def _refuse_no_counts(y: Tensor, name: str) -> None:
    bad = ~(y.isfinite() & (y >= 0) & (y == y.round()))
    refuse_outside(bad, y, f"Counts of {name} must be whole numbers >= 0")
