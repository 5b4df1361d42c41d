"""Reports how loss and calibration depend on the length of a text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.number_format import number, percent
from ansatz.figures.section import Cell, Section, Table
from ansatz.report.evidence import Evidence
from ansatz.report.reliability import class_probabilities

BINS, LEAST = 5, 20  # bins of equally many texts, and texts of a bin


def section(evidence: Evidence) -> Section | None:
    """The loss in bins of length, with how sure the model was and how often it was right."""
    losses = evidence.row_losses().numpy()
    lengths = _lengths(evidence)
    bins = _bins(lengths)
    if len(bins) < 2:
        return None
    weight = evidence.weight
    step = "tokens" if getattr(evidence.model.encoder, "tokens", None) is not None else "steps"
    head = [step, evidence.unit.many, f"mean {evidence.loss_name}", "standard error"]
    right = _of_classes(evidence)
    if right is not None:
        head += ["accuracy", "mean probability of the predicted class"]
    rows: list[list[Cell]] = []
    means: list[float] = []
    errors: list[float] = []
    for rows_of in bins:
        part, w = losses[rows_of], weight[rows_of]
        mean = float(np.average(part, weights=w))
        error = float(np.sqrt(np.average((part - mean) ** 2, weights=w) / len(part)))
        means, errors = [*means, mean], [*errors, error]
        low, high = int(lengths[rows_of].min()), int(lengths[rows_of].max())
        cells: list[Cell] = [f"{low} to {high}", len(part), mean, error]
        if right is not None:
            hit, sure = (float(np.average(each[rows_of], weights=w)) for each in right)
            cells += [hit, sure]
        rows.append(cells)
    high, low = int(np.argmax(means)), int(np.argmin(means))
    apart = (means[high] - means[low]) / max(float(np.hypot(errors[high], errors[low])), 1e-300)
    lead = (
        f"The {evidence.loss_name} is largest at {rows[high][0]} {step} ({number(means[high], 3)}) "
        f"and smallest at {rows[low][0]} ({number(means[low], 3)}): {number(apart, 2)} standard "
        f"errors apart, the largest such difference of {len(bins)} bins."
    )
    if right is not None:
        gaps = [abs(float(r[4]) - float(r[5])) for r in rows]  # type: ignore[arg-type]
        worst = int(np.argmax(gaps))
        lead += (
            f" Probabilities and accuracy differ most at {rows[worst][0]} {step}, by "
            f"{percent(gaps[worst])}."
        )
    return Section("Lengths", lead, [Table(head, rows, "Bins of about equally many.")])


def _lengths(evidence: Evidence) -> NDArray[np.int64]:
    encoder: Any = evidence.model.encoder
    found: NDArray[np.int64] = encoder.ragged(evidence.X).offsets.diff().numpy()
    return found


def _bins(lengths: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Rows in bins of length; equal lengths share a bin."""
    count = min(BINS, len(lengths) // LEAST)
    if count < 2:
        return []
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, count + 1)[1:-1], method="nearest"))
    number_of = np.searchsorted(edges, lengths, side="left")
    found = [np.flatnonzero(number_of == k) for k in range(len(edges) + 1)]
    return [rows for rows in found if len(rows)]


def _of_classes(
    evidence: Evidence,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Whether the predicted class was right, and its probability."""
    if evidence.classes is None or evidence.distribution is None or evidence.value.ndim > 1:
        return None
    probs, code = class_probabilities(evidence)
    top = probs.argmax(1)
    return (top == code).astype(np.float64), probs[np.arange(len(top)), top]
