"""Outcomes and predictions of single rows, in tables and in captions of pictures."""

from typing import Any

import numpy as np
import torch

from ansatz.figures.number import number
from ansatz.figures.printable import printable
from ansatz.figures.section import Cell
from ansatz.report.evidence import Evidence


def outcome_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """The outcome of a test row; a time that is censored as ``> 3.5``.

    Args:
        evidence: of a model on its test rows.
        row: its number among them, from 0.
        limit: letters; the middle of more is left out.
    """
    words = evidence.outcome_report.words(evidence, row)
    return _short(shown_outcome(evidence, row) if words is None else words, limit)


def prediction_words(evidence: Evidence, row: int, limit: int = 18) -> str:
    """The prediction of a test row.

    Args:
        evidence: of a model on its test rows.
        row: its number among them, from 0.
        limit: letters; the middle of more is left out.
    """
    return _short(shown_prediction(evidence, row), limit)


def _short(value: Cell, limit: int) -> str:
    return printable(value if isinstance(value, str) else number(value, 3), limit)


def shown_outcome(evidence: Evidence, row: int) -> Cell:
    """The outcome of a test row as a table shows it."""
    given = evidence.y.iloc[row] if hasattr(evidence.y, "iloc") else np.asarray(evidence.y)[row]
    if hasattr(given, "items"):  # a row of several columns
        return ", ".join(
            f"{printable(name, 20)} {shown_cell(value)}" for name, value in given.items()
        )
    if isinstance(given, np.ndarray):
        return ", ".join(str(shown_cell(value)) for value in given.tolist())
    return shown_cell(given)


def shown_prediction(evidence: Evidence, row: int) -> Cell:
    """The prediction of a test row as a table shows it; of classes the most probable one."""
    likelihood = evidence.distribution
    if evidence.classes is not None and evidence.outcome.ndim == 1:
        probs = likelihood.probs[row]  # type: ignore[union-attr]
        both = torch.stack([1 - probs, probs]) if probs.ndim == 0 else probs
        code = int(both.argmax())
        return f"{printable(evidence.classes[code], 40)} ({float(both[code]):.2f})"
    point = evidence.point[row]
    labels = evidence.model.outcome.labels
    if labels is not None:
        return ", ".join(printable(labels[int(code)], 20) for code in np.atleast_1d(point))
    if np.ndim(point):
        return ", ".join(number(float(value), 3) for value in point)
    return float(point)


def shown_cell(value: Any) -> Cell:
    """A value of data as a table shows it; None where it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return str(value)
