"""Supplies what an outcome adds to a report and a comparison: chapters, words, scores."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number, percent, printable
from ansatz.figures.section import Cell, Chapter
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.metrics import Estimate
from ansatz.report.baselines import Forecast, estimates_of_numbers
from ansatz.report.effect import wilson
from ansatz.report.evidence import Evidence
from ansatz.report.paired_scores import change_between, number_beside, number_pair
from ansatz.report.transform import Target, targets_of_numbers

if TYPE_CHECKING:
    from ansatz.report.paired_scores import Evaluated, ScorePair


CURVES = 3  # curves in one panel


class Response(NamedTuple):
    """The numbers whose effects are drawn: names, indices, and the time horizon if any."""

    names: tuple[str, ...]
    picks: tuple[int, ...]  # which of a vector
    horizon: float = 0.0


# Each is None where it does not apply to the likelihood.
_CHAPTERS = [
    Chapter(29, "predicted and observed", "ansatz.report.observed:section"),
    Chapter(30, "probability integral transform", "ansatz.report.pit:section"),
    Chapter(31, "distributions of vectors", "ansatz.report.vectors:section"),
    Chapter(32, "errors of direction", "ansatz.report.vectors:directions_section"),
    Chapter(34, "coverage of intervals", "ansatz.report.interval_coverage:section"),
    Chapter(35, "reliability of probabilities", "ansatz.report.reliability:section"),
    Chapter(37, "quantile residuals", "ansatz.report.quantile_residuals:section"),
    Chapter(38, "residual panels", "ansatz.report.residual_panels:section"),
    Chapter(39, "recalibration", "ansatz.report.recalibration:section"),
    Chapter(80, "decisions from costs", "ansatz.report.costs:section"),
]


class OutcomeReport:
    """The contribution of an outcome to reports; the base class serves numbers.

    Attributes:
        prediction: the label of fitted values on an axis.
    """

    prediction = "prediction"

    # The page.

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on such outcomes."""
        return list(_CHAPTERS)

    def calibration(self, evidence: Evidence) -> str:
        """Writes one sentence about calibration."""
        if evidence.distribution is None:
            return (
                "a loss predicts a point, not a distribution: there is no calibration to evaluate."
            )
        if evidence.likelihood.event_ndim and evidence.value.ndim != 1:
            return "outcomes are vectors; the residuals below evaluate each component."
        return of_intervals(evidence)

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Computes the metrics that are functions of means over rows, with influences."""
        return estimates_of_numbers(evidence, forecast)

    def targets(self, evidence: Evidence) -> list[Target]:
        """Computes the transform of each outcome that is a number with a distribution."""
        return targets_of_numbers(evidence)

    def words(self, evidence: Evidence, row: int) -> str | None:
        """Writes the outcome of a test row in a few letters; None: as given."""
        value = evidence.value[row].numpy()
        if evidence.model.outcome.labels is not None or not np.isfinite(value).all():
            return None
        return ", ".join(number(float(part), 3) for part in np.atleast_1d(value).ravel())

    # The response of effects of features.

    def response(self, evidence: Evidence) -> Response | None:
        """Chooses the numbers whose effects are drawn; None where effects do not accumulate."""
        if getattr(evidence.distribution, "circular", False):
            return None
        width = evidence.point.shape[1] if evidence.point.ndim == 2 else 1
        if width == 1:
            return Response((f"predicted {printable(evidence.target, 40)}",), (0,))
        names = evidence.model.outcome.names[:CURVES]
        labels = tuple(f"predicted {printable(name, 24)}" for name in names)
        return Response(labels, tuple(range(len(names))))

    def respond(
        self, outcome: Outcome, predictive: Predictive, response: Response
    ) -> NDArray[np.float64]:
        """Computes the numbers of a response, ``(N, R)``."""
        likelihood, raw = predictive
        with torch.no_grad():
            point = likelihood.point(raw).double()
        point = point.unsqueeze(1) if point.ndim == 1 else point
        return point[:, list(response.picks)].numpy()

    # Two models side by side.

    def same_outcomes(self, a: "Evaluated", b: "Evaluated") -> bool:
        """Checks that two models predict the same outcomes; numbers may differ in scale."""
        change_between(a, b)
        return True

    def score_pair(self, a: "Evaluated", b: "Evaluated") -> "ScorePair":
        """Scores two models row by row in a common measure."""
        return number_pair(a, b)

    def score_beside(self, a: "Evaluated", b: "Evaluated") -> "ScorePair | None":
        """Computes a second score; None where both models do not have one."""
        return number_beside(a, b)


LEVEL = 0.9  # of the intervals


def of_intervals(evidence: Evidence) -> str:
    """Writes the coverage of 90 % intervals with a Wilson interval."""
    assert evidence.distribution is not None
    with torch.no_grad():
        low, high = evidence.distribution.interval(LEVEL)
    inside = ((evidence.value >= low) & (evidence.value <= high)).double()
    if getattr(evidence.distribution, "circular", False):  # an arc may contain the angle 0
        turn = 2 * math.pi
        inside = (((evidence.value - low) % turn) <= ((high - low) % turn)).double()
    rows = inside.reshape(len(inside), -1).mean(1)
    total = float(evidence.weight.sum())
    share, least, most = wilson(float((rows * evidence.weight).sum()), total)
    range_ = (
        f"{percent(share)} of the {evidence.unit.many} (95 % interval {percent(least)} to "
        f"{percent(most)})"
    )
    what = f"its {LEVEL:.0%} intervals".replace("%", " %")
    if least <= LEVEL <= most:
        return f"{what} cover {range_}, as they should."
    if share > LEVEL:
        if evidence.distribution.discrete:
            return f"{what} cover {range_}; intervals of counts cover at least their level."
        return f"{what} cover {range_}: they are too wide."
    return f"{what} cover {range_}: they are too narrow."


def outcome_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """Writes the outcome of a test row; a censored time as ``> 3.5``."""
    words = evidence.outcome_report.words(evidence, row)
    return _short(shown_outcome(evidence, row) if words is None else words, limit)


def prediction_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """Writes the prediction of a test row."""
    return _short(shown_prediction(evidence, row), limit)


def _short(value: Cell, limit: int) -> str:
    return printable(value if isinstance(value, str) else number(value, 3), limit)


def shown_outcome(evidence: Evidence, row: int) -> Cell:
    """Formats the outcome of a test row for a table."""
    given = evidence.y.iloc[row] if hasattr(evidence.y, "iloc") else np.asarray(evidence.y)[row]
    if hasattr(given, "items"):  # a row of several columns
        return ", ".join(
            f"{printable(name, 20)} {shown_cell(value)}" for name, value in given.items()
        )
    if isinstance(given, np.ndarray):
        return ", ".join(str(shown_cell(value)) for value in given.tolist())
    return shown_cell(given)


def shown_prediction(evidence: Evidence, row: int) -> Cell:
    """Formats the prediction of a test row for a table; of classes the most probable."""
    likelihood = evidence.distribution
    if evidence.classes is not None and evidence.outcome.ndim == 1:
        probs = likelihood.probs[row]  # type: ignore[union-attr]
        both = torch.stack([1 - probs, probs]) if probs.ndim == 0 else probs
        code = int(both.argmax())
        return f"{printable(evidence.classes[code], 40)} ({float(both[code]):.2f})"
    point = evidence.point[row]
    labels = evidence.model.outcome.labels
    if labels is not None:
        return ", ".join(printable(labels[int(code)], 20) for code in np.atleast_1d(point))
    if np.ndim(point):
        return ", ".join(number(float(value), 3) for value in point)
    return float(point)


def shown_cell(value: Any) -> Cell:
    """Formats a value for a table; None where it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return str(value)
