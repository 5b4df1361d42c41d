"""What classes of elements contribute to a report: scores example by example."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.unlabelled import UNLABELLED
from ansatz.figures.number import number
from ansatz.figures.section import Cell, Chapter, Section, Table
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate, boundary_f1, dice, iou, mean_estimate, overlap, pixel_error
from ansatz.metrics.segmentation import reduce_classes
from ansatz.outcomes.report.mask_reliability import of_cells
from ansatz.report.baselines import Forecast, baselines
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair
from ansatz.report.recalibration import NONE, TITLE, paired_change


def labelled(y: Tensor) -> Tensor:
    """1 where a cell has a label, ``(N, *size)`` in double."""
    return (y != UNLABELLED).double()


MOST = 20  # classes


def classes_section(evidence: Evidence) -> Section | None:
    """Dice, IoU, boundary F1 and wrong cells of every class and model."""
    forecasts = baselines(evidence).forecasts
    classes = [] if evidence.classes is None else [str(name) for name in evidence.classes]
    rows: list[list[Cell]] = []
    found = {forecast.name: _by_class(evidence, forecast, len(classes)) for forecast in forecasts}
    for k, label in enumerate(classes[:MOST]):
        for name, values in found.items():
            numbers = (values[metric][k] for metric in values)
            rows.append([label, name, *(None if math.isnan(v) else f"{v:.3f}" for v in numbers)])
    mine = found["model"]["Dice"]
    order = sorted(range(len(classes)), key=lambda k: mine[k])
    lead = (
        f"The class that is found worst is “{classes[order[0]]}”, with a Dice coefficient of "
        f"{mine[order[0]]:.3f}; the best “{classes[order[-1]]}”, with {mine[order[-1]]:.3f}."
    )
    head = ["class", "model", *found["model"]]
    caption = (
        f"Means over the test {evidence.unit.many}. Dice, IoU and boundary F1 are 1 where a class "
        "is "
        "absent from both masks. Missed: cells of the class that are given another one; "
        "said wrongly: cells that are given the class and are of another."
    )
    return Section("Scores of each class", lead, [Table(head, rows, caption)])


def _by_class(evidence: Evidence, forecast: Forecast, count: int) -> dict[str, list[float]]:
    y, cells = evidence.outcome.clamp(min=0), labelled(evidence.outcome)
    found = overlap(y, forecast.point, cells, classes=count)
    weight = evidence.weight
    both, true, said = found.both, found.true, found.predicted
    union = true + said - both

    def mean(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        value = torch.where(whole > 0, part / whole.clamp(min=1e-300), 1.0)
        return [float(v) for v in (value * weight[:, None]).sum(0) / weight.sum()]

    def share(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        totals = ((t * weight[:, None]).sum(0) for t in (part, whole))
        return [float(a / b) if b > 0 else math.nan for a, b in zip(*totals, strict=True)]

    edges = _edges(y, forecast.point, cells, weight, count)
    return {
        "Dice": mean(2 * both, true + said),
        "IoU": mean(both, union),
        "boundary F1": edges,
        "missed": share(true - both, true),
        "said wrongly": share(said - both, said),
    }


def _edges(
    y: torch.Tensor, codes: torch.Tensor, cells: torch.Tensor, weight: torch.Tensor, count: int
) -> list[float]:
    """Boundary F1 of each class; of two classes the metric is that of the second alone."""
    whole = cells * weight.reshape(-1, *(1,) * (y.ndim - 1))
    values = boundary_f1(y, codes, whole, classes=count, reduction="none")  # (N, K) or (N, 1)
    padded = torch.cat([torch.full((len(values), count - values.shape[1]), torch.nan), values], 1)
    means = reduce_classes(padded, weight, reduction="class")  # of two classes the second alone
    return [math.nan] * (count - len(means)) + [float(value) for value in means]


def recalibration_section(evidence: Evidence) -> Section | None:
    """The log score of cells before and after; one sentence where there was no recalibration."""
    if not evidence.likelihood.has_distribution:
        return None
    done = evidence.model.recalibration
    if done is None:
        return Section(TITLE, NONE)
    y = evidence.outcome
    likelihood, raw = evidence.predictive()
    before = Predictive(likelihood, raw * done.value)  # the temperature divides the logits
    plain = evidence.model.outcome.row_losses(before, y)
    served = evidence.row_losses()
    cells = evidence.weight * labelled(y).flatten(1).mean(1)
    change = paired_change(plain, served, weight=cells, group=evidence.group)
    gap = change.difference
    verdict = "improved" if gap.high < 0 else "worsened" if gap.low > 0 else "hardly changed"
    lead = (
        f"The logits were divided by a temperature of {done.value:.3f}, found on out-of-fold "
        f"cells. On the test {evidence.unit.many}, which took part in neither, it {verdict} the "
        "nll: "
        f"{number(change.before)} before, {number(change.after)} after (change "
        f"{number(gap.value, 2)}, {number(gap.low, 2)} to {number(gap.high, 2)}; "
        f"{evidence.unit.many} count, not cells)."
    )
    rows: list[list[Cell]] = [[name, done.before[name], done.after[name]] for name in done.before]
    caption = "On cells of examples left out, where it was found."
    return Section(TITLE, lead, [Table(["metric", "before", "after"], rows, caption)])


_HERE = "ansatz.outcomes.report"
_CHAPTERS = [
    Chapter(41, "scores of each class", f"{_HERE}.mask:classes_section"),
    Chapter(42, "reliability of the cells' probabilities", f"{_HERE}.mask_reliability:section"),
    Chapter(43, "recalibration", f"{_HERE}.mask:recalibration_section"),
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
