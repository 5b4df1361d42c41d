"""Penalised Cox regression: ridge, lasso and elastic net on the partial likelihood."""

import copy
import math
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.cox import Cox
from ansatz.linear.cox import PartialLikelihood, cox_result
from ansatz.linear.design import DesignRows, standardise, take_design_rows
from ansatz.linear.linear_fit import LinearFit
from ansatz.linear.newton import Minimum
from ansatz.linear.penalised_fit import WHY, PenalisedFit, PenaltyPath
from ansatz.linear.penalty_folds import Folds, mean_over_folds
from ansatz.linear.proximal_newton import PenalisedLoss


def fit_penalised_cox(
    likelihood: Cox,
    rows: DesignRows,
    names: Sequence[str],
    penalty: str,
    strength: float | None,
    folds: Folds,
) -> PenalisedFit:
    r"""Fits a penalised Cox model, its strength given or chosen by cross-validation.

    .. math:: \hat\beta = \arg\min_\beta -\frac{1}{\sum_i w_i} \ell(\beta)
              + \lambda \sum_j \left(\alpha |b_j| + \frac{1 - \alpha}{2} b_j^2\right)

    with :math:`\ell` the log partial likelihood, its ties, entries and strata as without a
    penalty, and :math:`b_j` the coefficients of columns of standard deviation 1. The out-of-fold
    loss of fold k is :math:`-(\ell(\hat\beta_{-k}) - \ell_{-k}(\hat\beta_{-k}))`, of all rows less
    that of the rows trained on: a fold alone has few risk sets.

    Args:
        likelihood: with its ties; it is copied, not changed.
        rows: of weight above 0.
        names: of the columns.
        penalty: ``"l1"``, ``"l2"`` or ``"elastic_net"``.
        strength: :math:`\lambda`; None chooses the one with the least out-of-fold loss.
        folds: training rows and rows to evaluate, of each fold.

    References:
        Verweij and van Houwelingen (1993), Cross-validation in survival analysis.
        Simon, Friedman, Hastie and Tibshirani (2011), Regularization paths for Cox's proportional
        hazards model via coordinate descent. https://doi.org/10.18637/jss.v039.i05
    """
    if rows.precision is not None:
        raise UsageError("precision= has no meaning for cox. For repeated rows use weight=.")
    base = copy.deepcopy(likelihood).double()
    base.check(rows.y)
    base.start(rows.y, rows.weight)  # refuses rows without an event
    design = standardise(rows.x, rows.weight, names)
    whole = _loss(design.matrix[:, 1:], rows, base, penalty)
    zero = torch.zeros(design.matrix.shape[1] - 1, dtype=torch.float64)
    if strength is None:
        strengths = whole.grid(zero, few=len(rows.y) < len(zero))
    else:
        strengths = torch.tensor([strength], dtype=torch.float64)
    tried = [_out_of_fold(base, rows, names, penalty, fold, strengths) for fold in folds]
    found = [each for each in tried if each is not None]
    means, masses = [mean for mean, _ in found], [mass for _, mass in found]
    losses, errors = mean_over_folds(means, masses, strengths)
    if strength is None and bool(losses.isnan().all()):
        raise UsageError(f"penalty={penalty}: too few events to choose its strength by; give one.")
    chosen = int(torch.nan_to_num(losses, nan=math.inf).argmin())
    thetas = _path(whole, zero, strengths)
    theta = thetas[chosen] = whole.minimum(thetas[chosen], float(strengths[chosen]))
    tables = torch.zeros(len(thetas), design.matrix.shape[1], 1, dtype=torch.float64)
    tables[:, 1:, 0] = torch.stack(thetas)
    coefficients = torch.stack([design.restore(table, 0.0) for table in tables])
    standardised = torch.zeros_like(coefficients)
    standardised[:, design.rows] = tables
    path = PenaltyPath(penalty, strengths, coefficients, standardised, losses, errors, chosen)
    log_risk = design.matrix[:, 1:] @ theta
    offset = 0.0 if rows.offset is None else rows.offset
    base.set_baseline(log_risk + offset, rows.y.double(), rows.weight)
    derivatives = whole.criterion.derivatives(theta, whole.free)
    minimum = Minimum(theta, derivatives, len(strengths), True, 0.0, None, 0.0, False)
    unknown = torch.full((len(theta), len(theta)), torch.nan, dtype=torch.float64)
    null = -float(whole.criterion.value(zero))
    fit = cox_result(base, rows, design, minimum, null, unknown, coefficients[chosen], "penalised")
    count = int((theta != 0).sum())
    loss = {} if math.isnan(float(losses[chosen])) else {"out_of_fold": float(losses[chosen])}
    fit = replace(
        fit,
        rank=count,
        parameters=count,
        messages=(f"no standard errors and p-values: {WHY}.",),
        measures={**fit.measures, "strength": path.strength, **loss},
    )
    values = {field.name: getattr(fit, field.name) for field in fields(LinearFit)}
    return PenalisedFit(**values, path=path)


def _loss(x: Tensor, rows: DesignRows, likelihood: Cox, penalty: str) -> PenalisedLoss:
    """The penalised partial likelihood of columns."""
    partial = PartialLikelihood(x, rows.y.double(), rows.weight, rows.offset, likelihood.ties)
    every = torch.ones(x.shape[1], dtype=torch.bool)
    return PenalisedLoss(
        partial,
        every,
        every,
        every.double(),
        penalty,
        rows.weight.sum(),  # no intercept
    )


def _path(loss: PenalisedLoss, theta: Tensor, strengths: Tensor) -> list[Tensor]:
    """The minimum at each strength, each started at the one before; rough along a path."""
    found, rough = [], len(strengths) > 1
    for strength in strengths.tolist():
        theta = loss.minimum(theta, strength, rough=rough)
        found.append(theta)
    return found


def _out_of_fold(
    likelihood: Cox,
    rows: DesignRows,
    names: Sequence[str],
    penalty: str,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
    strengths: Tensor,
) -> tuple[Tensor, float] | None:
    """The mean loss of the rows left out at each strength, and their weight.

    None where no row that is trained on has an event.
    """
    learn, test = (take_design_rows(rows, index) for index in fold)
    if not bool((learn.y[:, 1] > 0).any()):
        return None
    design = standardise(learn.x, learn.weight, names)
    part = _loss(design.matrix[:, 1:], learn, likelihood, penalty)
    every = (rows.x[:, design.kept] - design.centre) / design.scale
    whole = _loss(every, rows, likelihood, penalty)
    zero = torch.zeros(every.shape[1], dtype=torch.float64)
    mass = float(test.weight.sum())
    losses = [
        whole.criterion.value(theta) - part.criterion.value(theta)
        for theta in _path(part, zero, strengths)
    ]
    return torch.stack(losses) / mass, mass
