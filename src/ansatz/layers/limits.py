"""Checks of numbers before anything is allocated."""

import math
from numbers import Real

from ansatz.errors import UsageError

MAX_WIDTH = 2**20  # units of one layer; a square layer of that width would take 4 TB


def require_whole(name: str, value: object, *, low: int = 1, high: int = MAX_WIDTH) -> int:
    """``value`` as an int, if it is a whole number in ``[low, high]``."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or not low <= int(value) <= high:  # type: ignore[call-overload]
        text = f"{value!r}"[:40]
        raise UsageError(f"{name} must be a whole number in [{low}, {high}], got {text}.")
    return int(value)  # type: ignore[call-overload]


def require_positive(name: str, value: object) -> float:
    """``value`` as a float, if it is a positive and finite number."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise UsageError(f"{name} must be a positive number, got {value!r:.40}.")
    return float(value)  # type: ignore[arg-type]


def require_number(name: str, value: object) -> float:
    """``value`` as a float, if it is a finite number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise UsageError(f"{name} must be a number, got {value!r:.40}.")
    return float(value)
