"""Penalised linear models: ridge, lasso and elastic net under any likelihood."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.cox import Cox
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.absolute import is_kinked
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import Design, DesignRows, standardise, take_design_rows
from ansatz.linear.fit import LinearFitting
from ansatz.linear.linear_fit import LinearFit
from ansatz.linear.linear_likelihood import (
    NORMAL_TAILS,
    LinearLikelihood,
    Maximum,
    freedom,
    raw_of_freedom,
)
from ansatz.linear.newton import Minimum, minimise
from ansatz.linear.penalised_cox import fit_penalised_cox
from ansatz.linear.penalised_fit import WHY, PenalisedFit, PenaltyPath
from ansatz.linear.penalty_folds import Folds, mean_over_folds, weighted_folds
from ansatz.linear.proximal_newton import MIXINGS, PenalisedLoss

_SMOOTHED = 1e-3  # of the outcome's unit: the width over which a kink of the loss is rounded


def fit_penalised(
    likelihood: Likelihood,
    design: Tensor,
    y: Tensor,
    *,
    penalty: str,
    strength: float | None = None,
    folds: Folds = (),
    weight: Tensor | None = None,
    precision: Tensor | None = None,
    offset: Tensor | None = None,
    feature_names: Sequence[str] | None = None,
    dispersion: Any = "constant",
    class_names: Sequence[str] | None = None,
) -> PenalisedFit:
    r"""Fits a penalised linear model, its strength given or chosen by cross-validation.

    .. math:: \hat B = \arg\min_B \frac{1}{\sum_i w_i} \sum_i w_i\, \ell(\text{raw}_i, y_i)
              + \lambda \sum_{j > 0} \left(\alpha |b_j| + \frac{1 - \alpha}{2} b_j^2\right)

    with :math:`b_j` the coefficients of columns of standard deviation 1 (and of y in units of its
    standard deviation, where the link is the identity), :math:`\alpha` = 1 for the
    lasso, 0 for ridge and 1/2 for the elastic net. Intercepts and dispersions are not penalised.
    For exponential families :math:`\ell` has the dispersion of the model without x, so that the
    strength does not depend on the unit of y; the dispersion comes after. Other likelihoods
    estimate coefficients and dispersion in turn.

    Proximal Newton: each step minimises the quadratic approximation of the loss plus the penalty,
    by coordinate descent and an exact solution on the columns that remain. Strengths go from strong
    to weak, each started at the solution before.

    The dispersion, where there is one, is that of out-of-fold residuals: these contain the error of
    the estimates and the bias of the penalty, so that the predictive distribution does, too.

    Of ``cox`` the loss is minus the log partial likelihood; see
    :func:`~ansatz.linear.penalised_cox.fit_penalised_cox`.

    Args:
        likelihood: any likelihood or loss that is a sum over rows, or ``cox``; it is copied, not
            changed.
        design: ``(N, D)`` numbers, without an intercept.
        y: ``(N,)`` outcomes, or ``(N, L)`` where an outcome is a vector.
        penalty: ``"l1"``, ``"l2"`` or ``"elastic_net"``.
        strength: :math:`\lambda`; None chooses the one with the least out-of-fold loss.
        folds: training rows and rows to evaluate, of each fold.
        weight: ``(N,)`` frequency weights.
        precision: ``(N,)`` R's prior weights.
        offset: ``(N,)`` added to the linear predictor.
        feature_names: D names; default x1, x2, ...
        dispersion: ``"constant"``, or ``"predicted"`` from x.
        class_names: K names for class codes 0..K-1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_penalised
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> round(fit_penalised(Poisson(), x, y, penalty="l2", strength=1.0).path.strength, 1)
        1.0

    References:
        Friedman, Hastie and Tibshirani (2010), Regularization paths for generalized linear models
        via coordinate descent. https://doi.org/10.18637/jss.v033.i01
        Lee, Sun and Saunders (2014), Proximal Newton-type methods. https://arxiv.org/abs/1206.1623
    """
    if penalty not in MIXINGS:
        raise UsageError(
            f"penalty={penalty}: a linear model takes ridge, lasso or elastic_net, with a strength "
            "like lasso=0.1 or without one."
        )
    if not likelihood.additive and not isinstance(likelihood, Cox):
        raise UsageError(f"{likelihood.name} couples rows: it has no penalised linear model.")
    if strength is None and not len(folds):
        raise UsageError(f"penalty={penalty}: too few rows to choose its strength by; give one.")
    names = feature_names or [f"x{j + 1}" for j in range(design.shape[-1])]
    rows = DesignRows.of(design, y, weight, precision, offset, names, likelihood.event_ndim)
    if isinstance(likelihood, Cox):
        kept = weighted_folds(folds, weight, precision, len(y))
        return fit_penalised_cox(likelihood, rows, names, penalty, strength, kept)
    classes = len(class_names or ())
    if likelihood.name == "categorical" and not classes:
        classes = int(y.max()) + 1
    question = _Question(likelihood, names, dispersion, classes, penalty)
    whole = question.over(rows)
    strengths = whole.grid() if strength is None else torch.tensor([strength], dtype=torch.float64)
    parts = [
        question.fold(rows, fold, strengths)
        for fold in weighted_folds(folds, weight, precision, len(y))
    ]
    means = [part.losses @ part.weight / part.weight.sum() for part in parts]
    masses = [float(part.weight.sum()) for part in parts]
    losses, errors = mean_over_folds(means, masses, strengths)
    chosen = int(torch.nan_to_num(losses, nan=math.inf).argmin())
    thetas = whole.path(strengths[: chosen + 1], rough=True)
    theta = thetas[chosen] = whole.loss.minimum(thetas[chosen], float(strengths[chosen]))
    if whole.model.family is None and not bool(whole.loss.free.all()):
        for _ in range(5):  # coefficients and constants in turn
            theta = whole.loss.minimum(whole.with_constants(theta), float(strengths[chosen]))
        thetas[chosen] = theta
    if len(strengths) > chosen + 1:  # the weaker ones, for the drawing
        thetas += whole.path(strengths[chosen + 1 :], start=theta, rough=True)
    tables = torch.stack([whole.table(each) for each in thetas])
    coefficients = torch.stack([whole.design.restore(table, 0.0) for table in tables])
    standardised = torch.zeros_like(coefficients)
    standardised[:, whole.design.rows] = tables
    path = PenaltyPath(penalty, strengths, coefficients, standardised, losses, errors, chosen)
    return _finish(whole, theta, parts, path, class_names)


class _Question(NamedTuple):
    """A penalised model, before there are rows."""

    likelihood: Likelihood
    names: Sequence[str]
    dispersion: Any
    classes: int
    penalty: str

    def over(self, rows: DesignRows) -> "_Problem":
        """The penalised loss over some rows."""
        model = LinearLikelihood.of(
            self.likelihood, rows.y, rows.weight, self.dispersion, self.classes
        )
        design = standardise(rows.x, rows.weight, self.names)
        width = _SMOOTHED * float(model.unit[0]) if is_kinked(model.likelihood) else None
        criterion = model.criterion(rows, design.matrix, width)
        penalised = torch.zeros(criterion.size, dtype=torch.bool)
        unit = torch.ones(criterion.size, dtype=torch.float64)
        in_y = model.likelihood.link_name == "identity"
        for k, (part, columns) in enumerate(zip(criterion.parts, criterion.columns, strict=True)):
            first = part.start + (1 if columns.start == 0 else 0)
            penalised[first : part.stop] = True
            if in_y and k < model.outputs and k not in model.dispersions:
                unit[part] = model.unit[k]
        free = model.location_mask(criterion)
        for column in model.dispersions:
            free[criterion.parts[column]] = model.predicted
        total = rows.weight.sum()
        loss = PenalisedLoss(criterion, free, penalised & free, unit, self.penalty, total)
        return _Problem(model, rows, design, criterion, loss)

    def fold(
        self, rows: DesignRows, fold: tuple[NDArray[np.intp], NDArray[np.intp]], strengths: Tensor
    ) -> "_Fold":
        """The losses of rows that are left out."""
        learn, test = (take_design_rows(rows, index) for index in fold)
        problem = self.over(learn)
        criterion = problem.elsewhere(test)
        thetas = problem.path(strengths, rough=True)
        losses = torch.stack([criterion.terms(theta) for theta in thetas])
        predictors = torch.stack([criterion.linear(theta)[:, 0] for theta in thetas])
        return _Fold(fold[1], losses, predictors, test.weight)


class _Problem(NamedTuple):
    """The penalised loss over some rows."""

    model: LinearLikelihood
    rows: DesignRows
    design: Design
    criterion: Criterion
    loss: PenalisedLoss

    def start(self) -> Tensor:
        """The model without x."""
        criterion, model = self.criterion, self.model
        table = criterion.table(torch.zeros(criterion.size, dtype=torch.float64))
        table[0] = model.start
        if self.rows.offset is not None:
            weight = self.rows.weight
            table[0, 0] -= weight @ self.rows.offset / weight.sum()
        theta, others = criterion.pack(table), self.loss.free & ~self.loss.penalised
        return minimise(criterion, theta, others, model.unit, rescue=False).theta

    def grid(self) -> Tensor:
        """The strengths that are tried."""
        few = len(self.rows.y) < self.design.matrix.shape[1]
        return self.loss.grid(self.start(), few=few)

    def path(
        self, strengths: Tensor, start: Tensor | None = None, *, rough: bool = False
    ) -> list[Tensor]:
        """The minimum at each strength, each started at the one before."""
        theta, found = self.start() if start is None else start, []
        for strength in strengths.tolist():
            theta = self.loss.minimum(theta, strength, rough=rough)
            found.append(theta)
            theta = self.with_constants(theta, iterations=2)
        return found

    def with_constants(self, theta: Tensor, iterations: int = 20) -> Tensor:
        """The learned constants given the coefficients; those of a family come at the end."""
        if self.model.family is not None or bool(self.loss.free.all()):
            return theta
        criterion, unit = self.criterion, self.model.unit
        found = minimise(
            criterion, theta, ~self.loss.free, unit, iterations=iterations, rescue=False
        ).theta
        part = self.model.freedom_part(criterion)
        if part is not None and freedom(self.model.fitted(criterion, found)) > NORMAL_TAILS:
            found[part] = raw_of_freedom(self.model.likelihood, NORMAL_TAILS)
        return found

    def table(self, theta: Tensor) -> Tensor:
        """Coefficients of the standardised columns, ``(Q, P)``."""
        return self.criterion.table(theta)[:, : self.model.outputs]

    def elsewhere(self, rows: DesignRows) -> Criterion:
        """The loss of other rows."""
        x = (rows.x[:, self.design.kept] - self.design.centre) / self.design.scale
        return self.model.criterion(rows, torch.cat([torch.ones(len(x), 1).to(x), x], 1))


class _Fold(NamedTuple):
    """The losses of rows that were left out, at each strength, and their linear predictors."""

    rows: NDArray[np.intp]
    losses: Tensor  # (L, M)
    predictors: Tensor  # (L, M), the first raw number without the offset
    weight: Tensor  # (M,)


class _PenalisedFitting(LinearFitting):
    """What follows from the estimates, without standard errors."""

    def _covariance(self, phi: float | None) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
        entries = [
            (int(row), column)
            for column, columns in enumerate(self.criterion.columns[: self.model.outputs])
            for row in self.design.rows[columns]
        ]
        unknown = torch.full((len(entries), len(entries)), torch.nan, dtype=torch.float64)
        return unknown, tuple(entries)


def _finish(
    whole: _Problem,
    theta: Tensor,
    parts: list[_Fold],
    path: PenaltyPath,
    class_names: Sequence[str] | None,
) -> PenalisedFit:
    model, criterion = whole.model, whole.model.criterion(whole.rows, whole.design.matrix)
    rest = ~model.location_mask(criterion)
    if model.family is not None and bool(rest.any()):
        theta = minimise(criterion, theta, rest, model.unit).theta
    theta, loss = _out_of_fold_dispersion(whole, theta, parts, path)
    derivatives = criterion.derivatives(theta)
    minimum = Minimum(theta, derivatives, 1, True, 0.0, None, 0.0, False)
    every = torch.ones(criterion.size, dtype=torch.bool)
    found = Maximum(theta, derivatives, minimum, None, every, criterion.differenced)
    fitting = _PenalisedFitting(
        model, whole.rows, whole.design, "penalised", class_names, found=found
    )
    location = model.location_mask(criterion)
    fitting.rank = int((theta[location] != 0).sum())
    fit = fitting.result(null=True)
    parameters = int((theta != 0).sum())
    note = f"no standard errors and p-values: {WHY}."
    measures = {"strength": path.strength} | ({} if loss is None else {"out_of_fold": loss})
    plain_fit = replace(
        fit,
        parameters=parameters,
        uses_t=False,
        messages=(note,),
        iterations=len(path.strengths),
        measures=measures,
    )
    values = {field.name: getattr(plain_fit, field.name) for field in fields(LinearFit)}
    return PenalisedFit(**values, path=path)


def _out_of_fold_dispersion(
    whole: _Problem, theta: Tensor, parts: list[_Fold], path: PenaltyPath
) -> tuple[Tensor, float | None]:
    """The constants of the likelihood by the residuals of rows that were left out.

    And the mean loss of these rows with them; None where it is not known.
    """
    chosen = path.chosen
    loss = float(path.losses[chosen]) if parts else None
    model, rows = whole.model, whole.rows
    rest = ~model.location_mask(whole.criterion)
    predicted = any(model.kinds[column] == "x" for column in model.dispersions)
    held = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, np.intp)
    single = model.locations == 1 and model.outputs - len(model.dispersions) == 1
    if not bool(rest.any()) or not model.likelihood.has_distribution:
        return theta, loss
    if predicted or not single or 2 * len(held) < len(rows.y) or rows.precision is not None:
        return theta, loss if model.family is None else None
    some = take_design_rows(rows, held)
    offset = torch.cat([part.predictors[chosen] for part in parts])
    some = some._replace(offset=offset if some.offset is None else offset + some.offset)
    criterion = model.criterion(some, torch.ones(len(held), 1, dtype=torch.float64))
    table = criterion.table(torch.zeros(criterion.size, dtype=torch.float64))
    table[0] = whole.criterion.table(theta)[0]
    table[0, 0] = 0.0
    free = ~model.location_mask(criterion)
    found = minimise(criterion, criterion.pack(table), free, model.unit, rescue=False).theta
    full = whole.criterion.table(theta)
    fresh = criterion.table(found)
    for column, kind in enumerate(model.kinds):
        if kind == "one" or column >= model.outputs:
            full[0, column] = fresh[0, column]
    return whole.criterion.pack(full), float(criterion.value(found) / some.weight.sum())
