"""Evaluates a model beside its baselines on the same test rows, metric by metric."""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import AnsatzError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.scores import constant_predictive, is_linear
from ansatz.likelihoods import Distribution
from ansatz.metrics import (
    Estimate,
    angular_distance,
    influence_error,
    mean_estimate,
    r2_estimate,
    rmse_estimate,
)
from ansatz.report.evidence import Evidence


class Forecast(NamedTuple):
    """The predictions of one model for the test rows."""

    name: str
    distribution: Distribution | None
    point: Tensor
    losses: Tensor | None  # (N,), of its likelihood; None where they have no common measure
    evaluate: Callable[[Tensor], Metrics]  # weights of the rows -> every metric that applies


class Baselines(NamedTuple):
    """The forecasts of the model and its baselines, and notes on what is missing."""

    forecasts: list[Forecast]
    notes: list[str]

    def find(self, name: str) -> Forecast | None:
        """Finds a forecast by name."""
        return next((found for found in self.forecasts if found.name == name), None)


def baselines(evidence: Evidence) -> Baselines:
    """Fits the linear and the constant model and the structure's own baselines.

    They are trained on the training rows of the model; without these there are none.
    """
    return evidence.once("baselines", lambda: _fit_baselines(evidence))


def _fit_baselines(evidence: Evidence) -> Baselines:
    forecasts = [forecast_of(evidence, "model", evidence.predictive())]
    notes: list[str] = []
    if evidence.training is None:
        notes.append(
            "The training rows were not given: the linear and the constant model cannot be fitted."
        )
        return Baselines(forecasts, notes)
    test, model = evidence.job, evidence.model
    learn = model.outcome.plain(evidence.training.job)
    likelihood = model.task.likelihood(learn.target)
    if not evidence.contribution.has_features(evidence):
        notes.append("There are no features: the model is the constant model of its likelihood.")
        return Baselines(forecasts, notes)
    how = model.structure, likelihood, learn, model.task.settings.seed
    if is_linear(model):
        notes.append("The model is the linear model of its likelihood.")
    else:
        try:
            linear, added = model.outcome.baseline(*how)
            if linear is not None:
                found = linear.predictive(test.rows, test.offset, notes=[])
                forecasts.append(forecast_of(evidence, "linear", found))
            notes += added
        except (AnsatzError, ValueError, RuntimeError) as error:
            notes.append(f"The linear model of {likelihood.name} could not be fitted: {error}")
    if not model.outcome.is_x:  # whose simplest model is among the others
        constant = model.outcome.constant(model, likelihood, learn, test)
        constant = constant or constant_predictive(likelihood, learn, test)
        forecasts.append(forecast_of(evidence, "constant", constant))
    others, own = model.outcome.baselines(*how)
    for name, each in others.items():
        found = each.predictive(test.rows, test.offset, notes=[])
        forecasts.append(forecast_of(evidence, name, found))
    if model.outcome.is_x:
        return Baselines(forecasts, notes + own)
    more, added = evidence.contribution.baselines(evidence)
    return Baselines(forecasts + more, notes + own + added)


def forecast_of(evidence: Evidence, name: str, predictive: Predictive) -> Forecast:
    """Makes a forecast of the test rows from a predictive."""
    outcome, y, likelihood = evidence.model.outcome, evidence.outcome, predictive.likelihood
    distribution, _ = outcome.distribution(predictive, y)
    # A loss of elements has no value for each example.
    has_losses = likelihood.additive and (likelihood.has_distribution or evidence.axis == "row")
    return Forecast(
        name,
        distribution,
        outcome.estimate(predictive, y),
        outcome.row_losses(predictive, y) if has_losses else None,
        lambda weight: outcome.evaluate(predictive, y, weight),
    )


def row_error(evidence: Evidence, influence: Tensor, rows: Tensor | None = None) -> float:
    """Computes the standard error of an estimate on the test rows, by groups or time."""
    keep = slice(None) if rows is None else rows
    group, time = ordered_codes(evidence, "group"), ordered_codes(evidence, "time")
    if group is not None:
        return influence_error(influence, evidence.weight[keep], group=group[keep])
    if time is not None:
        return influence_error(influence, evidence.weight[keep], time=time[keep])
    return influence_error(influence, evidence.weight[keep])


def ordered_codes(evidence: Evidence, name: Literal["group", "time"]) -> Tensor | None:
    """Codes group or time of the test rows in order, ``(N,)``; None without it."""
    values = getattr(evidence, name)
    if values is None:
        return None
    import pandas as pd

    codes, _ = evidence.once(
        f"codes of {name}", lambda: pd.factorize(np.asarray(values), sort=True)
    )
    return torch.from_numpy(codes.astype(np.int64))


