"""Supplies what classes add to a report and a comparison."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from ansatz.figures.number_format import percent, printable
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate, auc_estimate, mean_estimate
from ansatz.report.baselines import Forecast, estimate_nll
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import CURVES, OutcomeReport, Response
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair


class ClassesReport(OutcomeReport):
    """The contribution of classes: calibration of probabilities."""

    def calibration(self, evidence: Evidence) -> str:
        """Tests the probabilities by Spiegelhalter's z."""
        return _calibration(evidence)

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates log score, accuracy, Brier score and area under the ROC curve."""
        found = _estimates(forecast, evidence.value, evidence.weight)
        return {**estimate_nll(evidence, forecast), **found}

    def response(self, evidence: Evidence) -> Response:
        """Chooses the second of two classes, or the most frequent ones."""
        assert evidence.classes is not None
        labels = [f"P({printable(label, 24)})" for label in evidence.classes]
        if len(labels) == 2:
            return Response((labels[1],), (1,))
        share = np.bincount(evidence.outcome.numpy().astype(np.intp), minlength=len(labels))
        picks = tuple(np.argsort(-share, kind="stable")[:CURVES].tolist())
        return Response(tuple(labels[k] for k in picks), picks)

    def respond(
        self, outcome: Any, predictive: Predictive, response: Response
    ) -> NDArray[np.float64]:
        """Computes probabilities of classes."""
        served, _ = outcome.distribution(predictive, torch.zeros(len(predictive.raw)))
        probs = served.probs
        both = torch.stack([1 - probs, probs], -1) if probs.ndim == 1 else probs
        found: NDArray[np.float64] = both[:, list(response.picks)].numpy()
        return found

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether the labels are equal."""
        return np.array_equal(labels_of(a), labels_of(b))

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the log score of each row."""
        return log_score_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the Brier score of each row."""
        return ScorePair("brier", _brier(a), _brier(b), higher=False)


def labels_of(evaluated: Evaluated) -> NDArray[Any]:
    """Returns outcomes as text; codes below 0 have no label."""
    codes = evaluated.job.y.long().numpy()
    labels = np.append(np.asarray(evaluated.model.outcome.labels).astype(str), "")
    found: NDArray[Any] = labels[np.where(codes < 0, len(labels) - 1, codes)]
    return found


def spiegelhalter(event: Tensor, forecast: Tensor, weight: Tensor) -> float:
    r"""Computes Spiegelhalter's z, standard normal if the forecasts are calibrated.

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}
              {\sqrt{\sum_i w_i (1 - 2 p_i)^2 p_i (1 - p_i)}}

    References:
        Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.
        https://doi.org/10.1002/sim.4780050506
    """
    tilt = 1 - 2 * forecast
    variance = float((weight * tilt**2 * forecast * (1 - forecast)).sum())
    return float((weight * (event - forecast) * tilt).sum()) / variance**0.5 if variance else 0.0


def _calibration(evidence: Evidence) -> str:
    probs = evidence.distribution.probs  # type: ignore[union-attr]
    if evidence.value.ndim != 1:
        return "see the reliability of each outcome below."
    if probs.ndim == 1:
        event, forecast = evidence.value.double(), probs.double()
        assert evidence.classes is not None
        what = f"'{printable(evidence.classes[1], 40)}'"
    else:
        forecast, code = probs.double().max(-1)
        event = (code == evidence.value).double()
        what = "the predicted class"
    total = float(evidence.weight.sum())
    predicted = float((forecast * evidence.weight).sum()) / total
    seen = float((event * evidence.weight).sum()) / total
    p = 2 * float(stats.norm.sf(abs(spiegelhalter(event, forecast, evidence.weight))))
    words = f"the mean probability of {what} is {percent(predicted)}, its frequency {percent(seen)}"
    test = f"Spiegelhalter's test, p = {p:.2f}" if p >= 0.01 else "Spiegelhalter's test, p < 0.01"
    verdict = "no miscalibration is detected" if p >= 0.05 else "it is not calibrated"
    return f"{words}; {verdict} ({test})."


def _estimates(forecast: Forecast, y: Tensor, weight: Tensor) -> dict[str, Estimate]:
    likelihood = forecast.distribution
    assert likelihood is not None
    probs = likelihood.probs  # type: ignore[attr-defined]
    if probs.ndim == 1:
        hit = (probs > 0.5).long() == y
        score = getattr(likelihood, "logits", probs)
        return {
            "accuracy": mean_estimate(hit.double(), weight),
            "brier": mean_estimate((probs - y) ** 2, weight),
            "auc": auc_estimate(y, score, weight),
        }
    target = torch.nn.functional.one_hot(y.long(), probs.shape[-1])
    areas = [
        auc_estimate(target[:, k], probs[:, k], weight)
        for k in range(probs.shape[-1])
        if 0 < float((weight * target[:, k]).sum()) < float(weight.sum())
    ]
    found = {
        "accuracy": mean_estimate((probs.argmax(-1) == y).double(), weight),
        "brier": mean_estimate(((probs - target) ** 2).sum(-1), weight),
    }
    if len(areas) > 1:
        value = sum(area.value for area in areas) / len(areas)
        influence = torch.stack([area.influence for area in areas]).mean(0)
        found["auc"] = Estimate(value, influence)
    return found


def _brier(evaluated: Evaluated) -> NDArray[np.float64]:
    """Computes (p - y)^2 of two classes, the sum over the classes of more."""
    probability: Tensor = evaluated.distribution.probs.double()  # type: ignore[union-attr]
    y = evaluated.job.y.long()
    if probability.ndim == 1:
        return np.asarray((probability - y) ** 2)
    hit = torch.nn.functional.one_hot(y, probability.shape[-1])
    both = ((probability - hit) ** 2).sum(-1)
    return np.asarray(both / 2 if probability.shape[-1] == 2 else both)
