"""The Brier score of survival curves over time, beside that of a curve without features."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import AnsatzError
from ansatz.figures.section import Figure, Table, Text
from ansatz.figures.style import LINEAR, MODEL, figure, to_svg
from ansatz.metrics import brier_survival, integrated_brier
from ansatz.outcomes.report.horizons import reference_curve
from ansatz.outcomes.report.survival_rows import SurvivalRows
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]


def draw_brier(axes: "Axes", times: Numbers, model: Numbers, reference: Numbers) -> None:
    """Brier scores over time, of the model and of the Kaplan-Meier curve.

    Args:
        axes: of matplotlib.
        times: ``(T,)``.
        model: ``(T,)``.
        reference: ``(T,)``.
    """
    axes.plot(times, reference, color=LINEAR, label="Kaplan-Meier", ls=(0, (4, 2)))
    axes.plot(times, model, color=MODEL, label="model")
    axes.set_ylim(0, None)
    axes.set_xlabel("time")
    axes.set_ylabel("Brier score")
    axes.legend(loc="lower right")


def brier_parts(evidence: Evidence, rows: SurvivalRows) -> list[Text | Table | Figure]:
    """The figure and a sentence; a sentence alone where there is no such score."""
    outcome = evidence.model.of_times
    followed = outcome.followed
    if rows.entry is not None or not len(followed.time):
        return [Text("Rows entered late: a Brier score weighted for censoring is not defined.")]
    seen = rows.time[rows.cause > 0]
    first, last = float(seen.min()), min(float(seen.max()), followed.horizon)
    if not first < last:
        return []
    grid = torch.linspace(first, last, 61, dtype=torch.float64)[:-1]
    survival = outcome.survival(evidence.predictive(), grid.numpy())
    km = reference_curve(followed.time, followed.event, grid.tolist(), followed.weight)
    fixed = (grid, torch.from_numpy(rows.time), torch.from_numpy(rows.cause))
    train = (followed.time, followed.event)
    options: dict[str, Any] = {
        "weight": torch.from_numpy(rows.weight),
        "train_weight": followed.weight,
    }
    curves = (torch.from_numpy(survival), torch.from_numpy(km).expand(len(survival), -1))
    try:
        scores = [brier_survival(curve, *fixed, *train, **options).numpy() for curve in curves]
        totals = [float(integrated_brier(curve, *fixed, *train, **options)) for curve in curves]
    except AnsatzError as error:
        return [Text(f"No Brier score: {error}")]
    with figure(5.2, 2.6) as paper:
        draw_brier(paper.subplots(), grid.numpy(), *scores)
        svg = to_svg(paper)
    skill = 1 - totals[0] / totals[1]
    gain = f"take {100 * skill:.1f} % off it" if skill > 0 else f"add {-100 * skill:.1f} % to it"
    words = (
        f"Integrated Brier score {totals[0]:.4f}, of the Kaplan-Meier curve {totals[1]:.4f}: the "
        f"features {gain}."
    )
    caption = (
        "Brier score of the survival curves over time, weighted for censoring by the training "
        "rows, beside that of the Kaplan-Meier curve of the training rows, which knows no feature."
    )
    return [Figure(svg, caption, words), Text(words)]
