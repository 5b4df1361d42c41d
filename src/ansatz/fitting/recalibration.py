"""The one number that corrects the dispersion of a predictive distribution."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor

from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.averaged import STRETCHED
from ansatz.likelihoods.dispersion import PositiveHead

Kind = Literal["scale", "dispersion", "temperature"]


class Recalibration(NamedTuple):
    """The factor of a recalibrated predictive, and its effect on out-of-fold rows.

    Args:
        kind: ``"scale"`` stretches the mixture about its mean; ``"dispersion"`` multiplies the
            members' dispersions; ``"temperature"`` divides the log probabilities of classes.
        value: the number; 1 changes nothing.
        before: metrics of out-of-fold rows, evaluated by members that left them out.
        after: the same with the factor that these members need.

    Example:
        >>> from ansatz.fitting.recalibration import Recalibration
        >>> Recalibration("scale", 1.1, {"nll": 2.0}, {"nll": 1.9}).value
        1.1
    """

    kind: Kind
    value: float
    before: dict[str, float]
    after: dict[str, float]


def kind_of(likelihood: Likelihood) -> Kind | None:
    """Names what can be recalibrated in a likelihood; None for one without a dispersion."""
    if likelihood.name in ("bernoulli", "categorical", "von_mises"):
        return "temperature"
    if not likelihood.has_distribution or likelihood.name in ("cox", "discrete_hazard"):
        return None
    if likelihood.name in STRETCHED:
        return "scale"
    heads = (part for part in likelihood.modules() if isinstance(part, PositiveHead))
    return "dispersion" if any(True for _ in heads) else None


def optimism(rows: float, share: float = 1.0) -> float:
    r"""How much larger errors are on new rows than on those that stopped a network.

    .. math:: g = 1 - a + a\, \frac{m + d}{m - d}

    A network that is kept at its best evaluation on m held-out rows is fitted to these rows too.
    Its squared errors there are too small, as if d parameters had been estimated from them
    (Akaike's final prediction error). d = 2 fits simulations with 100 to 1,000 rows, linear and
    curved, of constant and of varying scale.

    Args:
        rows: m, the rows that stop one network.
        share: a, of the networks in the mixture; a linear model has no stop to choose.

    References:
        Akaike (1970), Statistical predictor identification, section 4.
        https://doi.org/10.1007/BF02506337
    """
    m = max(rows, 3 * _STOP)  # at most 2: folds of some rows say little
    return 1 + share * ((m + _STOP) / (m - _STOP) - 1)


_STOP = 2  # parameters that the choice of a stop counts for


def for_mixture(factor: float, removed: float, optimism: float = 1.0) -> float:
    r"""The factor that stretches a mixture, from the one that its out-of-fold predictive needs.

    A row is left out by one member, which predicts :math:`f_k`; new rows have the mean of all
    members, :math:`\bar f`. With a the share of the networks, :math:`1 - a` that of a linear model,
    and B the variance between members, both at the row, the mixture of all members is better and
    wider than that with one of them:

    .. math::
        \sum_k w_k (y - a f_k - (1 - a) l)^2 &= (y - a \bar f - (1 - a) l)^2 + a^2 B \\
        V &= \sum_k w_k V_k + a^2 B

    The first line is the ambiguity decomposition; V and :math:`V_k` are the variances of the
    mixtures. If the out-of-fold predictive is right when stretched by c, that is if its squared
    errors have the mean :math:`c^2 V_k`, and g times as much on rows that chose no stop, then the
    served mixture is right when stretched by

    .. math:: c'^2 = g c^2 (1 - r) - r, \qquad r = \text{mean of } a^2 B / V

    Without networks (a = 0) this is c.

    Args:
        factor: c.
        removed: r, the share of the mixture's variance that averaging removes from the errors.
        optimism: g.

    References:
        Krogh and Vedelsby (1995), Neural network ensembles, cross validation, and active learning.
    """
    square = optimism * factor**2
    # Members that disagree more than they err have no such sum: never below half the factor.
    return math.sqrt(max(square * (1 - removed) - removed, square / 4))


def for_dispersion(
    factor: float, variance: Callable[[float], Tensor], removed: Tensor, optimism: float = 1.0
) -> float:
    r"""The factor of the members' dispersions, from the one that the out-of-fold predictive needs.

    As :func:`for_mixture`, but the variance between members stays as it is, and the variance
    within them depends on the factor as the likelihood has it: c' solves

    .. math:: \text{mean of } \frac{g\,(V(c) - a^2 B) - a^2 B}{V(c')} = 1

    Args:
        factor: c.
        variance: factor -> V, the variance of the served mixture, ``(N,)``.
        removed: :math:`a^2 B`, ``(N,)``.
        optimism: g.
    """
    before = variance(factor)
    wanted = optimism * (before - removed) - removed
    valid = before.isfinite() & (before > 0)

    def gap(log_factor: float) -> float:
        ratio = (wanted / variance(math.exp(log_factor)))[valid]
        return float(ratio.mean()) - 1

    centre = math.log(factor)
    lower, upper = centre - math.log(4), centre + math.log(4)
    if not valid.any() or gap(lower) <= 0 or gap(upper) >= 0:
        return factor
    return math.exp(float(brentq(gap, lower, upper, xtol=1e-4)))


def find_factor(loss: Callable[[float], Tensor], weight: Tensor) -> float:
    r"""The factor with the least mean loss of rows that took no part in the fit.

    .. math:: \hat c = \arg\min_c \sum_i w_i \ell_i(c)

    Args:
        loss: factor -> the losses ``(N,)`` of all rows.
        weight: ``(N,)``.
    """

    def total(log_factor: float) -> float:
        losses = loss(math.exp(log_factor)).double()
        return float((weight.double() * losses).sum() / weight.sum())

    best = minimize_scalar(total, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-4})
    return math.exp(float(best.x)) if best.fun < total(0.0) else 1.0


def mean_of(losses: Tensor, weight: Tensor) -> float:
    """The weighted mean as a number."""
    with torch.no_grad():
        return float((weight.double() * losses.double()).sum() / weight.double().sum())
