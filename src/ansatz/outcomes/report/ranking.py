"""What rankings contribute to a report."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.printable import printable
from ansatz.figures.section import Chapter
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate
from ansatz.outcomes.report.classes import labels_of
from ansatz.report.baselines import Forecast
from ansatz.report.estimates import estimate_nll
from ansatz.report.evaluated import Evaluated
from ansatz.report.evidence import Evidence
from ansatz.report.number_pair import log_score_pair
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import ScorePair
from ansatz.report.response import MOST, Response

_FIRST = Chapter(33, "first places of rankings", "ansatz.outcomes.report.first_places:section")


class RankingReport(OutcomeReport):
    """Asks whether items come first as often as predicted."""

    def chapters(self) -> list[Chapter]:
        """Those of any likelihood, and one on first places."""
        return [*super().chapters(), _FIRST]

    def calibration(self, evidence: Evidence) -> str:
        """Nothing is to be said in a sentence."""
        return "orders have no intervals to be evaluated by."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """The log score."""
        return estimate_nll(evidence, forecast)

    def response(self, evidence: Evidence) -> Response:
        """The chance of coming first."""
        items = [f"P({printable(item, 24)} first)" for item in evidence.model.labels]
        return Response(tuple(items[:MOST]), tuple(range(min(MOST, len(items)))))

    def respond(
        self, outcome: Any, predictive: Predictive, response: Response
    ) -> NDArray[np.float64]:
        """Chances of coming first."""
        with torch.no_grad():
            first: Any = predictive.distribution
            found: NDArray[np.float64] = first.probs[:, list(response.picks)].numpy()
        return found

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Whether the rows have the same labels."""
        return np.array_equal(labels_of(a), labels_of(b))

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """The log score of each ranking."""
        return log_score_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> None:
        """None."""
        return None
