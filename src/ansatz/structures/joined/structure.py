"""Tables whose columns are of several kinds: texts, paths of images, numbers and categories."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch

from ansatz.data.frames import as_frame, is_frame
from ansatz.data.sequences.reading import read_texts
from ansatz.data.validation_table import PART, frame_of_pair
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.contracts.structure import TableParts
from ansatz.fitting.joined_structure import JoinedEncoder, JoinedRows, JoinedStructure
from ansatz.fitting.model import Model
from ansatz.fitting.problem import Problem
from ansatz.fitting.provenance import provenance_of
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.tensor_structure import Read
from ansatz.structures.joined.columns import Columns, find_columns
from ansatz.structures.registry import claims


class JoinedTable(JoinedStructure):
    """A table whose columns are read by the structure that each is for.

    A text, an image and the other columns each are a part of an example, with an encoder and a
    body of its own; the bodies are joined before the head (network ``joined``).
    """

    name: ClassVar[str] = "joined"
    unit: ClassVar[tuple[str, str]] = ("row", "rows")

    # Reading.

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Reads a table; the columns that are neither outcomes nor named are numbers or levels."""
        reader = dict(how.get("reader") or {})
        special = [name for name in how.get("drop") or () if name]
        found = self._read(data, column_roles, reader, special)
        made = super().problem(found, column_roles, **{**how, "drop": ()})
        return made._replace(structure=self.name)

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        return self._read(data, column_roles, reader, ())

    def _read(
        self,
        data: Any,
        column_roles: ColumnRoles,
        reader: Mapping[str, Any],
        drop: Sequence[str],
        encoder: "TableEncoder | None" = None,
    ) -> Read:
        how = {name: value for name, value in reader.items() if name not in claims}
        named = Columns.named(reader) if encoder is None else encoder.named
        how["validation_data"] = frame_of_pair(how.get("validation_data"), column_roles.target)
        origin, frame, notes = read_texts(data, named.texts, **how)
        for name in drop:
            if name not in frame.columns:
                raise UsageError(
                    f"{origin}: no column '{name}' to drop. {near_columns(name, frame)}"
                )
        frame = frame.drop(columns=list(drop))
        if encoder is None:
            features = column_roles.expand(frame).features(frame)
            features = features.drop(columns=PART, errors="ignore")
            named = find_columns(features, named, origin)
        folder = Path(data).parent if isinstance(data, str | PathLike) else Path()
        parts = self._parts(frame, named, origin, folder, encoder)
        used = [name for names in named.parts.values() for name in names]
        beside = frame.drop(columns=[name for name in used if name in frame.columns])
        part = PART if PART in beside.columns else None
        return Read(origin, parts, beside, None, tuple(notes), part)

    def _parts(
        self,
        frame: pd.DataFrame,
        columns: Columns,
        origin: str,
        folder: Path,
        encoder: "TableEncoder | None" = None,
    ) -> "MixedRows":
        """The rows of each part; images as those of the fit."""
        absent = [n for names in columns.parts.values() for n in names if n not in frame.columns]
        if absent:
            near = near_columns(absent[0], frame)
            raise DataError(f"{origin}: no column '{absent[0]}', which the model needs. {near}")
        found = {}
        for name, names in columns.parts.items():
            spec = None if encoder is None else encoder.parts[name].spec
            found[name] = self._part(name).of_columns(frame, names, (origin, folder), spec)
        return MixedRows(found, columns)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        """Reads the columns that the fit read."""
        found = self._like(model, data, options)
        return super().read_again(model, found, outcomes=outcomes, options={}, notify=notify)  # type: ignore[arg-type]  # as it was read

    def from_table(self, model: Model, table: Any, *, outcomes: bool) -> TableParts:
        """Parts, outcomes, weights and offsets, by the column roles of the fit."""
        found = table if isinstance(table, Read) else self._like(model, table, {})
        return super().from_table(model, found, outcomes=outcomes)

    def _like(self, model: Model, data: Any, options: Mapping[str, Any]) -> Read:
        asked = provenance_of(model)
        reader = {} if asked is None else asked.asked.reader()
        drop = {"stream", "memory_limit"}
        how = {k: v for k, v in {**reader, **options}.items() if k not in drop}
        if not isinstance(data, str | PathLike):
            how = {name: value for name, value in how.items() if name in claims}
        encoder: TableEncoder = model.encoder  # type: ignore[assignment]
        return self._read(data, model.column_roles or ColumnRoles(), how, (), encoder)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Any:
        """A frame with a column of texts among others."""
        if roles:
            name, role = next(iter(roles.items()))
            raise UsageError(f"a table with texts or images takes no {role}, got column '{name}'.")
        if isinstance(X, JoinedRows):
            return super().from_python(X, estimator=estimator, reset=reset)
        if not is_frame(X):
            raise UsageError("several kinds of columns come as a frame with named columns.")
        frame = as_frame(X).rename(columns=str)
        encoder = None if reset else estimator.model_.encoder
        named = find_columns(frame, Columns({}), "X") if encoder is None else encoder.named
        rows = self._parts(frame, named, "X", Path(), encoder)
        return super().from_python(rows, estimator=estimator, reset=reset)

    # Encoder.

    def encoder(self, rows: Any, weight: Any, recipe: Any, options: Mapping[str, Any]) -> Any:
        """An encoder for each part, with the columns that it reads."""
        made = super().encoder(rows, weight, recipe, options)
        return TableEncoder(made.parts, rows.named)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        made = super().load_encoder(state)
        columns = {name: list(state["columns"][name]) for name in made.parts}
        return TableEncoder(made.parts, Columns(columns))


class MixedRows(JoinedRows):
    """Rows of several parts, with the names of their columns."""

    def __init__(self, parts: Mapping[str, Any], named: Columns) -> None:
        super().__init__(parts)
        self.named = named

    def __getitem__(self, index: Any) -> "MixedRows":
        return MixedRows({name: rows[index] for name, rows in self.parts.items()}, self.named)


class TableEncoder(JoinedEncoder):
    """An encoder for each part, and the names of its columns."""

    def __init__(self, parts: Mapping[str, Any], named: Columns) -> None:
        super().__init__(parts)
        self.named = named

    @property
    def dtype(self) -> torch.dtype:
        """The type that all parts predict in."""
        kinds: list[torch.dtype] = [each.dtype for each in self.parts.values()]
        return min(kinds, key=lambda kind: kind.itemsize)

    @property
    def columns(self) -> list[Any]:
        """None: effects are of tables alone."""
        return []

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {**super().state(), "columns": self.named.parts}
