"""The rows that the model was most surprised by."""

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number import number
from ansatz.figures.section import Cell, Section, Table, Text
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_words import shown_cell, shown_outcome, shown_prediction
from ansatz.structures.vector.report.importance import importances

COUNT = 20
COLUMNS = 5  # of features shown
LEVEL = 0.9


def worst_rows(losses: torch.Tensor, count: int = COUNT) -> NDArray[np.intp]:
    """The numbers of the rows with the largest losses, largest first."""
    order = np.argsort(-losses.numpy(), kind="stable")
    found: NDArray[np.intp] = order[:count]
    return found


def section(evidence: Evidence) -> Section | None:
    """The worst-fitted rows with outcome, prediction, interval and the columns that matter."""
    losses = evidence.row_losses()
    chosen = worst_rows(losses)
    names = [name for item in importances(evidence) for name in item.columns][:COLUMNS]
    intervals = _intervals(evidence)
    head = ["row", "outcome", "prediction"]
    if intervals is not None:
        head.append(f"{LEVEL:.0%} interval".replace("%", " %"))
    rows: list[list[Cell]] = []
    for k in chosen:
        row: list[Cell] = [
            int(evidence.rows[k]),
            shown_outcome(evidence, int(k)),
            shown_prediction(evidence, int(k)),
        ]
        if intervals is not None:
            row.append(f"{number(intervals[k, 0], 3)} to {number(intervals[k, 1], 3)}")
        row.append(float(losses[k]))
        row += [shown_cell(evidence.X[name].iloc[k]) for name in names]
        rows.append(row)
    what = "nll" if evidence.likelihood.has_distribution or evidence.classes is not None else "loss"
    share = _share(evidence, losses)
    lead = (
        f"The 1 % of rows with the largest losses make {share} of the total loss."
        if len(losses) >= 100 and share
        else "Look at these rows first: errors of the data show here."
    )
    return Section(
        "Worst-fitted rows",
        lead,
        [
            Table(
                [*head, what, *names],
                rows,
                f"The {len(rows)} test rows with the largest {what}, numbered as in the table they "
                "came from; features by importance.",
            ),
            Text(
                "Outcomes and features of single rows are shown: mind who reads this page.",
                "note",
            ),
        ],
    )


def _share(evidence: Evidence, losses: torch.Tensor) -> str:
    if float(losses.min()) < 0:  # a share of a sum with both signs says nothing
        return ""
    total = float((losses * evidence.weight).sum())
    top = worst_rows(losses, max(1, len(losses) // 100))
    part = float((losses * evidence.weight)[torch.from_numpy(top.copy())].sum())
    return f"{100 * part / total:.0f} %" if total > 0 else ""


def _intervals(evidence: Evidence) -> NDArray[np.float64] | None:
    likelihood = evidence.distribution
    plain = evidence.classes is None and not hasattr(likelihood, "ranks")
    if likelihood is None or not plain or evidence.point.ndim != 1:
        return None
    if int(getattr(evidence.likelihood, "causes", 1)) > 1:
        return None
    with torch.no_grad():
        low, high = likelihood.interval(LEVEL)
    return torch.stack([low, high], -1).numpy()
