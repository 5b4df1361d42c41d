"""One number beside each row: how often it counts, what is added to its predictor."""

from typing import Any

import numpy as np

from ansatz.errors import DataError


def check_weight(weight: Any, rows: int) -> np.ndarray:
    """Frequency weights as ``(N,)`` float64, ones when None: finite, none negative, not all zero.

    A row of weight 3 counts like three such rows, one of weight 0 like none.

    Example:
        >>> from ansatz.data import check_weight
        >>> check_weight([1, 2], rows=2)
        array([1., 2.])
        >>> check_weight([1, -2], rows=2)
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: weights must be >= 0, got -2 at row 2.
    """
    if weight is None:
        return np.ones(rows)
    values = check_numbers(weight, rows, "weights")
    negative = np.flatnonzero(values < 0)
    if len(negative):
        raise DataError(
            f"weights must be >= 0, got {values[negative[0]]:g} at row {negative[0] + 1}."
        )
    if rows and not values.any():
        raise DataError("weights are all zero: no row counts.")
    return values


def check_numbers(values: Any, rows: int, what: str) -> np.ndarray:
    """One finite number per row as ``(N,)`` float64; ``what`` names them in errors."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers, got {type(values).__name__}.") from None
    if numbers.shape != (rows,):
        raise DataError(f"{what} must have shape ({rows},), one per row, got {numbers.shape}.")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise DataError(
            f"{what} must be finite, got {numbers[bad[0]]} at row {bad[0] + 1} "
            f"({len(bad)} such rows)."
        )
    return numbers
