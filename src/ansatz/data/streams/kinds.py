"""The kind of each column of a stream: decided by its first values, checked against later ones."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from ansatz.data.cells import MARKERS, parse_number
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["empty", "marked", "int", "float", "bool", "date", "text", "object"]
_NUMBERS = ("int", "float")


class Kinds:
    """The kind of every column so far.

    ``empty`` has had no value, ``marked`` only spellings of "missing", which are levels if words
    follow and missing if numbers do. Whole numbers become floating where one is missing.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.of: dict[str, Kind] = {}

    @property
    def text(self) -> list[str]:
        """Columns whose cells are words."""
        return [name for name, kind in self.of.items() if kind == "text"]

    def observe(self, frame: "pd.DataFrame", *, strict: Collection[str] | None = None) -> None:
        """Takes note of some more rows; an error where a column turns from numbers to words."""
        for name in frame.columns:
            seen = _kind(frame[name])
            before = self.of.get(name)
            if before in _NUMBERS and seen in ("text", "bool", "date", "object"):
                if strict is not None and name not in strict:
                    self.of[name] = "text"
                    continue
                self._refuse(frame[name])
            self.of[name] = seen if before is None else _merge(before, seen)

    def settle(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Rows that were read before all was known, as the kinds say now."""
        changed = {}
        for name in frame.columns:
            kind, column = self.of.get(name), frame[name]
            if kind == "float" and column.dtype.kind != "f":
                if column.dtype.kind in "iu":
                    changed[name] = column.astype(np.float64)
                else:  # nothing but spellings of "missing"
                    changed[name] = np.full(len(frame), np.nan)
            elif kind == "int" and column.dtype.kind == "u":
                changed[name] = column.astype(np.int64)
            elif kind in ("text", "object", "marked") and column.dtype.kind in "fb":
                changed[name] = column.astype(object)  # an empty block, or booleans without gaps
        return frame.assign(**changed) if changed else frame

    def _refuse(self, column: "pd.Series") -> NoReturn:
        """Names the first cell that is not a number."""
        for row, value in zip(column.index, column, strict=True):
            text = str(value)
            if value is None or value != value or text.strip() in MARKERS:
                continue
            if not isinstance(value, str) or np.isnan(parse_number(text)):
                shown = text if len(text) <= 40 else text[:37] + "..."
                raise DataError(
                    f"{self.origin}, row {row + 1}, column '{column.name}': expected a number as "
                    f"in the rows before, got '{shown}'. To read it as missing: --missing {shown}; "
                    f"to read all as words: --role {column.name}=categorical"
                )
        raise DataError(
            f"{self.origin}, column '{column.name}': numbers up to row {column.index[0]}, "
            f"{column.dtype} from there on. Store it as one kind."
        )


def _kind(column: "pd.Series") -> Kind:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "text"
    kinds: dict[str, Kind] = {"i": "int", "u": "int", "b": "bool", "M": "date"}
    if dtype.kind in kinds:
        big = dtype.kind == "u" and len(column) and column.max() >= 2**63
        return "float" if big else kinds[dtype.kind]
    if dtype.kind == "f":
        return "float" if column.notna().any() else "empty"
    known = column.dropna()
    if not len(known):
        return "empty"
    if not isinstance(known.iloc[0], str):
        return "object"
    if known.iloc[0].strip() in MARKERS and known.str.strip().isin(MARKERS).all():
        return "marked"
    return "text"


def _merge(before: Kind, seen: Kind) -> Kind:
    if before == seen or seen == "empty":
        return "float" if before == "int" and seen == "empty" else before
    if before == "empty":
        # Whole numbers after a gap are floating, as in a file that is read at once.
        return "float" if seen == "int" else seen
    if {before, seen} <= {"int", "float", "marked"}:
        return "float"
    if {before, seen} <= {"text", "marked"}:
        return "text"
    return "object"
