"""Supplies what masks add to a report and a comparison, scored example by example."""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.figures.number_format import number, percent, printable, with_error
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import (
    Estimate,
    boundary_f1,
    dice,
    ece,
    iou,
    mean_estimate,
    overlap,
    pixel_error,
)
from ansatz.metrics.segmentation import reduce_classes
from ansatz.report.baselines import Forecast, baselines
from ansatz.report.corp import Reliability, decompose, reliability
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair
from ansatz.report.recalibration import NONE, TITLE, paired_change
from ansatz.report.reliability import draw_reliability

PIXELS = 4_000  # of the sample
ASKED = 5  # classes shown


class PixelPredictions(NamedTuple):
    """Labelled pixels, sampled equally from all test images."""

    probabilities: Tensor  # (M, K)
    codes: Tensor  # (M,)
    image: Tensor  # (M,), the index of its image


def sample_pixels(evidence: Evidence) -> PixelPredictions:
    """Samples labelled pixels, equally many of each image."""
    return evidence.once("pixels", lambda: _draw(evidence))


def _draw(evidence: Evidence) -> PixelPredictions:
    (likelihood, raw), y = evidence.predictive(), evidence.outcome
    generator = torch.Generator().manual_seed(evidence.seed)
    each = max(1, PIXELS // len(y))
    probabilities, codes, image = [], [], []
    for n in range(len(y)):
        known = (y[n].flatten() >= 0).nonzero().squeeze(1)
        chosen = known[torch.randperm(len(known), generator=generator)[:each]]
        pixels = raw[n].reshape(-1, raw.shape[-1])[chosen]
        found = Predictive(likelihood, pixels)
        probabilities.append(evidence.model.of_classes.probabilities(found))
        codes.append(y[n].flatten()[chosen])
        image.append(torch.full((len(chosen),), n))
    return PixelPredictions(
        torch.cat(probabilities).double(), torch.cat(codes).long(), torch.cat(image)
    )


def pixel_calibration(evidence: Evidence) -> str:
    """Compares predicted probabilities with accuracy; the standard error is over images."""
    pixels = sample_pixels(evidence)
    forecast, top = pixels.probabilities.max(1)
    right = (top == pixels.codes).double()
    images = [pixels.image == n for n in range(len(evidence.outcome))]
    gaps = torch.stack([(right[at] - forecast[at]).mean() for at in images if bool(at.any())])
    gap = float(gaps.mean())
    error = float(gaps.std() / len(gaps) ** 0.5) if len(gaps) > 1 else float("nan")
    words = (
        "the mean probability of the predicted class of a pixel is "
        f"{percent(float(forecast.mean()))}, the accuracy {percent(float(right.mean()))}, a "
        f"difference of {with_error(100 * gap, 100 * error)} points over {evidence.unit.many}"
    )
    if not error > 0:
        return f"{words}."
    if abs(gap) < 2 * error:
        return f"{words}; no miscalibration is detected."
    return f"{words}: it is {'over' if gap < 0 else 'under'}confident."


def reliability_section(evidence: Evidence) -> Section | None:
    """Reports reliability diagrams of pixel classes."""
    pixels = sample_pixels(evidence)
    count = pixels.probabilities.shape[1]
    asked = [1] if count == 2 else list(range(min(count, ASKED + 1)))
    names = [] if evidence.classes is None else [printable(n, 24) for n in evidence.classes]
    lines: dict[str, Reliability] = {}
    rows: list[list[Cell]] = []
    for k in asked:
        event = (pixels.codes == k).double()
        forecast = pixels.probabilities[:, k].clamp(0, 1)
        lines[names[k]] = reliability(event.numpy(), forecast.numpy(), seed=evidence.seed)
        parts = decompose(event.numpy(), forecast.numpy())
        error = float(ece(event, forecast))
        rows.append([names[k], *(f"{part:.4f}" for part in parts), f"{error:.4f}"])
    lead = pixel_calibration(evidence)
    head = ["class", "Brier", "miscalibration", "discrimination", "uncertainty", "ECE"]
    table = Table(head, rows, "Brier = miscalibration − discrimination + uncertainty, exactly.")
    note = Text(
        f"On {number(len(pixels.codes))} labelled pixels, equally many of each of "
        f"{len(evidence.outcome)} {evidence.unit.many}. The band assumes independent pixels and is "
        "too narrow for neighbouring ones.",
        "note",
    )
    return Section(
        "Reliability of pixel probabilities",
        lead[0].upper() + lead[1:],
        [_figure(lines), table, note],
    )


def _figure(lines: dict[str, Reliability]) -> Figure:
    columns = min(len(lines), 3)
    height = -(-len(lines) // columns)
    with figure(
        3.6 if columns == 1 else 2.2 * columns, (3.4 if columns == 1 else 2.4) * height
    ) as paper:
        grid = np.atleast_1d(paper.subplots(height, columns, squeeze=False)).ravel()
        for axes, (name, line) in zip(grid, lines.items(), strict=False):
            draw_reliability(axes, line, name)
        for axes in grid[len(lines) :]:
            axes.set_axis_off()
        svg = to_svg(paper)
    return Figure(
        svg,
        "Share of pixels of the class against its predicted probability, by isotonic regression. "
        "Bars at the bottom: histogram of the predicted probabilities.",
        f"Reliability of pixel probabilities: {', '.join(lines)}.",
    )


def labelled(y: Tensor) -> Tensor:
    """Marks labelled pixels by 1, ``(N, *size)`` in double."""
    return (y != UNLABELLED).double()


MOST = 20  # classes


def classes_section(evidence: Evidence) -> Section | None:
    """Reports Dice, IoU, boundary F1 and error rates of every class and model."""
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
        f"The worst class is “{classes[order[0]]}”, with a Dice coefficient of "
        f"{mine[order[0]]:.3f}, the best “{classes[order[-1]]}”, with {mine[order[-1]]:.3f}."
    )
    head = ["class", "model", *found["model"]]
    caption = (
        f"Means over the test {evidence.unit.many}. Dice, IoU and boundary F1 are 1 where a class "
        "is absent from both masks. Missed: share of the class that is predicted as another; "
        "false: share of the predictions of the class that are of another."
    )
    return Section("Scores of each class", lead, [Table(head, rows, caption)])


def _by_class(evidence: Evidence, forecast: Forecast, count: int) -> dict[str, list[float]]:
    y, pixels = evidence.outcome.clamp(min=0), labelled(evidence.outcome)
    found = overlap(y, forecast.point, pixels, classes=count)
    weight = evidence.weight
    both, true, predicted = found.both, found.true, found.predicted
    union = true + predicted - both

    def mean(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        value = torch.where(whole > 0, part / whole.clamp(min=1e-300), 1.0)
        return [float(v) for v in (value * weight[:, None]).sum(0) / weight.sum()]

    def share(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        totals = ((t * weight[:, None]).sum(0) for t in (part, whole))
        return [float(a / b) if b > 0 else math.nan for a, b in zip(*totals, strict=True)]

    edges = _edges(y, forecast.point, pixels, weight, count)
    return {
        "Dice": mean(2 * both, true + predicted),
        "IoU": mean(both, union),
        "boundary F1": edges,
        "missed": share(true - both, true),
        "false": share(predicted - both, predicted),
    }


def _edges(
    y: torch.Tensor, codes: torch.Tensor, pixels: torch.Tensor, weight: torch.Tensor, count: int
) -> list[float]:
    """Computes boundary F1 of each class; of two classes of the second only."""
    whole = pixels * weight.reshape(-1, *(1,) * (y.ndim - 1))
    values = boundary_f1(y, codes, whole, classes=count, reduction="none")  # (N, K) or (N, 1)
    padded = torch.cat([torch.full((len(values), count - values.shape[1]), torch.nan), values], 1)
    means = reduce_classes(padded, weight, reduction="class")
    return [math.nan] * (count - len(means)) + [float(value) for value in means]


def recalibration_section(evidence: Evidence) -> Section | None:
    """Reports the nll of pixels before and after; one sentence without recalibration."""
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
    weight = evidence.weight * labelled(y).flatten(1).mean(1)
    change = paired_change(plain, served, weight=weight, group=evidence.group)
    gap = change.difference
    verdict = "improved" if gap.high < 0 else "worsened" if gap.low > 0 else "hardly changed"
    lead = (
        f"The logits were divided by a temperature of {done.value:.3f}, estimated on out-of-fold "
        f"pixels. On the test {evidence.unit.many} the nll {verdict}: {number(change.before)} "
        f"before, {number(change.after)} after (change {number(gap.value, 2)}, "
        f"{number(gap.low, 2)} to {number(gap.high, 2)}, over {evidence.unit.many}, not pixels)."
    )
    rows: list[list[Cell]] = [[name, done.before[name], done.after[name]] for name in done.before]
    caption = "On the out-of-fold pixels that it was estimated on."
    return Section(TITLE, lead, [Table(["metric", "before", "after"], rows, caption)])


_HERE = "ansatz.outcomes.report"
_CHAPTERS = [
    Chapter(41, "scores of each class", f"{_HERE}.mask:classes_section"),
    Chapter(42, "reliability of the pixels' probabilities", f"{_HERE}.mask:reliability_section"),
    Chapter(43, "recalibration", f"{_HERE}.mask:recalibration_section"),
]


class MaskReport(OutcomeReport):
    """The contribution of masks, whose scores are averaged over examples.

    The pixels of an example are dependent: standard errors count examples.
    """

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on scores, reliability and recalibration of pixels."""
        return _CHAPTERS

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates Dice, IoU, boundary F1, pixel error and log score, with influences."""
        y, codes, weight = evidence.outcome.clamp(min=0), forecast.point, evidence.weight
        pixels = labelled(evidence.outcome)
        classes = [] if evidence.classes is None else list(evidence.classes)
        count = len(classes)
        found: dict[str, Estimate] = {}
        for name, metric in (("dice", dice), ("iou", iou), ("boundary_f1", boundary_f1)):
            values = metric(y, codes, pixels, classes=count, reduction="none")  # (N, K)
            found[name] = _mean_of_classes(values, weight)
            if name == "dice" and count > 2:
                for k, label in enumerate(classes):
                    found[f"dice_{label}"] = _mean_of_classes(values[:, k : k + 1], weight)
        share = pixels.flatten(1).mean(1)  # labelled share of each image
        wrong = pixel_error(y, codes, pixels, reduction="image").nan_to_num()
        found["pixel_error"] = _mean_of_pixels(wrong, share, weight)
        found["accuracy"] = _mean_of_pixels(1 - wrong, share, weight)
        if forecast.losses is not None:
            found["nll"] = _mean_of_pixels(forecast.losses, share, weight)
        return found

    def calibration(self, evidence: Evidence) -> str:
        """Compares predicted probabilities with accuracy."""
        return pixel_calibration(evidence)

    def response(self, evidence: Evidence) -> None:
        """None: pixels have no common feature."""
        return None

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether the masks are equal."""
        return torch.equal(a.job.y, b.job.y)

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the Dice coefficient of each example, the mean over its classes."""
        return ScorePair("dice", _dice(a), _dice(b), higher=True)

    def score_beside(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the mean log score of each example; pixel error without a likelihood."""
        if a.likelihood.has_distribution and b.likelihood.has_distribution:
            return log_score_pair(a, b)
        return ScorePair("pixel_error", _wrong(a), _wrong(b), higher=False)


def _mean_of_classes(values: Tensor, weight: Tensor) -> Estimate:
    """Averages over images and then over classes, ignoring undefined numbers."""
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


def _mean_of_pixels(values: Tensor, share: Tensor, weight: Tensor) -> Estimate:
    """Averages over labelled pixels: a ratio of means of images."""
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
