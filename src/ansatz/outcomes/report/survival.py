"""Supplies what censored times add to a report and a comparison."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import DataError
from ansatz.figures.number_format import number
from ansatz.figures.section import Chapter
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Censored, Cox, DiscreteHazard
from ansatz.likelihoods.averaged import Averaged
from ansatz.metrics import Estimate
from ansatz.metrics.survival import brier_rows
from ansatz.outcomes.survival_metrics import log_survival_at, restricted_mean
from ansatz.outcomes.survival_times import times_and_causes
from ansatz.report.baselines import Forecast, estimate_nll
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport, Response
from ansatz.report.paired_scores import Evaluated, ScorePair
from ansatz.report.transform import Target, Transform, transform_censored

Numbers = NDArray[np.float64]


class SurvivalRows(NamedTuple):
    """Held-out survival outcomes."""

    time: Numbers  # ``(N,)``
    cause: Numbers  # ``(N,)``, 0 for censored
    weight: Numbers  # ``(N,)``
    entry: Numbers | None  # ``(N,)``, or None without late entry


def survival_rows(evidence: Evidence) -> SurvivalRows | None:
    """Extracts times, causes and entries; None where events are interval-censored."""
    known = times_and_causes(evidence.likelihood, evidence.outcome.numpy())
    if known is None:
        return None
    time, cause = (np.ascontiguousarray(part) for part in known)
    entry = np.ascontiguousarray(evidence.outcome.numpy()[:, 2])
    late = bool((entry > min(0.0, float(time.min()))).any())
    return SurvivalRows(time, cause, evidence.weight.numpy(), entry if late else None)


def by_brier(a: Evaluated, b: Evaluated) -> bool:
    """Tests whether two models have no common likelihood and are compared by the Brier score."""
    measures = [_measure(evaluated) for evaluated in (a, b)]
    if "intervals" in measures and measures[0] == measures[1]:
        assert isinstance(a.likelihood, DiscreteHazard) and isinstance(b.likelihood, DiscreteHazard)
        return not (
            a.likelihood.cuts.shape == b.likelihood.cuts.shape
            and torch.equal(a.likelihood.cuts, b.likelihood.cuts)
        )
    return measures[0] != measures[1]


def _measure(evaluated: Evaluated) -> str:
    if isinstance(evaluated.likelihood, Cox):
        return "partial"
    if isinstance(evaluated.likelihood, DiscreteHazard):
        return "intervals"
    assert evaluated.distribution is not None
    return "counts" if evaluated.distribution.discrete else "density"


def survival_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """Scores by the common likelihood, else by the integrated Brier score."""
    if not by_brier(a, b):
        name = "partial log score" if isinstance(a.likelihood, Cox) else "log score"
        note = (
            "each row's term of the partial likelihood." if isinstance(a.likelihood, Cox) else None
        )
        return ScorePair(name, a.log_scores.numpy(), b.log_scores.numpy(), True, note)
    found = integrated_brier_pair(a, b)
    if found is None:
        raise DataError(
            f"{a.likelihood_name} and {b.likelihood_name} have no common likelihood, and these "
            "rows have no integrated Brier score: the models are not comparable."
        )
    note = f"{a.likelihood_name} and {b.likelihood_name} have no common likelihood."
    return found._replace(note=note)


def integrated_brier_pair(a: Evaluated, b: Evaluated) -> ScorePair | None:
    """Computes each row's term of the integrated Brier score; None where undefined."""
    followed = a.model.of_times.followed
    known = times_and_causes(a.likelihood, a.job.y.numpy())
    if known is None or not len(followed.time) or _has_causes(a) or _has_causes(b):
        return None
    time, event = (torch.from_numpy(part) for part in known)
    entry = a.job.y[:, 2]
    seen = time[event > 0]
    if len(seen) < 2 or bool((entry > min(0.0, float(time.min()))).any()):
        return None
    first, last = float(seen.min()), min(float(seen.max()), followed.horizon)
    if not first < last:
        return None
    grid = torch.linspace(first, last, 101, dtype=torch.float64)[:-1]
    parts = []
    for evaluated in (a, b):
        with torch.no_grad():
            distribution = evaluated.likelihood.distribution(evaluated.raw)
            curves = log_survival_at(distribution, grid.tolist()).exp()
        terms = brier_rows(
            *(curves, grid, time, event, followed.time, followed.event),
            weight=a.job.weight,
            train_weight=followed.weight,
        )
        parts.append((torch.trapezoid(terms, grid, dim=1) / (grid[-1] - grid[0])).numpy())
    return ScorePair("integrated_brier", parts[0], parts[1], higher=False)


def _has_causes(evaluated: Evaluated) -> bool:
    return int(getattr(evaluated.likelihood, "causes", 1)) > 1


_CURVES = Chapter(
    36, "calibration of survival", "ansatz.outcomes.report.survival_calibration:section"
)


_GROUPS = Chapter(37, "survival by risk group", "ansatz.outcomes.report.risk_groups:section")


