"""Cells of text: which are numbers, which are missing, which are levels."""

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# Spellings that mean "missing" in a column of numbers. In a column of text "NA" is Namibia.
MARKERS = frozenset(["NA", "NaN", "nan", "NAN", "-nan", "NULL", "null", "None"])
MOSTLY = 0.9  # from this share of numbers on, a cell that is none is an error, not a level
_NUMBER = re.compile(
    r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)\s*", re.IGNORECASE
)
_COMMA_NUMBER = re.compile(r"\s*[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?,\d+(?:[eE][+-]?\d+)?\s*")


class BadCell(Exception):
    """A cell that is not a number in a column of numbers."""

    def __init__(self, row: int, value: str, comma: bool = False) -> None:
        super().__init__(row, value)
        self.row, self.value, self.comma = row, value, comma


class Settled(NamedTuple):
    """A column after its cells were read, and a note about it."""

    column: "pd.Series"
    note: str


def settle(column: "pd.Series", decimal: str = ".") -> Settled:
    """Numbers where the cells are numbers, else text; nothing becomes missing unsaid.

    A column whose cells are numbers or one of ``NA NaN nan NULL null None`` is numeric, and those
    are missing. A column with at least 90 % numbers and something else is a :class:`BadCell`.
    In any other column all spellings are levels.
    """
    import pandas as pd

    codes, levels = pd.factorize(column)
    texts = [str(level) for level in levels]
    numbers = np.array([parse_number(text, decimal) for text in texts] + [np.nan])
    marked = np.array([text.strip() in MARKERS for text in texts] + [True])
    numeric = np.array([not np.isnan(number) for number in numbers[:-1]] + [False])
    counts = np.bincount(codes[codes >= 0], minlength=len(texts) + 1)
    found, missing = int(counts[numeric].sum()), int(counts[marked].sum())
    other = int(counts.sum()) - found - missing
    if other == 0 and found:
        values = pd.Series(numbers[codes], index=column.index, name=column.name)
        said = f"{missing} cells {_spelled(texts, marked)} read as missing" if missing else ""
        return Settled(values, said)
    strange = ~(numeric | marked)
    if other and decimal == ".":
        _refuse_commas(codes, texts, counts, strange, found)
    if found >= MOSTLY * (found + other) and found:
        row = int(np.flatnonzero(strange[codes])[0])
        raise BadCell(row, texts[codes[row]])
    if found >= other and found:
        first = texts[codes[int(np.flatnonzero(strange[codes])[0])]]
        said = f"{found} cells are numbers but {first!r} is not: read as text"
        return Settled(column, f"{said}; to read it as missing: --missing {first}")
    said = _kept(texts, marked, missing) if missing else ""
    return Settled(column, said)


def parse_number(text: str, decimal: str = ".") -> float:
    """The number that a cell spells, nan if it spells none."""
    if decimal != ".":
        text = text.replace(decimal, ".")
    # A separator like \x1f is a blank for Python's patterns and for strip, but not for float.
    return float(text.strip()) if _NUMBER.fullmatch(text) else np.nan


def _refuse_commas(
    codes: np.ndarray, texts: list[str], counts: np.ndarray, strange: np.ndarray, found: int
) -> None:
    """A column of numbers and cells like '1,5' is numbers in the continental spelling."""
    comma = np.array([_COMMA_NUMBER.fullmatch(text) is not None for text in texts] + [False])
    total = found + counts[strange].sum()
    if comma.any() and found + counts[comma].sum() >= MOSTLY * total:
        row = int(np.flatnonzero(comma[codes])[0])
        raise BadCell(row, texts[codes[row]], comma=True)


def _kept(texts: list[str], marked: np.ndarray, count: int) -> str:
    first = next(text for text, mark in zip(texts, marked, strict=False) if mark)
    said = f"{count} cells {_spelled(texts, marked)} kept as a level"
    return f"{said}; to read it as missing: --missing {first}"


def _spelled(texts: list[str], marked: np.ndarray) -> str:
    return ", ".join(repr(text) for text, mark in zip(texts, marked[:-1], strict=True) if mark)
