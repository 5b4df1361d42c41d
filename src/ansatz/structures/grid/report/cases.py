"""The examples that a likelihood of numbers fits best and worst, as pictures."""

import math

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.montage import pictures, strip
from ansatz.figures.number import number
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_words import (
    outcome_words,
    prediction_words,
    shown_outcome,
    shown_prediction,
)
from ansatz.structures.grid.report.network import names_of
from ansatz.structures.grid.report.pictures import pictures_of

SHOWN = 8  # of each
LISTED = 12


def section(evidence: Evidence) -> Section | None:
    """Pictures of the largest and the least losses; None for classes, which have mistakes."""
    if evidence.classes is not None:
        return None
    losses = evidence.row_losses().numpy()
    order = np.argsort(-losses, kind="stable")
    order = order[np.isfinite(losses[order])]
    if not len(order):
        return None
    count = min(SHOWN, math.ceil(len(order) / 2))
    worst, best = order[:count], order[::-1][:count]
    what = "nll" if evidence.likelihood.has_distribution else "loss"
    lead = (
        f"Look at the worst {evidence.unit.many} first: errors of the data show here. Their "
        f"{what} goes "
        f"from {number(float(losses[order[-1]]), 3)} to {number(float(losses[order[0]]), 3)}."
    )
    parts: list[Text | Table | Figure] = [
        _figure(evidence, worst, "worst", what),
        _figure(evidence, best, "best", what),
        _table(evidence, losses, order[:LISTED], what),
    ]
    return Section("The best and the worst predictions", lead, parts)


def _figure(evidence: Evidence, rows: NDArray[np.intp], which: str, what: str) -> Figure:
    shown = pictures(pictures_of(evidence.X[rows]), 64)
    captions = [
        f"is {outcome_words(evidence, int(k), 12)}\nsaid {prediction_words(evidence, int(k), 12)}"
        for k in rows
    ]
    svg = strip(shown, captions, columns=max(len(rows), 6), lines=2)
    side = "largest" if which == "worst" else "least"
    return Figure(
        svg,
        f"The {which}: {evidence.unit.many} with the {side} {what}, with their outcome and "
        "prediction.",
        f"Pictures of the {which} predictions: {'; '.join(captions[:4])}.".replace("\n", ", "),
    )


def _table(
    evidence: Evidence, losses: NDArray[np.float64], rows: NDArray[np.intp], what: str
) -> Table:
    names = names_of(evidence)
    cells: list[list[Cell]] = [
        [
            names[k],
            shown_outcome(evidence, int(k)),
            shown_prediction(evidence, int(k)),
            float(losses[k]),
        ]
        for k in rows
    ]
    return Table(
        ["example", "outcome", "prediction", what],
        cells,
        "The worst of them, called by their files, or numbered as in the data they came from.",
    )
