"""Categorical columns: their levels, and their features."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

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


Coding = Literal["indicator", "treatment", "embedding"]


class CategoricalColumn(BaseModel):
    """One categorical column: its levels in training, and how they are coded.

    Code 0 is the unknown level: a value never seen in training, or a missing one where training
    had none. Level k of ``levels`` has code k + 1.

    - ``indicator``: one feature per level, 1 where the row has it; all 0 for the unknown level.
    - ``treatment``: the same without the first level, the reference, as in R; the unknown level
      is then read as the reference, and said.
    - ``embedding``: the code itself, for a network that learns a vector per level.

    Args:
        name: the column.
        levels: in order; ``(missing)`` is one where training rows lacked a value, ``(other)``
            stands for rare levels where there were too many.
        coding: as above.
        text: whether the cells were text, so that a file must be read in the same way.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    levels: list[str]
    coding: Coding
    text: bool = True

    @model_validator(mode="after")
    def _distinct(self) -> "CategoricalColumn":
        if len(set(self.levels)) < len(self.levels) or not self.levels:
            raise ValueError(f"levels of column '{self.name}' must be distinct, and at least one")
        return self

    @classmethod
    def fit(
        cls,
        column: "pd.Series",
        weight: np.ndarray,
        coding: Coding,
        *,
        order: tuple[str, ...] = (),
        max_levels: int | None = None,
    ) -> "CategoricalColumn":
        """Learns the levels of the rows that count, in ``order`` if it names them all."""
        import pandas as pd

        codes, found = spelled(column)
        mass = np.bincount(codes[codes >= 0], weights=weight[codes >= 0], minlength=len(found))
        present = [level for level, m in zip(found, mass, strict=True) if m > 0]
        levels = _ordered(column, present, order)
        if max_levels is not None and len(levels) > max_levels:
            by_mass = dict(zip(found, mass, strict=True))
            common = sorted(levels, key=lambda level: -by_mass[level])[: max_levels - 1]
            levels = [level for level in levels if level in set(common)] + [OTHER]
        if (weight[codes < 0] > 0).any() and MISSING not in levels:
            levels.append(MISSING)
        text = not pd.api.types.is_numeric_dtype(column.dtype)
        return cls(name=str(column.name), levels=levels or [MISSING], coding=coding, text=text)

    @property
    def features(self) -> list[str]:
        """The names of the features; none for an embedding."""
        first = {"indicator": 0, "treatment": 1, "embedding": len(self.levels)}[self.coding]
        return [f"{self.name}[{level}]" for level in self.levels[first:]]

    def codes(self, column: "pd.Series", notes: list[str] | None = None) -> np.ndarray:
        """The code of each row, ``(N,)``; levels never seen in training are listed in ``notes``."""
        place = {level: k + 1 for k, level in enumerate(self.levels)}
        unknown = place.get(OTHER, 0)
        codes, found = spelled(column)
        table = np.array([place.get(level, unknown) for level in found] + [place.get(MISSING, 0)])
        result = table[codes]
        if notes is not None:
            self._report(codes, found, place, notes)
        return result

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Codes ``(N,)`` as features ``(N, number of features)``."""
        first = len(self.levels) - len(self.features)
        coding = np.eye(len(self.levels) + 1)[:, 1 + first :]  # (codes, features)
        return coding[codes]

    def _report(
        self, codes: np.ndarray, found: list[str], place: dict[str, int], notes: list[str]
    ) -> None:
        as_what = "the reference level" if self.coding == "treatment" else "the unknown level"
        if OTHER in place:
            as_what = OTHER
        new = np.array([level not in place for level in found] + [False])
        rows = int(new[codes].sum())
        if rows and OTHER not in place:
            first = found[codes[int(new[codes].argmax())]]
            notes.append(
                f"column '{self.name}': {rows} rows have a level never seen in training "
                f"('{first[:40]}'), read as {as_what}."
            )
        missing = int((codes < 0).sum())
        if missing and MISSING not in place:
            notes.append(
                f"column '{self.name}': {missing} rows are missing and none was in training, "
                f"read as {'the reference level' if self.coding == 'treatment' else 'unknown'}."
            )


def _ordered(column: "pd.Series", present: list[str], order: tuple[str, ...]) -> list[str]:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        order = tuple(str(level) for level in column.cat.categories)
    known = set(present)
    if order and known <= set(order):
        return [level for level in order if level in known]
    return sort_levels(present)
