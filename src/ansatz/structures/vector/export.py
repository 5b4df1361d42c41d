"""A table inside an exported graph: one input per column, or all numbers at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.data.categorical import MISSING, OTHER, Categorical, spelled
from ansatz.data.dates import as_dates
from ansatz.data.numeric import Numeric, as_numbers
from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Exporter, Input
from ansatz.structures.vector.graph_columns import TableColumns
from ansatz.structures.vector.rows import TableEncoder, TableRows

_EXAMPLE = 1009  # rows: no other axis is likely to have this length
_MADE_UP = 64  # rows
_TAKES = {
    "matrix": "numbers (N, {width}) in the order of the training array; nan where missing",
    "number": "numbers (N,); nan where missing",
    "category": "text (N,); empty where missing; any other text is the unknown level",
    "ordered": "text (N,), from low to high; empty where missing",
    "date": "microseconds since 1970-01-01 UTC (N,); -2**63 where missing",
}


class TableExporter(Exporter):
    """Columns in, the inputs of a network out.

    Args:
        encoder: of the fit.
        names: of the columns, where the rows of the fit had some.
    """

    def __init__(self, encoder: TableEncoder, names: Sequence[str] | None) -> None:
        self.encoder = encoder
        preprocessor = encoder.preprocessor
        if preprocessor.state()["named"]:
            names = [column.name for column in preprocessor.columns]
        self.is_matrix = names is None
        if names is None:
            takes = _TAKES["matrix"].format(width=len(preprocessor.slots))
            self.inputs = [Input("X", "X", "matrix", takes=takes)]
        else:
            levels = {c.name: c for c in (*preprocessor.coded, *preprocessor.embedded)}
            self.inputs = [
                _input(column, name, levels.get(column.name))
                for column, name in zip(preprocessor.columns, names, strict=True)
                if column.used
            ]
        if not preprocessor.feature_names and not preprocessor.embedded:
            raise UsageError(
                "the model has no features: its likelihood is the same for every row, and "
                "predict_dist(None) says it. There is nothing to export."
            )

    @property
    def preprocessing(self) -> str:  # type: ignore[override]
        """What happens to the numbers of a row, in words."""
        if self.keeps_units(self.encoder):
            return "inside the graph: numbers in their units, missing ones as the mean"
        return (
            "inside the graph: numbers standardised and cut at 6 standard deviations, missing ones "
            "as the mean"
        )

    def keeps_units(self, encoder: TableEncoder) -> bool:  # type: ignore[override]
        """Whether the model is linear, whose columns are not standardised."""
        return encoder.preprocessor.purpose == "linear"

    def module(self, encoder: TableEncoder) -> TableColumns:  # type: ignore[override]
        """The preprocessing as operations on columns."""
        return TableColumns(encoder.preprocessor, matrix=self.is_matrix)

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
        """Rows at the center of the columns, or of ones; codes are 0."""
        if self.is_matrix:
            center = torch.from_numpy(self.encoder.preprocessor.numeric.center).to(kind)
            return (center.expand(_EXAMPLE, -1).clone(),)
        of_numbers = [given.kind == "number" for given in self.inputs]
        return tuple(
            torch.ones(_EXAMPLE, dtype=kind) if each else torch.zeros(_EXAMPLE, dtype=torch.int64)
            for each in of_numbers
        )

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        """The columns of a frame, or an array where the model was fitted to one."""
        if self.is_matrix:
            return [np.asarray(given).astype(kind)]
        return [_cells(given[each.column], each.kind, kind) for each in self.inputs]

    def made_up(
        self, seed: int, kind: type[np.floating[Any]]
    ) -> tuple[TableRows, list[NDArray[Any]]]:
        """Numbers within 3 standard deviations, each level, a level never seen, missing cells."""
        import pandas as pd

        generator = np.random.default_rng(seed)
        preprocessor = self.encoder.preprocessor
        numeric, slots = preprocessor.numeric, preprocessor.slots
        if self.is_matrix:
            numbers = [_numbers(numeric, j, generator) for j in range(len(slots))]
            rows = np.stack(numbers, axis=1)
            return TableRows(rows), self.feed(rows, kind)
        used = [column.name for column in preprocessor.columns if column.used]
        columns: dict[str, Any] = {}
        for name, given in zip(used, self.inputs, strict=True):
            if given.kind == "number":
                (j,) = (j for j, slot in enumerate(slots) if slot.column == name)
                columns[given.column] = _numbers(numeric, j, generator)
            elif given.kind == "date":
                days = generator.uniform(-20_000, 30_000, _MADE_UP)
                times = (days * 86_400e6).astype(np.int64)
                columns[given.column] = pd.to_datetime(times, unit="us")
            else:
                columns[given.column] = _levels(given, generator)
        frame = pd.DataFrame(columns)
        return TableRows(frame), self.feed(frame, kind)


def _input(column: Column, name: str, levels: Categorical | None) -> Input:
    if column.role == "numeric":
        return Input(name, name, "number", takes=_TAKES["number"])
    if column.role == "date":
        return Input(name, name, "date", takes=_TAKES["date"])
    if column.role == "ordered":
        places = {level: k for k, level in enumerate(column.levels)}
        return Input(name, name, "ordered", places, -1, _TAKES["ordered"])
    assert levels is not None
    codes = {level: k + 1 for k, level in enumerate(levels.levels)}
    # Empty text is a missing cell, unless it is a level of its own.
    codes.setdefault("", codes.get(MISSING, 0))
    return Input(name, name, "category", codes, codes.get(OTHER, 0), _TAKES["category"])


def _cells(column: Any, kind: str, numbers: type[np.floating[Any]]) -> NDArray[Any]:
    """A column as a runtime takes it."""
    if kind == "number":
        with np.errstate(over="ignore"):  # beyond float32's range: cut at 6 sd all the same
            return as_numbers(column).astype(numbers)
    if kind == "date":
        times: NDArray[Any] = as_dates(column).to_numpy()
        return times.astype("datetime64[us]").astype(np.int64)
    codes, levels = spelled(column)
    text: NDArray[Any] = np.array([*levels, ""], dtype=object)[codes]
    return text


def _numbers(numeric: Numeric, j: int, generator: np.random.Generator) -> NDArray[np.float64]:
    center, scale = numeric.center[j], numeric.scale[j]
    if j in numeric.curves:
        low, high = numeric.curves[j].values[0], numeric.curves[j].values[-1]
        values = generator.uniform(low, high, _MADE_UP)
    elif center == 0 and scale == 1:  # a linear model keeps units and knows the mean alone
        values = numeric.fill[j] * generator.uniform(0.5, 1.5, _MADE_UP)
    else:
        values = center + scale * generator.uniform(-3, 3, _MADE_UP)
    # Numbers that single precision can hold: what is compared is the graph, not the rounding.
    values = values.astype(np.float32).astype(np.float64)
    values[generator.random(_MADE_UP) < 0.1] = np.nan
    return values


def _levels(given: Input, generator: np.random.Generator) -> NDArray[Any]:
    known = [level for level in given.codes if level and not level.startswith("(")]
    listed = np.array([*known, "a level never seen", None], dtype=object)
    found: NDArray[Any] = listed[generator.integers(0, len(listed), _MADE_UP)]
    return found
