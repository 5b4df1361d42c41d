"""The preprocessing of a table as a graph: columns in, a network's inputs out."""

import math

import torch
from torch import Tensor, nn

from ansatz.data import Preprocessor
from ansatz.data.dates import PARTS
from ansatz.data.numeric import CLIP, Bins

_TINY = 1e-300  # as data/numeric.py: a column of this spread is constant


class TableColumns(nn.Module):
    r"""What :class:`~ansatz.data.Preprocessor` does to rows, as operations on tensors.

    .. math:: z_j = \mathrm{clip}\left(\frac{x_j - c_j}{s_j}, -6, 6\right)

    with a missing number read as the mean and marked by a feature of its own where training rows
    lacked it; columns that were mapped to normal scores first; categories as indicators, or as
    codes that the network embeds. Numbers are standardised in double precision, whatever the
    network computes in: the difference of two large numbers needs the digits.

    Args:
        preprocessor: the fitted one.
        matrix: takes all numbers at once, as an array has them; else column by column.

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
        self.curves = nn.ModuleDict({str(j): Bend(c) for j, c in numeric.curves.items()})
        self.bins = nn.ModuleDict({str(j): Cut(b) for j, b in numeric.bins.items()})
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
        """The numbers, the marks of those missing and the bins, ``(N, P + M + T)``."""
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


class Cut(nn.Module):
    """The positions of a number within the bins of its range, standardised.

    Args:
        bins: edges, centers and scales.

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


class Bend(nn.Module):
    """The map to normal scores, linear between its knots and constant beyond them.

    Args:
        curve: values and their scores.

    Shapes:
        - x: ``(N,)``, nan where missing; returns ``(N,)``.
    """

    values: Tensor
    levels: Tensor

    def __init__(self, curve) -> None:  # type: ignore[no-untyped-def]  # a Curve
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
    """What :func:`ansatz.data.dates.date_parts` computes, from microseconds since 1970, UTC.

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

    Args:
        day: int64.
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
