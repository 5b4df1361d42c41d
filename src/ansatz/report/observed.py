"""Draws the outcomes of numbers against their predictions."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, thin, to_svg
from ansatz.report.evidence import Evidence
from ansatz.report.residual_panels import local_linear
from ansatz.report.transform import MOST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]
FEWEST = 5  # rows
WIDE = 100  # the ratio of the 99 % to the 1 % quantile from which both axes are logarithmic


def section(evidence: Evidence) -> Section | None:
    """Draws each numeric outcome against its prediction, with the line on which both are equal."""
    pairs = observed_pairs(evidence)
    if not pairs:
        return None
    columns = min(2, len(pairs))
    height = math.ceil(len(pairs) / columns)
    with figure(3.4 * columns, 3.2 * height) as paper:
        panels = paper.subplots(height, columns, squeeze=False).ravel()
        for axes, (name, predicted, seen) in zip(panels, pairs, strict=False):
            draw_observed(axes, predicted, seen)
            axes.set_title(name)
        for axes in panels[len(pairs) :]:
            axes.set_axis_off()
        svg = to_svg(paper)
    parts: list[Text | Table | Figure] = [
        Figure(
            svg,
            "Outcomes of the test rows against their predictions; the straight line is where both "
            "are equal, the curve the local mean of the outcomes.",
            "Observed against predicted.",
        )
    ]
    return Section("Predicted and observed", _lead(pairs), parts)


def observed_pairs(evidence: Evidence) -> list[tuple[str, Numbers, Numbers]]:
    """Lists name, predictions and outcomes of each number; none where there are no numbers."""
    if evidence.axis != "row" or evidence.is_censored or evidence.model.outcome.labels is not None:
        return []
    if getattr(evidence.distribution, "circular", False):
        return []
    if evidence.distribution is not None and hasattr(evidence.distribution, "trials"):
        predicted = evidence.distribution.mean.numpy()  # counts, not their shares
    else:
        predicted = np.asarray(evidence.point, dtype=np.float64)
    seen = evidence.value.double().numpy()
    if seen.ndim == 1 and predicted.ndim == 2:  # quantiles: the middle one
        predicted = predicted[:, predicted.shape[1] // 2]
    if predicted.shape != seen.shape or seen.ndim > 2:
        return []
    if seen.ndim == 1:
        predicted, seen = predicted[:, None], seen[:, None]
        names = [""]
    else:
        known = evidence.model.outcome.names or [str(k) for k in range(seen.shape[1])]
        names = [printable(name, 40) for name in known]
    found = []
    for k in range(min(seen.shape[1], MOST)):
        usable = np.isfinite(predicted[:, k]) & np.isfinite(seen[:, k])
        if usable.sum() >= FEWEST:
            found.append((names[k], predicted[usable, k], seen[usable, k]))
    return found


def draw_observed(axes: "Axes", predicted: Numbers, observed: Numbers) -> None:
    """Draws points, the line of equality and the local mean of what was observed."""
    both = np.concatenate([predicted, observed])
    low, high = float(both.min()), float(both.max())
    if low > 0 and np.quantile(both, 0.99) > WIDE * np.quantile(both, 0.01):
        axes.set(xscale="log", yscale="log")
    axes.plot([low, high], [low, high], color=INK, lw=0.8)
    x, y = thin(predicted, observed, limit=800)
    axes.plot(x, y, ".", color=MODEL, ms=4, alpha=0.6, mew=0)
    if len(np.unique(predicted)) > 3:
        line = local_linear(predicted, observed)
        axes.plot(line.x, line.value, color=LINEAR, lw=1.5)
    axes.set(xlabel="predicted", ylabel="observed")


def _lead(pairs: list[tuple[str, Numbers, Numbers]]) -> str:
    sentences = []
    for name, predicted, observed in pairs:
        if np.ptp(predicted) <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
            sentences.append(f"{name or 'The prediction'} is the same for every row.")
            continue
        correlation = float(np.corrcoef(predicted, observed)[0, 1])
        slope = float(np.polyfit(predicted, observed, 1)[0])
        where = f"{name}: the" if name else "The"
        sentences.append(
            f"{where} correlation of outcome and prediction is {number(correlation, 2)}; the slope "
            f"of the outcome on the prediction is {number(slope, 3)}, 1 if calibrated."
        )
    return " ".join(sentences)
