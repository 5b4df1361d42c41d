"""Penalised linear models: ridge, lasso and elastic net under any likelihood."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.absolute import is_kinked
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import Design, DesignRows
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
from ansatz.linear.summary import Summary, align, format_column, plain

MIXINGS = {"l2": 0.0, "elastic_net": 0.5, "l1": 1.0}  # the share of the absolute values
NAMES = {"l2": "ridge", "elastic_net": "elastic net", "l1": "lasso"}
_GRID = {"l2": 20, "elastic_net": 30, "l1": 30}
_SMOOTHED = 1e-3  # of the outcome's unit: the width over which a kink of the loss is rounded

Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]


class PenaltyPath(NamedTuple):
    """The penalised coefficients along a grid of strengths, and their out-of-fold losses.

    Args:
        penalty: ``"l1"``, ``"l2"`` or ``"elastic_net"``.
        strengths: ``(L,)``, from strong to weak.
        coefficients: ``(L, D + 1, P)``, of the columns as they came.
        standardised: ``(L, D + 1, P)``, of columns with standard deviation 1.
        losses: ``(L,)``, the mean loss of rows that were left out; nan where no folds were given.
        errors: ``(L,)``, their standard errors over the folds.
        chosen: the place of the strength that was taken.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_penalised
        >>> x, y = torch.eye(4), torch.tensor([0.0, 1.0, 2.0, 9.0])
        >>> fit = fit_penalised(Normal(dispersion="constant"), x, y, penalty="l1", strength=0.1)
        >>> fit.path.strengths
        tensor([0.1000], dtype=torch.float64)
    """

    penalty: str
    strengths: Tensor
    coefficients: Tensor
    standardised: Tensor
    losses: Tensor
    errors: Tensor
    chosen: int

    @property
    def strength(self) -> float:
        """The strength that was taken."""
        return float(self.strengths[self.chosen])


@dataclass(frozen=True)
class PenalisedFit(LinearFit):
    """A penalised linear model; it has no standard errors.

    Args:
        path: the coefficients along the strengths.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_penalised
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fit_penalised(Poisson(), x, y, penalty="l1", strength=5.0).coefficients[1]
        tensor([0.], dtype=torch.float64)
    """

    path: PenaltyPath | None = None

    def confint(self, level: float = 0.95) -> Tensor:
        raise UsageError(f"a penalised fit has no confidence intervals: {WHY}.")

    def summary(self, call: str = "", rows_dropped: int = 0) -> Summary:
        return PenalisedSummary(self, call=call, rows_dropped=rows_dropped)


WHY = (
    "a penalty biases the coefficients towards 0 and selects among the columns by the same rows, "
    "and the formulas of standard errors and p-values account for neither"
)


class PenalisedSummary(Summary):
    """The summary of a penalised fit: its penalty and its coefficients, without p-values."""

    fit: PenalisedFit

    def __str__(self) -> str:
        blocks = super().__str__().split("\n\n")
        return "\n\n".join(block for block in blocks if "Newton" not in block)

    def _likelihood(self) -> str:
        path = self.fit.path
        assert path is not None
        how = "given" if len(path.strengths) == 1 else "chosen by cross-validation"
        likelihood = self.fit.likelihood
        noun = "Likelihood" if likelihood.has_distribution else "Loss"
        return (
            f"{noun}: {likelihood.name}, link {self.fit.link}\n"
            f"Penalty: {NAMES[path.penalty]}, strength {path.strength:.4g} ({how})"
        )

    def _tables(self) -> list[list[str]]:
        fit, path, blocks = self.fit, self.fit.path, []
        assert path is not None
        for column, output in enumerate(fit.outputs):
            shown = sorted(row for row, own in fit.entries if own == column)
            if len(shown) < 2:
                continue
            kept = [j for j in shown if j == 0 or float(fit.coefficients[j, column]) != 0]
            estimates = format_column(fit.coefficients[kept, column].tolist())
            unit = format_column(path.standardised[path.chosen, kept, column].tolist())
            rows = [
                [plain(fit.names[j]), estimates[i], "" if j == 0 else unit[i]]
                for i, j in enumerate(kept)
            ]
            of = f" of {plain(output)}" if len(fit.outputs) > 1 else ""
            block = [f"Coefficients{of}:", *align(["", "Estimate", "per sd"], rows)]
            if len(kept) < len(shown):
                block.append(f"({len(shown) - len(kept)} of {len(shown) - 1} columns have 0)")
            blocks.append(block)
        return blocks

    def _deviances(self) -> list[str]:
        return [line for line in super()._deviances() if not line.startswith("AIC")]


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

    Args:
        likelihood: any likelihood or loss that is a sum over rows; it is copied, not changed.
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
    if not likelihood.additive:
        raise UsageError(f"{likelihood.name} couples rows: it has no penalised linear model.")
    if strength is None and not len(folds):
        raise UsageError(f"penalty={penalty}: too few rows to choose its strength by; give one.")
    names = feature_names or [f"x{j + 1}" for j in range(design.shape[-1])]
    rows = DesignRows.of(design, y, weight, precision, offset, names, likelihood.event_ndim)
    classes = len(class_names or ())
    if likelihood.name == "categorical" and not classes:
        classes = int(y.max()) + 1
    whole = _Problem.of(likelihood, rows, names, dispersion, classes, penalty)
    strengths = whole.grid() if strength is None else torch.tensor([strength], dtype=torch.float64)
    parts = [
        _Fold.of(likelihood, rows, names, dispersion, classes, penalty, fold, strengths)
        for fold in _kept(folds, weight, precision, len(y))
    ]
    losses, errors = _averages(parts, strengths)
    chosen = int(torch.nan_to_num(losses, nan=math.inf).argmin())
    thetas = whole.path(strengths[: chosen + 1], rough=True)
    theta = thetas[chosen] = whole.minimum(thetas[chosen], float(strengths[chosen]))
    if whole.model.family is None and not bool(whole.free.all()):
        for _ in range(5):  # coefficients and constants in turn
            theta = whole.minimum(whole.with_constants(theta), float(strengths[chosen]))
        thetas[chosen] = theta
    if len(strengths) > chosen + 1:  # the weaker ones, for the drawing
        thetas += whole.path(strengths[chosen + 1 :], start=theta, rough=True)
    tables = torch.stack([whole.table(each) for each in thetas])
    coefficients = torch.stack([whole.design.restore(table, 0.0) for table in tables])
    standardised = torch.zeros_like(coefficients)
    standardised[:, whole.design.rows] = tables
    path = PenaltyPath(penalty, strengths, coefficients, standardised, losses, errors, chosen)
    return _finish(whole, theta, parts, path, class_names)


class _Problem(NamedTuple):
    """The penalised loss over some rows."""

    model: LinearLikelihood
    rows: DesignRows
    design: Design
    criterion: Criterion
    free: Tensor  # (T,) what the path estimates
    penalised: Tensor  # (T,)
    unit: Tensor  # (T,) of the coefficients: that of y where the link is the identity
    penalty: str

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        rows: DesignRows,
        names: Sequence[str],
        dispersion: Any,
        classes: int,
        penalty: str,
    ) -> "_Problem":
        model = LinearLikelihood.of(likelihood, rows.y, rows.weight, dispersion, classes)
        design = standardise(rows.x, rows.weight, names)
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
        return cls(model, rows, design, criterion, free, penalised & free, unit, penalty)

    @property
    def mixing(self) -> float:
        return MIXINGS[self.penalty]

    def start(self) -> Tensor:
        """The model without x."""
        criterion, model = self.criterion, self.model
        table = criterion.table(torch.zeros(criterion.size, dtype=torch.float64))
        table[0] = model.start
        if self.rows.offset is not None:
            weight = self.rows.weight
            table[0, 0] -= weight @ self.rows.offset / weight.sum()
        theta, others = criterion.pack(table), self.free & ~self.penalised
        return minimise(criterion, theta, others, model.unit, rescue=False).theta

    def grid(self) -> Tensor:
        """Strengths from the least that leaves no column to a thousandth of it.

        Ridge never leaves a column out: its strengths go from 100 to 1e-4.
        """
        count = _GRID[self.penalty]
        if self.mixing == 0:
            return torch.logspace(2, -4, count, dtype=torch.float64)
        _, gradient = self.criterion.gradient(self.start())
        gradient = (gradient * self.unit)[self.penalised]
        most = gradient.abs().max() if len(gradient) else 1.0
        most = float(most) / float(self.rows.weight.sum()) / self.mixing
        least = -2.0 if len(self.rows.y) < self.design.matrix.shape[1] else -3.0
        return max(most, 1e-12) * torch.logspace(0, least, count, dtype=torch.float64)

    def path(
        self, strengths: Tensor, start: Tensor | None = None, *, rough: bool = False
    ) -> list[Tensor]:
        """The minimum at each strength, each started at the one before."""
        theta, found = self.start() if start is None else start, []
        for strength in strengths.tolist():
            theta = self.minimum(theta, strength, rough=rough)
            found.append(theta)
            theta = self.with_constants(theta, iterations=2)
        return found

    def with_constants(self, theta: Tensor, iterations: int = 20) -> Tensor:
        """The learned constants given the coefficients; those of a family come at the end."""
        if self.model.family is not None or bool(self.free.all()):
            return theta
        criterion, unit = self.criterion, self.model.unit
        found = minimise(
            criterion, theta, ~self.free, unit, iterations=iterations, rescue=False
        ).theta
        part = self.model.freedom_part(criterion)
        if part is not None and freedom(self.model.fitted(criterion, found)) > NORMAL_TAILS:
            found[part] = raw_of_freedom(self.model.likelihood, NORMAL_TAILS)
        return found

    def value(self, theta: Tensor, strength: float) -> float:
        loss = float(self.criterion.value(theta) / self.rows.weight.sum())
        return loss + self.size(theta, strength)

    def size(self, theta: Tensor, strength: float) -> float:
        """The penalty."""
        b = (theta / self.unit)[self.penalised]
        size = self.mixing * b.abs().sum() + 0.5 * (1 - self.mixing) * b.square().sum()
        return strength * float(size)

    def minimum(self, theta: Tensor, strength: float, *, rough: bool = False) -> Tensor:
        """Proximal Newton steps, halved until the penalised loss falls.

        A rough minimum is enough for the loss of other rows: it ends when the loss falls as much as
        the quadratic approximation says.
        """
        free, total = self.free, self.rows.weight.sum()
        value, damping = self.value(theta, strength), 0.0
        for _ in range(100):
            derivatives = self.criterion.derivatives(theta, free)
            g = derivatives.gradient[free] / total
            h = derivatives.hessian[free][:, free] / total
            scale = h.diagonal().abs().clamp(min=1e-12)
            h = h + torch.diag(damping * scale)
            u, inside = self.unit[free], self.penalised[free]
            b, step = h @ theta[free] - g, torch.zeros_like(theta)
            found = quadratic_minimum(u.unsqueeze(1) * h * u, u * b, inside, strength, self.mixing)
            step[free] = u * found - theta[free]
            if float((step[free] * scale.sqrt()).abs().max()) < 1e-9:
                break
            length = 1.0
            while length > 1e-6:
                trial = self.value(theta + length * step, strength)
                if trial <= value + 1e-13 * abs(value):
                    break
                length /= 2
            else:
                if damping > 1e4:
                    break
                damping = max(10 * damping, 1e-3)
                continue
            damping = damping / 10 if damping > 1e-6 else 0.0
            expected = float(g @ step[free] + 0.5 * step[free] @ h @ step[free])
            expected += self.size(theta + step, strength) - self.size(theta, strength)
            fell, theta, value = trial - value, theta + length * step, trial
            if rough and length == 1 and (abs(fell - expected) < 0.1 * abs(fell) or -fell < 1e-5):
                break
        return theta

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

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        rows: DesignRows,
        names: Sequence[str],
        dispersion: Any,
        classes: int,
        penalty: str,
        fold: tuple[NDArray[np.intp], NDArray[np.intp]],
        strengths: Tensor,
    ) -> "_Fold":
        learn, test = (take_design_rows(rows, index) for index in fold)
        problem = _Problem.of(likelihood, learn, names, dispersion, classes, penalty)
        criterion = problem.elsewhere(test)
        thetas = problem.path(strengths, rough=True)
        losses = torch.stack([criterion.terms(theta) for theta in thetas])
        predictors = torch.stack([criterion.linear(theta)[:, 0] for theta in thetas])
        return cls(fold[1], losses, predictors, test.weight)


def standardise(x: Tensor, weight: Tensor, names: Sequence[str]) -> Design:
    """All columns but constants, centred and scaled; columns that others determine stay."""
    centre = weight @ x / weight.sum()
    scale = (weight @ (x - centre).square() / weight.sum()).sqrt()
    length = x.abs().amax(0) if len(x) else centre.abs()
    varies = scale > 1e-9 * length.clamp(min=1e-300)
    kept = varies.nonzero().squeeze(1)
    matrix = torch.cat([torch.ones_like(x[:, :1]), ((x - centre) / scale)[:, kept]], 1)
    if not x.shape[1]:
        matrix = torch.ones(len(x), 1, dtype=x.dtype)
    aliased = {names[int(j)]: "a constant" for j in (~varies).nonzero().squeeze(1)}
    return Design(matrix, tuple(names), kept, centre[kept], scale[kept], aliased)


def quadratic_minimum(
    h: Tensor, b: Tensor, penalised: Tensor, strength: float, mixing: float
) -> Tensor:
    r"""Minimises :math:`\frac12 u^\top H u - b^\top u` plus the penalty of some of u.

    What is not penalised is eliminated; then coordinate descent finds the columns that remain and
    their signs, and a linear system their values.
    """
    ridge = strength * (1 - mixing)
    if mixing == 0 or strength == 0 or not bool(penalised.any()):
        return torch.linalg.lstsq(
            h + torch.diag(ridge * penalised.to(h)), b.unsqueeze(1), driver="gelsd"
        ).solution.squeeze(1)
    a = ~penalised
    gain = torch.linalg.solve(h[a][:, a], torch.cat([h[a][:, penalised], b[a].unsqueeze(1)], 1))
    s = h[penalised][:, penalised] - h[penalised][:, a] @ gain[:, :-1]
    c = b[penalised] - h[penalised][:, a] @ gain[:, -1]
    v = _soft_minimum((s + s.T) / 2, c, strength * mixing, ridge)
    found = torch.zeros_like(b)
    found[penalised] = v
    found[a] = gain[:, -1] - gain[:, :-1] @ v
    return found


def _soft_minimum(s: Tensor, c: Tensor, lasso: float, ridge: float) -> Tensor:
    """Minimises v' S v / 2 - c' v + lasso |v| + ridge |v|^2 / 2."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import enet_path

    values, vectors = torch.linalg.eigh(s)
    keep = values > 1e-12 * values[-1].clamp(min=1e-300)
    root = values[keep].sqrt()
    if not len(root):
        return torch.zeros_like(c)
    x, y = root.unsqueeze(1) * vectors[:, keep].T, (vectors[:, keep].T @ c) / root
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, paths, _ = enet_path(
            np.asfortranarray(x.numpy()),
            y.numpy().copy(),
            l1_ratio=lasso / (lasso + ridge),
            alphas=[(lasso + ridge) / len(root)],
            tol=1e-10,
            max_iter=10_000,
        )
    v = torch.from_numpy(paths[:, 0].copy())
    for _ in range(20):  # exact on what remains, where the signs agree
        on = v != 0
        if not bool(on.any()):
            return v
        matrix = s[on][:, on] + ridge * torch.eye(int(on.sum())).to(s)
        right = c[on] - lasso * v[on].sign()
        exact = torch.linalg.lstsq(matrix, right.unsqueeze(1), driver="gelsd").solution.squeeze(1)
        if bool((exact.sign() == v[on].sign()).all()):
            v[on] = exact
            return v
        weak = v.clone()
        weak[on] = torch.where(exact.sign() == v[on].sign(), exact, 0.0)
        v = weak
    return v


