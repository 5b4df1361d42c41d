"""Fits boosted trees as a baseline of tables."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.data.categorical import spelled
from ansatz.data.dates import as_dates
from ansatz.likelihoods import (
    BernoulliDistribution,
    CategoricalDistribution,
    Distribution,
    GammaDistribution,
    NormalDistribution,
    PoissonDistribution,
)
from ansatz.metrics import compute_metrics

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.report.evidence import Evidence

FOLDS = 5
MOST_LEVELS = 255  # of a column in scikit-learn's trees
POSITIVE = {"gamma", "inverse_gaussian", "log_normal", "exponential", "weibull"}
MIXED = {"tweedie", "zero_one_inflated_beta"}  # probability at a point, density elsewhere
Trees = tuple[
    Distribution | None, Tensor, Tensor | None, Callable[[Tensor], dict[str, float | None]]
]


def boosted(evidence: "Evidence") -> tuple[Trees | None, str]:
    """Fits scikit-learn's HistGradientBoosting and predicts the test rows.

    With its defaults and the seed of the report. Counts take its Poisson loss and a Poisson
    distribution; positive numbers its gamma loss and a gamma distribution; other numbers squared
    error and a normal distribution. The dispersion comes from out-of-fold residuals of the
    training rows.

    Returns:
        The forecast, or None; and a note.
    """
    why = _why_not(evidence)
    if why:
        return None, f"HistGradientBoosting is left out: {why}."
    assert evidence.training is not None
    columns = evidence.columns if evidence.model.columns is not None else None
    design, mask = encode_columns(evidence.training.X, columns)
    rows, _ = encode_columns(evidence.X, columns)
    some = ~np.isnan(design).all(axis=0)  # the trees cannot bin an empty column
    design, rows, mask = design[:, some], rows[:, some], list(np.asarray(mask)[some])
    if not some.any():
        return None, "HistGradientBoosting is left out: there are no features."
    y, weight = evidence.training.job.y.numpy(), evidence.training.weight
    if evidence.classes is not None:
        return _classes(evidence, design, rows, mask, y, weight)
    return _numbers(evidence, design, rows, mask, y.astype(np.float64), weight)


def encode_columns(
    frame: "pd.DataFrame", columns: list[Column] | None
) -> tuple[NDArray[np.float64], list[bool]]:
    """Encodes categories as codes of their levels, dates as days, missing values as nan.

    Returns:
        ``(N, D)``, and which of the columns are unordered categories.
    """
    import pandas as pd

    if columns is None:
        array = frame.to_numpy(dtype=np.float64)
        return array, [False] * array.shape[1]
    parts, mask = [], []
    for column in columns:
        if not column.used:
            continue
        cells = frame[column.name]
        if column.role in ("categorical", "ordered"):
            codes = level_codes(cells, column.levels).astype(np.float64)
            parts.append(np.where((codes >= 0) & (codes < MOST_LEVELS), codes, np.nan))
        elif column.role == "date":
            days = as_dates(cells)
            parts.append(np.where(days.isna(), np.nan, days.astype("int64").to_numpy() / 8.64e13))
        else:
            parts.append(pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64))
        mask.append(column.role == "categorical")
    count = len(frame)
    return (np.column_stack(parts) if parts else np.empty((count, 0))), mask


def level_codes(cells: "pd.Series", levels: Sequence[str]) -> NDArray[np.intp]:
    """Codes each cell by its level, -1 where it is missing or unknown."""
    place = {level: code for code, level in enumerate(levels)}
    codes, names = spelled(cells)
    known = np.array([place.get(name, -1) for name in names] + [-1], dtype=np.intp)
    found: NDArray[np.intp] = known[codes]  # -1 is the last
    return found


def _why_not(evidence: "Evidence") -> str:
    likelihood, learn = evidence.likelihood, evidence.training
    if evidence.is_censored:
        return "it does not handle censoring"
    if likelihood.event_ndim or evidence.outcome.ndim != 1:
        return "it predicts one number or one class"
    if getattr(evidence.distribution, "circular", False):
        return "it does not handle directions"
    if evidence.offset is not None:
        return "it takes no offset"
    if learn is None or not any(column.used for column in evidence.columns):
        return "there are no features"
    if len(learn.weight) < 2 * FOLDS:
        return "there are too few rows"
    if evidence.classes is not None and len(np.unique(learn.job.y.numpy())) < 2:
        return "the training rows have one class"
    return ""


def _classes(
    evidence: "Evidence",
    design: NDArray[np.float64],
    rows: NDArray[np.float64],
    mask: list[bool],
    y: NDArray[Any],
    weight: NDArray[np.float64],
) -> tuple[Trees, str]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(categorical_features=mask, random_state=evidence.seed)
    trees.fit(design, y, sample_weight=weight)
    assert evidence.classes is not None
    found = np.full((len(rows), len(evidence.classes)), 1e-12)
    found[:, trees.classes_.astype(np.intp)] = trees.predict_proba(rows).clip(1e-12, 1)
    logs = torch.from_numpy(np.log(found))
    distribution: Distribution = CategoricalDistribution(logs)
    if found.shape[1] == 2 and evidence.likelihood.name == "bernoulli":
        distribution = BernoulliDistribution(logs[:, 1] - logs[:, 0])
    outcome = evidence.outcome
    point = torch.from_numpy(found.argmax(1))
    note = "HistGradientBoosting with scikit-learn's defaults and its probabilities."
    return (
        distribution,
        point,
        -distribution.log_prob(outcome),
        _evaluate(outcome, None, distribution),
    ), note


def _numbers(
    evidence: "Evidence",
    design: NDArray[np.float64],
    rows: NDArray[np.float64],
    mask: list[bool],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[Trees, str]:
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingRegressor

    loss = _loss(evidence, y)
    trees = HistGradientBoostingRegressor(
        loss=loss, categorical_features=mask, random_state=evidence.seed
    )
    point = clone(trees).fit(design, y, sample_weight=weight).predict(rows)
    note = (
        f"HistGradientBoosting with scikit-learn's defaults and its {loss.replace('_', ' ')} loss"
    )
    outcome, at = evidence.outcome.double(), torch.from_numpy(point).double()
    if not evidence.likelihood.has_distribution or evidence.likelihood.name in MIXED:
        point_only = (None, at, None, _evaluate(outcome, at, None))
        return point_only, f"{note}; its nll is not comparable."
    distribution: Distribution
    if loss == "poisson":
        distribution, words = PoissonDistribution(at.clamp(min=1e-9).log()), "Poisson"
    else:
        fair = _out_of_fold(evidence, trees, design, y, weight)
        distribution, words = _with_dispersion(loss, at, y, fair, weight)
    losses = -distribution.log_prob(outcome)
    evaluate = _evaluate(outcome, at, distribution)
    return (distribution, at, losses, evaluate), f"{note}; its distribution is {words}."


def _loss(evidence: "Evidence", y: NDArray[np.float64]) -> str:
    likelihood = evidence.likelihood
    if getattr(evidence.distribution, "discrete", False) and y.sum() > 0 and y.min() >= 0:
        return "poisson"
    if likelihood.name in POSITIVE and (y > 0).all():
        return "gamma"
    return "squared_error"


def _out_of_fold(
    evidence: "Evidence",
    trees: Any,
    design: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    from sklearn.base import clone

    from ansatz.data import fold_numbers, row_keys

    assert evidence.training is not None
    job = evidence.training.job
    keys = row_keys(job.rows, job.y.numpy(), seed=evidence.seed)
    folds = fold_numbers(keys, FOLDS, seed=evidence.seed, group=job.group, weight=weight)
    found = np.full(len(y), np.average(y, weights=weight))
    for fold in np.unique(folds):
        out = folds == fold
        if out.all():
            continue
        part = clone(trees).fit(design[~out], y[~out], sample_weight=weight[~out])
        found[out] = part.predict(design[out])
    return found


def _with_dispersion(
    loss: str,
    at: Tensor,
    y: NDArray[np.float64],
    fair: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[Distribution, str]:
    if loss == "gamma":
        fair = np.maximum(fair, 1e-12)
        phi = max(float(np.average(((y - fair) / fair) ** 2, weights=weight)), 1e-9)
        distribution: Distribution = GammaDistribution(
            at.clamp(min=1e-12).log(), torch.full_like(at, phi)
        )
        return distribution, "gamma, with the dispersion of out-of-fold Pearson residuals"
    sd = max(float(np.average((y - fair) ** 2, weights=weight)) ** 0.5, 1e-12)
    return (
        NormalDistribution(at, torch.full_like(at, sd)),
        "normal, with the standard deviation of out-of-fold residuals",
    )


def _evaluate(
    outcome: Tensor, point: Tensor | None, distribution: Distribution | None
) -> Callable[[Tensor], dict[str, float | None]]:
    def evaluated(weight: Tensor) -> dict[str, float | None]:
        return compute_metrics(outcome, point=point, distribution=distribution, weight=weight)

    return evaluated
