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
from ansatz.errors import AnsatzError
from ansatz.likelihoods import (
    BernoulliDistribution,
    CategoricalDistribution,
    Distribution,
    Likelihood,
    create,
)
from ansatz.likelihoods.registry import with_dispersion
from ansatz.linear import fit_linear
from ansatz.metrics import compute_metrics

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.report.evidence import Evidence

FOLDS = 5
MOST_LEVELS = 255  # of a column in scikit-learn's trees
POSITIVE = {"gamma", "inverse_gaussian", "log_normal", "exponential", "weibull"}
Trees = tuple[
    Distribution | None, Tensor, Tensor | None, Callable[[Tensor], dict[str, float | None]]
]


def boosted(evidence: "Evidence") -> tuple[Trees | None, str]:
    """Fits scikit-learn's HistGradientBoosting and predicts the test rows.

    With its defaults and the seed of the report. Counts take its Poisson loss, positive numbers its
    gamma loss, other numbers squared error. Around the predicted mean is the likelihood of the
    model, its dispersion fitted to out-of-fold predictions of the training rows.

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
    if not evidence.likelihood.has_distribution:
        return (None, at, None, _evaluate(outcome, at, None)), f"{note}."
    fair = _out_of_fold(evidence, trees, design, y, weight)
    distribution, words = _with_dispersion(evidence, at, y, fair, weight)
    losses = -distribution.log_prob(outcome)
    evaluate = _evaluate(outcome, at, distribution)
    return (distribution, at, losses, evaluate), f"{note}; its distribution is {words}."


def _loss(evidence: "Evidence", y: NDArray[np.float64]) -> str:
    likelihood = evidence.likelihood
    counts = getattr(evidence.distribution, "discrete", False) or likelihood.name == "tweedie"
    if counts and y.sum() > 0 and y.min() >= 0:
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
    evidence: "Evidence",
    at: Tensor,
    y: NDArray[np.float64],
    fair: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[Distribution, str]:
    """The likelihood of the model around the trees' mean, its dispersion fitted out of fold.

    Counts may have the dispersion of a negative binomial, whatever the likelihood of the model; a
    normal distribution takes over where the likelihood cannot be fitted around a mean.
    """
    assert evidence.training is not None
    plain = with_dispersion(
        evidence.model.task.likelihood(evidence.training.job.target), "constant"
    )
    candidates = [plain]
    if plain.name == "poisson":
        candidates.append(create("negative_binomial", dispersion="constant"))
    found = []
    for likelihood in candidates:
        try:
            found.append(_around(likelihood, at, y, fair, weight))
        except (AnsatzError, ValueError, RuntimeError):
            continue
    if not found:
        normal = create("normal", dispersion="constant")
        found.append(_around(normal, at, y, fair, weight))
    _, name, distribution = min(found, key=lambda each: each[0])
    return distribution, f"{name}, with the dispersion of out-of-fold predictions"


def _around(
    likelihood: Likelihood,
    at: Tensor,
    y: NDArray[np.float64],
    fair: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[float, str, Distribution]:
    """A likelihood with the trees' mean in its linear predictor: loss, name, distribution."""
    links: dict[str, Callable[[Tensor], Tensor]] = {
        "identity": lambda mean: mean,
        "log": lambda mean: mean.clamp(min=1e-9).log(),
        "logit": lambda mean: mean.clamp(1e-6, 1 - 1e-6).logit(),
    }
    if likelihood.link_name not in links:
        raise ValueError(f"the mean of {likelihood.name} is not its linear predictor.")
    link = links[likelihood.link_name]
    nothing, offset = torch.zeros(len(y), 0), link(torch.from_numpy(fair).double())
    fit = fit_linear(
        likelihood,
        nothing,
        torch.from_numpy(y),
        weight=torch.from_numpy(weight),
        offset=offset,
        null=False,
    )
    raw = fit.predict_raw(torch.zeros(len(at), 0), link(at))
    with torch.no_grad():
        distribution = fit.likelihood.distribution(raw)
    loss = -fit.log_likelihood / fit.observations
    if not np.isfinite(loss):
        raise ValueError("the out-of-fold loss is not finite.")
    return loss, likelihood.name, distribution


def _evaluate(
    outcome: Tensor, point: Tensor | None, distribution: Distribution | None
) -> Callable[[Tensor], dict[str, float | None]]:
    def evaluated(weight: Tensor) -> dict[str, float | None]:
        return compute_metrics(outcome, point=point, distribution=distribution, weight=weight)

    return evaluated
