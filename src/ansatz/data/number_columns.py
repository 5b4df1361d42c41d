"""The columns of a table that are numbers, or become numbers: ordered categories and dates."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ansatz.data.categorical import spelled
from ansatz.data.columns import Column
from ansatz.data.dates import PARTS, date_parts
from ansatz.data.numeric import as_numbers
from ansatz.data.spelling import Spelling

if TYPE_CHECKING:
    import pandas as pd


class Slot(NamedTuple):
    """One number per row: a numeric column, the place in an order, or a part of a date."""

    column: str
    part: str = ""
    levels: tuple[str, ...] = ()
    spelling: Spelling | None = None

    @property
    def feature(self) -> str:
        """The name of the feature."""
        return f"{self.column}[{self.part}]" if self.part else self.column


def number_columns(columns: list[Column], dates: dict[str, list[str]]) -> list[Slot]:
    """The slots of a table, in the order of its columns; ``dates`` says which parts are used."""
    slots: list[Slot] = []
    for column in columns:
        if column.role == "numeric":
            slots.append(Slot(column.name, spelling=column.spelling))
        elif column.role == "ordered":
            slots.append(Slot(column.name, levels=column.levels))
        elif column.role == "date":
            parts = dates[column.name]
            slots += [Slot(column.name, part, spelling=column.spelling) for part in parts]
    return slots


def numbers_of(frame: "pd.DataFrame", slots: list[Slot]) -> np.ndarray:
    """The numbers of a table, ``(N, P)``, nan where missing.

    A level that is not in the order counts as missing.
    """
    spelled_out = {s.column: s.spelling for s in slots if s.spelling is not None}
    if spelled_out:
        frame = frame.assign(**{n: rule.read(frame[n]) for n, rule in spelled_out.items()})
    names = [slot.column for slot in slots]
    if not any(slot.part or slot.levels for slot in slots):
        plain = frame[names]
        kinds = {getattr(dtype, "kind", "O") for dtype in plain.dtypes}
        if kinds <= set("fiub") and all(isinstance(d, np.dtype) for d in set(plain.dtypes)):
            return plain.to_numpy(dtype=float)  # all at once
    values = np.empty((len(frame), len(slots)))
    parts = {slot.column: date_parts(frame[slot.column]) for slot in slots if slot.part}
    for j, slot in enumerate(slots):
        if slot.part:
            values[:, j] = parts[slot.column][:, PARTS.index(slot.part)]
        elif slot.levels:
            values[:, j] = _places(frame[slot.column], slot.levels)
        else:
            values[:, j] = as_numbers(frame[slot.column])
    return values


def _places(column: "pd.Series", levels: tuple[str, ...]) -> np.ndarray:
    place = {level: float(k) for k, level in enumerate(levels)}
    codes, found = spelled(column)
    return np.array([place.get(level, np.nan) for level in found] + [np.nan])[codes]
