"""A table inside an exported graph: one input per column, or all numbers at once."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Column, Preprocessor
from ansatz.data.categorical import MISSING, OTHER, CategoricalColumn, spelled
from ansatz.data.dates import PARTS, as_dates
from ansatz.data.numeric import CLIP, Bins, Numeric, as_numbers
from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Exporter, Input
from ansatz.structures.vector.rows import TableEncoder, TableRows

_TINY = 1e-300  # as data/numeric.py: a column of this scale is constant


class TableColumns(nn.Module):
    r"""The preprocessing of :class:`~ansatz.data.Preprocessor`, as operations on tensors.

    .. math:: z_j = \mathrm{clip}\left(\frac{x_j - c_j}{s_j}, -6, 6\right)

    with a missing number read as the mean and marked by a feature of its own where training rows
    lacked it; columns that were mapped to normal scores first; categories as indicators, or as
    codes that the network embeds. Numbers are standardised in double precision, whatever the
    network computes in: the difference of two large numbers needs the digits.

    Shapes:
        - columns: ``(N,)`` each, or one ``(N, D)``; codes as int64.
        - returns: ``(N, D)``, and ``(N, C)`` int64 where columns are embedded.
    """

    center: Tensor
    slope: Tensor
    blank: Tensor

    def __init__(self, preprocessor: Preprocessor, *, matrix: bool = False) -> None:
        super().__init__()
        numeric = preprocessor.numeric
        center, scale, fill = (
            torch.from_numpy(v).double() for v in (numeric.center, numeric.scale, numeric.fill)
        )
        slope = torch.where(scale > _TINY, 1 / scale.clamp(min=_TINY), 0.0)
        self.register_buffer("center", center)
        self.register_buffer("slope", slope)
        self.register_buffer("blank", (fill - center) * slope)
        self.masked, self.clip = numeric.masked, preprocessor.purpose == "network"
        self.curves = nn.ModuleDict({str(j): QuantileLayer(c) for j, c in numeric.curves.items()})
        self.bins = nn.ModuleDict({str(j): BinPositions(b) for j, b in numeric.bins.items()})
        self.slots, self.dtype = preprocessor.slots, preprocessor.dtype
        self.order = None if preprocessor.order is None else preprocessor.order.tolist()
        self.coded = nn.ModuleDict()
        for k, block in enumerate(preprocessor.coded):
            table = torch.eye(len(block.levels) + 1)[
                :, 1 + len(block.levels) - len(block.features) :
            ]
            self.coded[str(k)] = nn.Embedding.from_pretrained(table)
        self.coded_names = [block.name for block in preprocessor.coded]
        self.embedded_names = [block.name for block in preprocessor.embedded]
        # Of a frame of numbers only the estimator knows the names: places go by order.
        own = [column.name for column in preprocessor.columns if column.used]
        self.matrix = matrix
        self.place = {} if matrix else {name: k for k, name in enumerate(own)}

    def forward(self, *columns: Tensor) -> tuple[Tensor, ...]:
        rows = columns[0].shape[0]  # not len, which would make it a constant of the graph
        parts = [self._numbers(columns)] if self.slots else []
        for k, name in enumerate(self.coded_names):
            parts.append(self.coded[str(k)](columns[self.place[name]]).to(self.dtype))
        x = torch.cat(parts, 1) if parts else torch.zeros(rows, 0, dtype=self.dtype)
        if self.order is not None:
            x = x[:, self.order]
        if not self.embedded_names:
            return (x,)
        return x, torch.stack([columns[self.place[name]] for name in self.embedded_names], 1)

    def _numbers(self, columns: tuple[Tensor, ...]) -> Tensor:
        """The numbers, the flags of those missing and the bins, ``(N, P + M + T)``."""
        values = columns[0].double() if self.matrix else self._gather(columns)  # (N, P)
        bins = [cut(values[:, int(j)]).to(self.dtype) for j, cut in self.bins.items()]
        for j, curve in self.curves.items():
            bent = curve(values[:, int(j)]).unsqueeze(1)
            values = torch.cat([values[:, : int(j)], bent, values[:, int(j) + 1 :]], 1)
        missing = values.isnan()
        z = torch.where(missing, self.blank, (values - self.center) * self.slope)
        if self.clip:
            z = z.clamp(-CLIP, CLIP)
        found = [z.to(self.dtype)]
        if self.masked:
            found.append(missing[:, self.masked].to(self.dtype))
        return torch.cat([*found, *bins], 1)

    def _gather(self, columns: tuple[Tensor, ...]) -> Tensor:
        found, waves = [], {}
        for slot in self.slots:
            column = columns[self.place[slot.column]]
            if slot.part:
                if slot.column not in waves:
                    waves[slot.column] = date_waves(column)
                found.append(waves[slot.column][:, PARTS.index(slot.part)])
            elif slot.levels:  # a level that is not in the order counts as missing
                found.append(torch.where(column < 0, torch.nan, column.double()))
            else:
                found.append(column.double())
        return torch.stack(found, 1)


class BinPositions(nn.Module):
    """The positions of a number within the bins of its range, standardised.

    Shapes:
        - x: ``(N,)`` float64, nan where missing; returns ``(N, T)``.
    """

    edges: Tensor
    center: Tensor
    scale: Tensor

    def __init__(self, bins: Bins) -> None:
        super().__init__()
        for name in ("edges", "center", "scale"):
            self.register_buffer(name, torch.tensor(getattr(bins, name), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        column = x.unsqueeze(1)
        share = (column - self.edges[:-1]) / (self.edges[1:] - self.edges[:-1])
        z = (share.clamp(0, 1) - self.center) / self.scale
        return torch.where(column.isnan(), 0.0, z)


class QuantileLayer(nn.Module):
    """The map to normal scores, linear between its knots and constant beyond them.

    Shapes:
        - x: ``(N,)``, nan where missing; returns ``(N,)``.
    """

    values: Tensor
    levels: Tensor

    def __init__(self, curve) -> None:  # type: ignore[no-untyped-def]  # a QuantileMap
        super().__init__()
        values, levels = list(curve.values), list(curve.levels)
        if len(values) == 1:  # a second knot beyond, so that there is a bin
            values, levels = [values[0], values[0] + 1], levels * 2
        self.register_buffer("values", torch.tensor(values, dtype=torch.float64))
        self.register_buffer("levels", torch.tensor(levels, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        # Counting, as ONNX has no search in a sorted list.
        place = (x.unsqueeze(1) >= self.values[1:-1]).sum(1)  # the bin, 0..T - 2
        left, right = self.values[place], self.values[place + 1]
        low, high = self.levels[place], self.levels[place + 1]
        share = ((x - left) / (right - left)).clamp(0, 1)
        return low + share * (high - low)


NO_DATE = -(2**63)  # what NumPy makes of a date that is missing
_DAY = 86_400_000_000  # microseconds


def date_waves(time: Tensor) -> Tensor:
    """Computes :func:`ansatz.data.dates.date_parts` from microseconds since 1970, UTC.

    Args:
        time: ``(N,)`` int64; -2**63 where missing.

    Shapes:
        - returns: ``(N, 7)`` double: trend, then sine and cosine of year, week and day.
    """
    missing = time == NO_DATE
    time = torch.where(missing, 0, time)
    rest = torch.remainder(time, _DAY)
    day = _divide(time - rest, _DAY)
    in_day = rest.double() / _DAY
    days = day.double() + in_day
    in_week = torch.remainder(day, 7).double() + in_day
    phases = [(day_of_year(day).double() + in_day) / 365.25, in_week / 7.0, in_day]
    # A tensor: torch writes Python's own numbers to a graph in single precision.
    circle = torch.tensor(2 * math.pi, dtype=torch.float64)
    waves = [wave(circle * phase) for phase in phases for wave in (torch.sin, torch.cos)]
    return torch.where(missing.unsqueeze(1), torch.nan, torch.stack([days, *waves], 1))


def day_of_year(day: Tensor) -> Tensor:
    """Days since January 1st, from days since 1970-01-01, in the Gregorian calendar.

    Years are counted from March 1st, so that a leap day is the last of its year; 400 of them
    have 146,097 days.
    """
    day = day + 719_468  # days since March 1st of the year 0
    in_era = torch.remainder(day, 146_097)
    era = _divide(day - in_era, 146_097)
    shorter = _divide(in_era, 1460) - _divide(in_era, 36_524) + _divide(in_era, 146_096)
    year = _divide(in_era - shorter, 365)  # of the era, 0..399
    since_march = in_era - (365 * year + _divide(year, 4) - _divide(year, 100))
    year = year + 400 * era
    fourth, century = torch.remainder(year, 4) == 0, torch.remainder(year, 100) == 0
    leap = fourth & (~century | (torch.remainder(year, 400) == 0))
    from_january = since_march + 59 + torch.where(leap, 1, 0)
    return torch.where(since_march >= 306, since_march - 306, from_january)


def _divide(number: Tensor, by: int) -> Tensor:
    """The whole quotient of a number that is a multiple, or not negative.

    In doubles, which are exact up to 2^53: the division of whole numbers loses digits in a graph.
    """
    return torch.floor((number.double() + 0.5) / by).long()


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
    """Columns in, the inputs of a network out."""

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
                "predict_dist(None) gives it. There is nothing to export."
            )

    @property
    def preprocessing(self) -> str:  # type: ignore[override]
        """Describes the preprocessing of the numbers of a row."""
        if self.keeps_units(self.encoder):
            return "inside the graph: numbers in their units, missing ones as the mean"
        return (
            "inside the graph: numbers standardised and cut at 6 standard deviations, missing ones "
            "as the mean"
        )

    def keeps_units(self, encoder: TableEncoder) -> bool:  # type: ignore[override]
        """Tests whether the model is linear, whose columns are not standardised."""
        return encoder.preprocessor.purpose == "linear"

    def module(self, encoder: TableEncoder) -> TableColumns:  # type: ignore[override]
        return TableColumns(encoder.preprocessor, matrix=self.is_matrix)

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
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


def _input(column: Column, name: str, levels: CategoricalColumn | None) -> Input:
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
