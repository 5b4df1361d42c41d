"""Levels of a categorical column: one spelling for each value, whatever its type."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MISSING = "(missing)"  # the level of an absent value, where training rows had absent values
OTHER = "(other)"  # the level that rare values share, where there are too many


def level_name(value: Any) -> str:
    """The one spelling of a value: 1, 1.0 and "1" are the same level.

    A column of integers becomes floating as soon as one cell is missing; its levels must not.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def spelled(column: "pd.Series") -> tuple[np.ndarray, list[str]]:
    """Codes ``(N,)``, -1 where missing, and the level that each code stands for."""
    import pandas as pd

    try:
        codes, values = pd.factorize(column)
    except TypeError:  # lists or dicts cannot be hashed
        kind = type(column.dropna().iloc[0]).__name__
        raise DataError(
            f"column '{column.name}' holds a {kind} per row; expected numbers or text. Leave it "
            f"out: --drop {column.name}"
        ) from None
    names = [level_name(value) for value in values]
    if len(set(names)) == len(names):
        return codes, names
    merged, levels = pd.factorize(pd.Index(names))  # 1 and "1" in one column of objects
    return np.where(codes < 0, -1, np.append(merged, -1)[codes]), list(levels)


def sort_levels(levels: list[str]) -> list[str]:
    """Numbers by value, then the rest by spelling."""

    def place(level: str) -> tuple[bool, float, str]:
        try:
            return False, float(level), level
        except ValueError:
            return True, 0.0, level

    return sorted(levels, key=place)
