"""From sets to a network's inputs: the columns of elements, and those of the sets themselves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from ansatz.data import Column, Preprocessor, infer_columns
from ansatz.data.columns import plain_columns
from ansatz.data.sets.batch import ElementBatch, SetBatch
from ansatz.data.sets.sets import Elements, Sets
from ansatz.errors import DataError, UsageError
from ansatz.spec import InputSpec

Rows = Sets | Elements


class SetEncoder:
    """Columns of elements and of sets, standardised and coded as those of any table.

    Args:
        elements: of the elements.
        beside: of the sets; None where they have no columns.
        kinds: the names of the kinds of elements; empty for one kind.
        part: the column that names the kind.
        rows: ``"sets"`` or ``"elements"``.
    """

    dtype = torch.float64

    def __init__(
        self,
        elements: Preprocessor,
        beside: Preprocessor | None,
        kinds: list[str],
        part: str | None,
        rows: str,
    ) -> None:
        self.elements, self.beside = elements, beside
        self.kinds, self.part, self.rows = kinds, part, rows

    @classmethod
    def fit(
        cls, rows: Rows, weight: NDArray[np.float64], options: Mapping[str, Any]
    ) -> "SetEncoder":
        """Fits both maps to the training rows; columns constant within sets belong to the set."""
        part = options.get("part")
        if isinstance(rows, Elements):
            sets, _ = rows.packed()
            mass = np.ones(len(sets))
        else:
            sets, mass = rows, weight
        each = np.repeat(mass, sets.lengths)
        if not len(each):
            raise DataError(f"all {sets.unit}s are empty: there is nothing to train on.")
        if not sets.is_table:
            if part is not None:
                raise UsageError("part names a column of a table; these sets are arrays.")
            elements = Preprocessor.fit(sets.values, weight=each, dtype=torch.float64)
            beside = None if sets.beside is None else _fitted(sets.beside, mass)
            return cls(elements, beside, [], None, _kind(rows))
        kinds: list[str] = []
        frame = sets.values
        if part is not None:
            if part not in frame.columns:
                raise UsageError(f"no column '{part}' to name the parts of sets (--part).")
            kinds = sorted(frame[part].dropna().astype(str).unique())
            frame = frame.drop(columns=part)
        whole = constant_columns(sets, list(frame.columns))
        inside = frame.drop(columns=whole)
        if not inside.shape[1]:
            raise UsageError(
                f"no column varies within a {sets.unit}: elements are all alike. For one row per "
                "example leave out --x."
            )
        beside = _fitted(first_rows(sets, whole), mass) if whole else None
        return cls(_fitted(inside, each), beside, kinds, part, _kind(rows))

    @property
    def spec(self) -> InputSpec:
        """The numbers and codes of an element, and the numbers of a set."""
        elements = self.elements.spec
        beside = 0 if self.beside is None else len(self.beside.feature_names)
        return InputSpec.set(
            elements.features,
            cardinalities=elements.cardinalities,
            beside=beside,
            kinds=len(self.kinds),
            rows="elements" if self.rows == "elements" else "sets",
        )

    @property
    def notes(self) -> list[str]:
        """Columns that are left out, filled, coded, or of the sets."""
        if self.beside is None:
            return self.elements.notes
        named = ", ".join(f"'{c.name}'" for c in self.beside.columns if c.used)
        own = [f"constant within sets, so of the sets: {named}."] if named else []
        return [*own, *self.beside.notes, *self.elements.notes]

    @property
    def columns(self) -> list[Column]:
        """None: columns of elements have no effects."""
        return []

    @property
    def names(self) -> list[str]:
        """The names of the numbers of an element."""
        return self.elements.feature_names

    def inputs(self, rows: Rows, *, notes: list[str] | None = None) -> SetBatch | ElementBatch:
        """Values, offsets, codes and numbers of the sets; for elements, which are asked for."""
        notes = [] if notes is None else notes
        if isinstance(rows, Elements):
            sets, chosen = rows.packed()
            found = self._of_sets(sets, notes)
            return ElementBatch(*found, torch.tensor(chosen))
        return self._of_sets(rows, notes)

    def _of_sets(self, sets: Sets, notes: list[str]) -> SetBatch:
        values = sets.values
        if sets.is_table:
            values = plain_columns(values, self.elements.columns)
        if not len(sets.values):
            values, codes = torch.zeros(0, self.elements.spec.features).double(), None
        else:
            found = self.elements.transform(values, clip=True, notes=notes)
            values, codes = found[0].double(), found[1] if len(found) > 1 else None
        parts = [] if codes is None else [codes]
        if self.part is not None:
            parts.append(torch.tensor(self._kinds(sets)).unsqueeze(1))
        width = len(self.elements.spec.cardinalities) + (self.part is not None)
        codes = torch.cat(parts, 1) if parts else torch.zeros(len(values), width).long()
        beside = torch.zeros(len(sets), 0).double()
        if self.beside is not None:
            beside = self._beside(sets, notes)
        return SetBatch(values, torch.tensor(sets.offsets), codes, beside)

    def _beside(self, sets: Sets, notes: list[str]) -> torch.Tensor:
        assert self.beside is not None
        names = [column.name for column in self.beside.columns if column.used]
        frame = sets.beside
        if sets.is_table:
            gone = [name for name in names if name not in sets.values.columns]
            if gone:
                raise DataError(f"no column '{gone[0]}', which the model was fitted with.")
            for name in names:
                bad = np.flatnonzero(varying(sets, name))
                if len(bad):
                    raise DataError(f"{sets.place(int(bad[0]))}: '{name}' varies within the set.")
            frame = first_rows(sets, names)
        if frame is None:
            raise DataError(f"these {sets.unit}s lack their own columns: {', '.join(names)}.")
        frame = plain_columns(frame, self.beside.columns)
        return self.beside.transform(frame, clip=True, notes=notes)[0].double()

    def _kinds(self, sets: Sets) -> NDArray[np.int64]:
        if self.part not in sets.values.columns:
            raise DataError(f"no column '{self.part}', which names the parts of sets.")
        place = {name: code for code, name in enumerate(self.kinds, 1)}
        found = sets.values[self.part].astype(str).map(place)
        if found.isna().any():
            row = int(np.flatnonzero(found.isna())[0])
            raise DataError(
                f"{sets.place(row)}: part '{sets.values[self.part].iloc[row]}' is none of "
                f"{', '.join(self.kinds[:10])}."
            )
        codes: NDArray[np.int64] = found.to_numpy(dtype=np.int64)
        return codes

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "elements": self.elements.state(),
            "beside": None if self.beside is None else self.beside.state(),
            "kinds": self.kinds,
            "part": self.part,
            "rows": self.rows,
        }


def load_encoder(state: Mapping[str, Any]) -> SetEncoder:
    """The encoder of a saved model."""
    beside = state["beside"]
    return SetEncoder(
        Preprocessor.from_state(state["elements"]),
        None if beside is None else Preprocessor.from_state(beside),
        list(state["kinds"]),
        state["part"],
        str(state["rows"]),
    )


def constant_columns(sets: Sets, names: list[str]) -> list[str]:
    """The columns of a table of elements that are constant within each set, but not overall."""
    if not (sets.lengths > 1).any():
        return []
    return [
        name
        for name in names
        if not varying(sets, name).any() and sets.values[name].nunique(dropna=False) > 1
    ]


def varying(sets: Sets, name: str) -> NDArray[np.bool_]:
    """Marks elements whose value is not that of the first element of their set."""
    codes, _ = pd.factorize(sets.values[name])
    first = np.minimum(sets.offsets[:-1], max(0, len(codes) - 1))
    found: NDArray[np.bool_] = codes != np.repeat(codes[first], sets.lengths)
    return found


def first_rows(sets: Sets, names: list[str]) -> Any:
    """Columns of the sets, from the first element of each."""
    if (sets.lengths == 0).any():
        raise DataError(f"an empty {sets.unit} of a table has no columns of its own.")
    return sets.values[names].iloc[sets.offsets[:-1]].reset_index(drop=True)


def _fitted(frame: Any, weight: NDArray[np.float64]) -> Preprocessor:
    columns = infer_columns(frame)
    plain = plain_columns(frame, columns)
    return Preprocessor.fit(plain, columns, weight=weight, dtype=torch.float64)


def _kind(rows: Rows) -> str:
    return "elements" if isinstance(rows, Elements) else "sets"
