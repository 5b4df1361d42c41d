"""What classes of elements contribute to a report: scores example by example."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.figures.section import Chapter
from ansatz.metrics import Estimate, boundary_f1, dice, iou, mean_estimate, pixel_error
from ansatz.outcomes.report.labelled import labelled
from ansatz.outcomes.report.mask_reliability import of_cells
from ansatz.report.baselines import Forecast
from ansatz.report.evaluated import Evaluated
from ansatz.report.evidence import Evidence
from ansatz.report.number_pair import log_score_pair
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import ScorePair

_HERE = "ansatz.outcomes.report"
_CHAPTERS = [
    Chapter(41, "scores of each class", f"{_HERE}.mask_classes:section"),
    Chapter(42, "reliability of the cells' probabilities", f"{_HERE}.mask_reliability:section"),
    Chapter(43, "recalibration", f"{_HERE}.mask_recalibration:section"),
]


class MaskReport(OutcomeReport):
    """Scores a class for every element, example by example.

    An example is one unit: its elements are not independent of each other, and a standard error
    that counts elements would be far too small.
    """

    def chapters(self) -> list[Chapter]:
        """Scores, reliability and recalibration of elements."""
        return _CHAPTERS

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Dice, IoU, boundary F1, wrong cells and the log score, with each example's influence."""
        y, codes, weight = evidence.outcome.clamp(min=0), forecast.point, evidence.weight
        cells = labelled(evidence.outcome)
        classes = [] if evidence.classes is None else list(evidence.classes)
        count = len(classes)
        found: dict[str, Estimate] = {}
        for name, metric in (("dice", dice), ("iou", iou), ("boundary_f1", boundary_f1)):
            values = metric(y, codes, cells, classes=count, reduction="none")  # (N, K)
            found[name] = _mean_of_classes(values, weight)
            if name == "dice" and count > 2:
                for k, label in enumerate(classes):
                    found[f"dice_{label}"] = _mean_of_classes(values[:, k : k + 1], weight)
        share = cells.flatten(1).mean(1)  # labelled cells of each image
        wrong = pixel_error(y, codes, cells, reduction="image").nan_to_num()
        found["pixel_error"] = _mean_of_cells(wrong, share, weight)
        found["accuracy"] = _mean_of_cells(1 - wrong, share, weight)
        if forecast.losses is not None:
            found["nll"] = _mean_of_cells(forecast.losses, share, weight)
        return found

    def calibration(self, evidence: Evidence) -> str:
        """Whether predicted classes are as often right as their probabilities say."""
        return of_cells(evidence)

    def response(self, evidence: Evidence) -> None:
        """None: elements have no effect of a feature in common."""
        return None

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Whether the masks are the same."""
        return torch.equal(a.job.y, b.job.y)

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Dice's coefficient of each example, the mean over its classes."""
        return ScorePair("dice", _dice(a), _dice(b), higher=True)

    def score_beside(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """The log score of the cells of each example; the share of wrong cells without a likelihood."""
        if a.likelihood.has_distribution and b.likelihood.has_distribution:
            return log_score_pair(a, b)
        return ScorePair("pixel_error", _wrong(a), _wrong(b), higher=False)


def _mean_of_classes(values: Tensor, weight: Tensor) -> Estimate:
    """The mean over images and then over classes; a number that is not defined has no say."""
    means, influences = [], []
    for column in values.T:
        there = column.isfinite() & (weight > 0)
        if not bool(there.any()):
            continue
        value = float((column[there] * weight[there]).sum() / weight[there].sum())
        share = float(weight[there].sum() / weight.sum())
        means.append(value)
        influences.append(torch.where(there, column.nan_to_num() - value, 0.0) / share)
    if not means:
        return Estimate(float("nan"), torch.zeros(len(values), dtype=torch.float64))
    return Estimate(sum(means) / len(means), torch.stack(influences).mean(0))


def _mean_of_cells(values: Tensor, share: Tensor, weight: Tensor) -> Estimate:
    """The mean over labelled cells: a ratio of means of images."""
    size = mean_estimate(share, weight).value
    value = mean_estimate(values * share, weight).value / size
    return Estimate(value, share * (values - value) / size)


def _codes(evaluated: Evaluated) -> Tensor:
    return evaluated.model.outcome.estimate(evaluated.predictive, evaluated.job.y)


def _dice(evaluated: Evaluated) -> NDArray[np.float64]:
    y, count = evaluated.job.y, len(evaluated.model.labels)
    found = dice(y.clamp(min=0), _codes(evaluated), labelled(y), classes=count, reduction="image")
    return found.nan_to_num().numpy()


def _wrong(evaluated: Evaluated) -> NDArray[np.float64]:
    y = evaluated.job.y
    wrong = pixel_error(y.clamp(min=0), _codes(evaluated), labelled(y), reduction="image")
    return wrong.nan_to_num().numpy()