class SurvivalReport(OutcomeReport):
    """The contribution of censored times: calibration of survival curves, and risk groups."""

    prediction = "predicted mean time"

    def chapters(self) -> list[Chapter]:
        """Lists the chapters of any likelihood, and two on survival curves."""
        return [*super().chapters(), _CURVES, _GROUPS]

    def calibration(self, evidence: Evidence) -> str:
        """Compares observed with expected events."""
        return _calibration(evidence)

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates the log score; other metrics are not means of rows."""
        return estimate_nll(evidence, forecast)

    def targets(self, evidence: Evidence) -> list[Target]:
        """Computes the transform of the time."""
        with torch.no_grad():
            likelihood = evidence.predictive().distribution
        mean = restricted_mean(likelihood, evidence.model.of_times.followed.horizon).numpy()
        return [Target("", None, _transform(evidence), mean, 0.0)]

    def words(self, evidence: Evidence, row: int) -> str | None:
        """Writes a censored time as ``> 3.5``."""
        times = survival_rows(evidence)
        if times is None:
            return super().words(evidence, row)
        sign = "" if times.cause[row] > 0 else "> "
        return sign + number(float(times.time[row]), 3)

    def response(self, evidence: Evidence) -> Response:
        """Chooses survival to the median time, or the incidence of cause 1 by then."""
        horizon = _middle(evidence)
        several = int(getattr(evidence.likelihood, "causes", 1)) > 1
        what = f"P(cause 1 by {number(horizon, 3)})" if several else f"P(T > {number(horizon, 3)})"
        return Response((what,), (0,), horizon)

    def respond(
        self, outcome: Any, predictive: Predictive, response: Response
    ) -> NDArray[np.float64]:
        """Computes survival, or the incidence of cause 1, at the horizon."""
        several = int(getattr(predictive.likelihood, "causes", 1)) > 1
        asked = outcome.incidence if several else outcome.survival
        found: NDArray[np.float64] = asked(predictive, [response.horizon])
        return found

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether times, events and entries are equal."""
        known = [
            times_and_causes(evaluated.likelihood, evaluated.job.y.numpy()) for evaluated in (a, b)
        ]
        if known[0] is None or known[1] is None:
            return torch.equal(a.job.y, b.job.y)
        (time, cause), (other_time, other_cause) = known[0], known[1]
        return (
            np.array_equal(time, other_time)
            and np.array_equal(np.minimum(cause, 1), np.minimum(other_cause, 1))
            and torch.equal(a.job.y[:, 2], b.job.y[:, 2])
        )

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Scores by the common likelihood, else by the integrated Brier score."""
        return survival_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> ScorePair | None:
        """Computes the integrated Brier score, where it is not the first score."""
        return None if by_brier(a, b) else integrated_brier_pair(a, b)


def _transform(evidence: Evidence) -> Transform:
    likelihood, y = evidence.distribution, evidence.outcome
    assert likelihood is not None
    inner = (
        evidence.likelihood.likelihood
        if isinstance(evidence.likelihood, Averaged)
        else evidence.likelihood
    )
    if isinstance(inner, Censored):  # its distribution is already conditional on entry
        return transform_censored(likelihood, y[:, 0], y[:, 1])
    time, cause, entry = y[:, 0], y[:, 1], y[:, 2]
    return transform_censored(likelihood, time, torch.where(cause > 0, time, torch.inf), entry)


def _middle(evidence: Evidence) -> float:
    """Computes the median of the observed training times."""
    followed = evidence.model.of_times.followed
    if len(followed.time):
        seen = followed.time[followed.event > 0]
        return float((seen if len(seen) else followed.time).median())
    return float(followed.horizon) / 2


def _calibration(evidence: Evidence) -> str:
    """Compares events with the sum of the cumulative hazards of the rows."""
    known = times_and_causes(evidence.likelihood, evidence.outcome.numpy())
    distribution = evidence.distribution
    if known is None or distribution is None:
        return "times are interval-censored; see the residuals below."
    time, event = (torch.from_numpy(np.array(part)) for part in known)
    entry = evidence.outcome[:, 2]
    with torch.no_grad():
        hazard = -distribution.log_survival(time)
        late = entry.isfinite() & (entry > 0)
        if bool(late.any()):
            before = -distribution.log_survival(torch.where(late, entry, time))
            hazard = hazard - torch.where(late, before, 0.0)
    seen = float((evidence.weight * (event > 0)).sum())
    expected = float((evidence.weight * hazard).sum())
    if not (math.isfinite(expected) and expected > 0 and seen > 0):
        return "see the curves at horizons below."
    ratio = seen / expected
    # The variance of the number of events equals its expectation (a martingale).
    factor = math.exp(1.96 / seen**0.5)
    low, high = ratio / factor, ratio * factor
    words = (
        f"{number(seen)} events, {number(expected, 3)} expected from the curves, a ratio of "
        f"{ratio:.2f} (95 % interval {low:.2f} to {high:.2f})"
    )
    if low <= 1 <= high:
        return f"{words}; no miscalibration is detected."
    return f"{words}: the curves fall too {'slowly' if ratio > 1 else 'fast'}."
