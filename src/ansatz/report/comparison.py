"""Every metric of a model beside its baselines', with standard errors and paired differences."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch

from ansatz.metrics import Estimate
from ansatz.report.baselines import Baselines, baselines
from ansatz.report.estimates import estimate_metrics
from ansatz.report.evidence import Evidence
from ansatz.report.row_error import ordered_codes, row_error

HIGHER = {
    *("accuracy", "auc", "r2", "c_index", "uno_c", "kendall_tau", "top_one_accuracy"),
    *("dice", "iou", "boundary_f1"),
}
FIRST = (
    "dice",
    "nll",
    "crps",
    "energy_score",
    "c_index",
    "pinball",
    "rmse",
    "mae",
    "r2",
    "accuracy",
)
WITHOUT_ERROR = {"ece"}  # a sum of absolute values: it is biased and far from normal


class Score(NamedTuple):
    """A number with its standard error; nan where it cannot be told."""

    value: float
    error: float

    @property
    def ratio(self) -> float:
        """How many standard errors from zero."""
        return self.value / self.error if self.error > 0 else math.nan


class Comparison(NamedTuple):
    """One metric of every model, and by how much the first is better than each other."""

    metric: str
    scores: dict[str, Score]
    better: dict[str, Score]  # positive: the model is better


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better."""
    return metric in HIGHER or metric.startswith(("c_index", "dice_"))


def compare(evidence: Evidence) -> list[Comparison]:
    """Every metric that applies, of the model and its baselines, with paired differences.

    Standard errors are those of a mean over rows, of the delta method for RMSE and R2, DeLong's
    for the area under the ROC curve; clustered by group, Newey and West's over time; of a
    bootstrap of rows or groups for what is no mean of rows (concordance, integrated Brier score).
    """
    if "compare" not in evidence.kept:
        evidence.kept["compare"] = _compare(evidence, baselines(evidence))
    found: list[Comparison] = evidence.kept["compare"]
    return found


def _compare(evidence: Evidence, found: Baselines) -> list[Comparison]:
    weight = evidence.weight
    evaluated = {f.name: f.evaluate(weight) for f in found.forecasts}
    known = {f.name: estimate_metrics(evidence, f) for f in found.forecasts}
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
        comparisons.append(Comparison(metric, scores, better))
    return comparisons


def _bootstrap(
    evidence: Evidence, found: Baselines, metrics: list[str]
) -> dict[tuple[str, str], np.ndarray]:
    """Draws of the metrics from the same resampled rows, or groups, for every model."""
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
