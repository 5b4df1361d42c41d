"""Reports the reliability of predicted pixel probabilities on a sample of pixels."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.figures.number_format import number, percent, printable, with_error
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import ece
from ansatz.report.corp import Reliability, decompose, reliability
from ansatz.report.evidence import Evidence
from ansatz.report.reliability import draw_reliability

PIXELS = 4_000  # of the sample
MOST = 5  # classes shown


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
    said, top = pixels.probabilities.max(1)
    right = (top == pixels.codes).double()
    images = [pixels.image == n for n in range(len(evidence.outcome))]
    gaps = torch.stack([(right[at] - said[at]).mean() for at in images if bool(at.any())])
    gap = float(gaps.mean())
    error = float(gaps.std() / len(gaps) ** 0.5) if len(gaps) > 1 else float("nan")
    words = (
        f"the mean probability of the predicted class of a pixel is {percent(float(said.mean()))}, "
        f"the accuracy {percent(float(right.mean()))}, a difference of "
        f"{with_error(100 * gap, 100 * error)} points over {evidence.unit.many}"
    )
    if not error > 0:
        return f"{words}."
    if abs(gap) < 2 * error:
        return f"{words}; no miscalibration is detected."
    return f"{words}: it is {'over' if gap < 0 else 'under'}confident."


def section(evidence: Evidence) -> Section | None:
    """Reports reliability diagrams of pixel classes."""
    pixels = sample_pixels(evidence)
    count = pixels.probabilities.shape[1]
    asked = [1] if count == 2 else list(range(min(count, MOST + 1)))
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