def estimate_nll(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """Estimates the mean negative log-likelihood, where all forecasts share its measure."""
    # A loss of classes is evaluated by its predicted probabilities.
    has_nll = evidence.likelihood.has_distribution or evidence.classes is not None
    if forecast.losses is None or not has_nll:
        return {}
    return {"nll": mean_estimate(forecast.losses, evidence.weight)}


def estimates_of_numbers(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """Estimates log score, CRPS or energy score, and errors of the point prediction."""
    y, weight = evidence.value, evidence.weight
    found = estimate_nll(evidence, forecast)
    likelihood, point = forecast.distribution, forecast.point
    if likelihood is not None and hasattr(likelihood, "energy_score"):
        found["energy_score"] = mean_estimate(likelihood.energy_score(y), weight)
    elif likelihood is not None:
        found["crps"] = mean_estimate(likelihood.crps(y).reshape(len(y), -1).mean(1), weight)
    if point.shape != y.shape:
        return found
    if getattr(likelihood, "circular", False):
        rows = angular_distance(y.double(), point.double()).reshape(len(y), -1).mean(1)
        return {**found, "mean_angular_error": mean_estimate(rows, weight)}
    found["mae"] = mean_estimate((y - point).abs().reshape(len(y), -1).mean(1), weight)
    found["rmse"] = rmse_estimate(y, point, weight)
    found["r2"] = r2_estimate(y, point, weight)
    return found


HIGHER = {
    *("accuracy", "auc", "r2", "c_index", "uno_c", "kendall_tau", "top_one_accuracy"),
    *("dice", "iou", "boundary_f1", "macro_f1", "mrr", "hits@1", "hits@3", "hits@10"),
}
FIRST = (
    *("dice", "nll", "crps", "energy_score", "c_index"),
    *("mrr", "pinball", "rmse", "mae", "r2", "accuracy"),
)
WITHOUT_ERROR = {"ece"}  # a sum of absolute values: biased and not normal


class Score(NamedTuple):
    """A number with its standard error; nan where undefined."""

    value: float
    error: float

    @property
    def ratio(self) -> float:
        """The number of standard errors from zero."""
        return self.value / self.error if self.error > 0 else math.nan


class MetricComparison(NamedTuple):
    """One metric of every model, and the gain of the first over each other."""

    metric: str
    scores: dict[str, Score]
    better: dict[str, Score]  # positive: the model is better


def higher_is_better(metric: str) -> bool:
    """Tests whether a higher value of a metric is better."""
    return metric in HIGHER or metric.startswith(("c_index", "dice_"))


def compare(evidence: Evidence) -> list[MetricComparison]:
    """Computes every metric of the model and its baselines, with paired differences.

    Standard errors are those of a mean over rows, of the delta method for RMSE and R2, DeLong's
    for the area under the ROC curve; clustered by group, Newey and West's over time; of a
    bootstrap of rows or groups for other metrics (concordance, integrated Brier score).
    """
    return evidence.once("compare", lambda: _compare(evidence, baselines(evidence)))


def _compare(evidence: Evidence, found: Baselines) -> list[MetricComparison]:
    weight = evidence.weight
    evaluated = {f.name: f.evaluate(weight) for f in found.forecasts}
    known = {f.name: evidence.outcome_report.estimates(evidence, f) for f in found.forecasts}
    names = [name for name, value in evaluated["model"].items() if value is not None]
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    missing = [n for n in names if n not in known["model"] and n not in WITHOUT_ERROR]
    draws = _bootstrap(evidence, found, missing) if missing else {}
    comparisons = []
    for metric in names:
        scores, better = {}, {}
        sign = 1.0 if higher_is_better(metric) else -1.0
        for name in evaluated:
            value = evaluated[name].get(metric)
            if value is None:
                continue
            scores[name] = Score(
                value, _error(evidence, known[name].get(metric), draws, name, metric)
            )
            if name != "model":
                gap = evaluated["model"][metric] or 0.0
                better[name] = Score(
                    sign * (gap - value), _gap_error(evidence, known, draws, name, metric)
                )
        comparisons.append(MetricComparison(metric, scores, better))
    return comparisons


def _bootstrap(
    evidence: Evidence, found: Baselines, metrics: list[str]
) -> dict[tuple[str, str], np.ndarray]:
    """Bootstraps the metrics of every model on the same resampled rows or groups."""
    count = len(evidence.weight)
    draws = evidence.settings.get("draws", 100 if count <= 1_000 else 50 if count <= 5_000 else 20)
    rng = np.random.default_rng(evidence.seed)
    group = ordered_codes(evidence, "group")
    units = count if group is None else int(group.max()) + 1
    values: dict[tuple[str, str], list[float]] = {}
    for _ in range(draws):
        times = torch.from_numpy(rng.multinomial(units, np.full(units, 1 / units))).double()
        weight = evidence.weight * (times if group is None else times[group])
        for forecast in found.forecasts:
            evaluated = forecast.evaluate(weight)
            for metric in metrics:
                value = evaluated.get(metric)
                at = values.setdefault((forecast.name, metric), [])
                at.append(math.nan if value is None else value)
    return {key: np.array(column) for key, column in values.items()}


def _error(
    evidence: Evidence,
    estimate: Estimate | None,
    draws: Mapping[tuple[str, str], np.ndarray],
    name: str,
    metric: str,
) -> float:
    if estimate is not None:
        return row_error(evidence, estimate.influence)
    return _sd(draws.get((name, metric)))


def _gap_error(
    evidence: Evidence,
    known: Mapping[str, Mapping[str, Estimate]],
    draws: Mapping[tuple[str, str], np.ndarray],
    name: str,
    metric: str,
) -> float:
    a, b = known["model"].get(metric), known[name].get(metric)
    if a is not None and b is not None:
        return row_error(evidence, a.minus(b).influence)
    first, second = draws.get(("model", metric)), draws.get((name, metric))
    return math.nan if first is None or second is None else _sd(first - second)


def _sd(values: np.ndarray | None) -> float:
    if values is None or np.isfinite(values).sum() < 5:
        return math.nan
    return float(np.std(values[np.isfinite(values)], ddof=1))
