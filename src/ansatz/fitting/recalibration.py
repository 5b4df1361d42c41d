"""One number that makes a predictive distribution as sure as it may be."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from scipy.optimize import minimize_scalar
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


def for_mixture(kind: Kind, factor: float, disagreement: float) -> float:
    r"""The factor of a mixture, from the one that a single member needs.

    A member's error has a part that averaging removes, :math:`B`, the variance between members, and
    the mixture's variance already contains that part: with :math:`\rho = B / W`, W the variance
    within members, the mixture is right when stretched by

    .. math:: c' = \sqrt{\frac{c^2 - \rho}{1 + \rho}}

    if a member is right when stretched by c. For other kinds, where no such sum holds, a c above 1
    is halved on the logarithmic scale; one below 1 is kept, as a mixture is no surer than members
    that were not sure enough.
    """
    if kind != "scale":
        return min(factor, math.sqrt(factor))
    # Disagreement is measured on rows that most members know: never below half the factor.
    return math.sqrt(max((factor**2 - disagreement) / (1 + disagreement), (factor / 2) ** 2))


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