def take_design_rows(rows: DesignRows, index: NDArray[np.intp]) -> DesignRows:
    """Some of the rows."""
    chosen = torch.from_numpy(np.asarray(index))
    parts = (None if part is None else part[chosen] for part in rows)
    return DesignRows(*parts)  # type: ignore[arg-type]


def _kept(folds: Folds, weight: Tensor | None, precision: Tensor | None, count: int) -> Folds:
    """Folds in the numbers of the rows that have a weight."""
    counts = torch.ones(count, dtype=torch.bool)
    for part in (weight, precision):
        if part is not None:
            counts &= part > 0
    place, there = (counts.long().cumsum(0) - 1).numpy(), counts.numpy()
    found = [tuple(place[index[there[index]]] for index in fold) for fold in folds]
    return [(learn, test) for learn, test in found if len(learn) and len(test)]


def _averages(parts: list[_Fold], strengths: Tensor) -> tuple[Tensor, Tensor]:
    """The mean out-of-fold loss at each strength, and its standard error over the folds."""
    if not parts:
        unknown = torch.full_like(strengths, torch.nan)
        return unknown, unknown
    weights = torch.stack([part.weight.sum() for part in parts])  # (K,)
    means = torch.stack([part.losses @ part.weight / part.weight.sum() for part in parts])
    mean = (weights @ means) / weights.sum()
    spread = (weights @ (means - mean) ** 2) / weights.sum()
    return mean, (spread / max(len(parts) - 1, 1)).sqrt()


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
