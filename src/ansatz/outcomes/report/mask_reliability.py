"""Are the probabilities of cells right? Reliability on a sample of the cells of test images."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.figures.number import number, percent, with_error
from ansatz.figures.printable import printable
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import ece
from ansatz.report.corp import Reliability, decompose, reliability
from ansatz.report.evidence import Evidence
from ansatz.report.reliability import draw_reliability

PIXELS = 4_000  # that are drawn
MOST = 5  # classes that are asked about


class Pixels(NamedTuple):
    """Labelled cells drawn at random from all test images alike."""

    probabilities: Tensor  # (M, K)
    codes: Tensor  # (M,)
    image: Tensor  # (M,), which image each is of


def draw_pixels(evidence: Evidence) -> Pixels:
    """A sample of labelled cells, as many of each image."""
    if "cells" not in evidence.kept:
        evidence.kept["cells"] = _draw(evidence)
    found: Pixels = evidence.kept["cells"]
    return found


def _draw(evidence: Evidence) -> Pixels:
    (likelihood, raw), y = evidence.predictive(), evidence.outcome
    generator = torch.Generator().manual_seed(evidence.seed)
    each = max(1, PIXELS // len(y))
    probabilities, codes, image = [], [], []
    for n in range(len(y)):
        known = (y[n].flatten() >= 0).nonzero().squeeze(1)
        chosen = known[torch.randperm(len(known), generator=generator)[:each]]
        cells = raw[n].reshape(-1, raw.shape[-1])[chosen]
        found = Predictive(likelihood, cells)
        probabilities.append(evidence.model.of_classes.probabilities(found))
        codes.append(y[n].flatten()[chosen])
        image.append(torch.full((len(chosen),), n))
    return Pixels(torch.cat(probabilities).double(), torch.cat(codes).long(), torch.cat(image))


def of_cells(evidence: Evidence) -> str:
    """Whether predicted classes of cells are as often right as their probabilities say.

    The standard error counts images: cells of one image are not independent.
    """
    cells = draw_pixels(evidence)
    said, top = cells.probabilities.max(1)
    right = (top == cells.codes).double()
    images = [cells.image == n for n in range(len(evidence.outcome))]
    gaps = torch.stack([(right[at] - said[at]).mean() for at in images if bool(at.any())])
    gap = float(gaps.mean())
    error = float(gaps.std() / len(gaps) ** 0.5) if len(gaps) > 1 else float("nan")
    told = (
        f"the probability of the class that it predicts for a cell averages "
        f"{percent(float(said.mean()))} where {percent(float(right.mean()))} came true, a "
        f"difference of {with_error(100 * gap, 100 * error)} points over {evidence.unit.many}"
    )
    if not error > 0:
        return f"{told}."
    if abs(gap) < 2 * error:
        return f"{told}; it is calibrated as far as these {evidence.unit.many} can tell."
    return f"{told}: it is {'over' if gap < 0 else 'under'}confident."


def section(evidence: Evidence) -> Section | None:
    """Reliability diagrams of the classes of cells."""
    cells = draw_pixels(evidence)
    count = cells.probabilities.shape[1]
    asked = [1] if count == 2 else list(range(min(count, MOST + 1)))
    names = [] if evidence.classes is None else [printable(n, 24) for n in evidence.classes]
    lines: dict[str, Reliability] = {}
    rows: list[list[Cell]] = []
    for k in asked:
        event = (cells.codes == k).double()
        forecast = cells.probabilities[:, k].clamp(0, 1)
        lines[names[k]] = reliability(event.numpy(), forecast.numpy(), seed=evidence.seed)
        parts = decompose(event.numpy(), forecast.numpy())
        error = float(ece(event, forecast))
        rows.append([names[k], *(f"{part:.4f}" for part in parts), f"{error:.4f}"])
    lead = of_cells(evidence)
    head = ["class", "Brier", "miscalibration", "discrimination", "uncertainty", "ECE"]
    table = Table(head, rows, "Brier = miscalibration − discrimination + uncertainty, exactly.")
    note = Text(
        f"On {number(len(cells.codes))} labelled cells, as many of each of "
        f"{len(evidence.outcome)} {evidence.unit.many}. The band takes cells for independent, "
        "which "
        "neighbours are not: leaving it a little proves nothing.",
        "note",
    )
    return Section(
        "Are the cells' probabilities right?",
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
        "Share of cells that are of the class against its predicted probability, by isotonic "
        "regression. Bars at the bottom: how often each probability was predicted.",
        f"Reliability of the probabilities of cells: {', '.join(lines)}.",
    )
