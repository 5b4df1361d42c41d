"""Numeric columns as features: standardised, bent to a normal shape, binned."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansatz.data.cells import MARKERS, parse_number
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_KNOTS = 1000


class QuantileMap(BaseModel):
    r"""The monotone map from values to normal scores, fitted to weighted rows.

    .. math:: z(v) = \Phi^{-1}\left(\frac{W_{<v} + W_{\le v}}{2 W}\right)

    W sums the weights, so that a row of weight 3 counts like three rows; ties share a score.
    Between the learned values z is linear, beyond them constant. Of more than 1,000 values some
    1,000 are kept: half spaced evenly in probability, half in z, which keeps the tails.

    Args:
        values: increasing.
        levels: their scores z.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    values: list[float]
    levels: list[float]

    @classmethod
    def fit(cls, column: np.ndarray, weight: np.ndarray) -> "QuantileMap":
        """Fits a column ``(N,)``, nan left out, with weights ``(N,)``, all positive."""
        from scipy.special import ndtr, ndtri

        known = ~np.isnan(column)
        values, place = np.unique(column[known], return_inverse=True)
        mass = np.bincount(place, weights=weight[known], minlength=len(values))
        if len(values) == 0:
            return cls(values=[0.0], levels=[0.0])
        upper = np.cumsum(mass)
        middle = (upper - mass / 2) / upper[-1]
        if len(values) > _KNOTS:
            low, high = ndtri(middle[[0, -1]])
            wanted = [
                np.linspace(middle[0], middle[-1], _KNOTS // 2),
                ndtr(np.linspace(low, high, _KNOTS // 2)),
            ]
            keep = np.searchsorted(middle, np.concatenate(wanted) - 1e-12)
            keep = np.unique(np.minimum(keep, len(values) - 1))
            values, middle = values[keep], middle[keep]
        return cls(values=values.tolist(), levels=ndtri(middle).tolist())

    def scores(self, column: np.ndarray) -> np.ndarray:
        """z of each value, nan where missing."""
        bent = np.interp(column, self.values, self.levels)
        return np.where(np.isnan(column), np.nan, bent)


_LEAST = 0.1  # least standard deviation: a bin that few rows reach is not blown up


class Bins(BaseModel):
    r"""The position of a number within each bin of its range.

    .. math:: e_t(x) = \mathrm{clamp}\Big(\frac{x - b_{t-1}}{b_t - b_{t-1}}, 0, 1\Big), \qquad
        z_t = \frac{e_t - c_t}{\max(s_t, 0.1)}, \qquad t = 1..T

    A linear map of these features is any function that is linear between the edges b, as a spline
    of degree 1 or a soft decision tree is. The edges are values that occur, evenly spaced among the
    different ones: where few rows have many values (incomes above zero), the edges still are.
    A missing number counts as the mean, z = 0.

    Args:
        edges: b, increasing, T + 1 of them.
        center: c, the weighted means of e.
        scale: the larger of 0.1 and s, their weighted standard deviations.

    References:
        Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in tabular deep
        learning, eq. 1. https://arxiv.org/abs/2203.05556
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    edges: list[float]
    center: list[float]
    scale: list[float]

    @classmethod
    def fit(cls, column: np.ndarray, weight: np.ndarray, count: int) -> "Bins | None":
        """Learns at most ``count`` bins from a column ``(N,)``; None if it has but two values."""
        known = ~np.isnan(column)
        values = np.unique(column[known].astype(float))
        if len(values) < 3:
            return None
        places = np.linspace(0, len(values) - 1, min(count, len(values) - 1) + 1)
        edges = values[np.unique(places.round().astype(int))]
        if not np.isfinite(np.diff(edges)).all():  # a range beyond the largest number
            return None
        found = cls(edges=edges.tolist(), center=[0.0] * (len(edges) - 1), scale=[])
        e, share = found.positions(column[known]), weight[known] / weight[known].sum()
        center = share @ e
        scale = np.sqrt(share @ (e - center) ** 2)
        return cls(
            edges=edges.tolist(), center=center.tolist(), scale=np.maximum(scale, _LEAST).tolist()
        )

    def __len__(self) -> int:
        return len(self.edges) - 1

    def positions(self, column: np.ndarray) -> np.ndarray:
        """e of each number, ``(N, T)``; nan where it is missing."""
        edges = np.array(self.edges)
        return np.clip((column[:, None] - edges[:-1]) / np.diff(edges), 0, 1)

    def encode(self, column: np.ndarray) -> np.ndarray:
        """z of each number, ``(N, T)``."""
        z = (self.positions(column) - np.array(self.center)) / np.array(self.scale)
        return np.nan_to_num(z, copy=False, nan=0.0)


CLIP = 6.0  # standard deviations; beyond it a network extrapolates without having seen anything
_TINY = 1e-300  # its inverse is still a number
_BLOCK_BYTES = 2**18  # a block of rows that stays in the cache


class NumericState(BaseModel):
    """The state of a fitted :class:`Numeric`, as JSON."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    center: list[float]
    scale: list[float]
    fill: list[float]
    masked: list[int]
    curves: dict[int, QuantileMap]
    bins: dict[int, Bins] = {}

    def check(self, count: int) -> None:
        """Rejects a state that is not of ``count`` columns."""
        if not len(self.center) == len(self.scale) == len(self.fill) == count:
            raise ValueError(f"numeric: {len(self.center)} scales for {count} columns")
        for bins in self.bins.values():
            if (
                not len(bins) == len(bins.center) == len(bins.scale)
                or min(np.diff(bins.edges)) <= 0
            ):
                raise ValueError("numeric: bins need rising edges, a center and a scale for each")
        for curve in self.curves.values():
            if not 0 < len(curve.values) == len(curve.levels):
                raise ValueError("numeric: a curve needs as many values as levels")
        places = [*self.masked, *self.curves, *self.bins]
        if not all(0 <= place < count for place in places):
            raise ValueError(f"numeric: its columns are 0..{count - 1}, got {places}")
        if len(set(self.masked)) < len(self.masked) or min(self.scale, default=0.0) < 0:
            raise ValueError("numeric: a column is marked twice, or its scale is negative")


@dataclass(frozen=True)
class Numeric:
    r"""The map from P columns of numbers to P + M features, and T more for their bins.

    .. math:: z_j = \frac{x_j - c_j}{s_j}, \qquad z_j = 0 \text{ where } s_j = 0

    with c and s the weighted mean and standard deviation of the training rows (or 0 and 1, when
    units are kept). A missing number counts as the mean. Each of the M columns that had missing
    values in training also gets a feature that is 1 where the value is missing.

    Args:
        center: c, ``(P,)``.
        scale: s, ``(P,)``; 0 for a column that was constant: it carries no information.
        fill: what stands for a missing number, ``(P,)``.
        masked: the M columns with a feature for being missing.
        curves: columns that are first mapped to normal scores.
        bins: columns that are also given by the bins of their range.
    """

    center: np.ndarray
    scale: np.ndarray
    fill: np.ndarray
    masked: list[int] = field(default_factory=list)
    curves: dict[int, QuantileMap] = field(default_factory=dict)
    bins: dict[int, Bins] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        values: np.ndarray,
        weight: np.ndarray,
        names: list[str],
        *,
        standardize: bool = True,
        bend: tuple[int, ...] = (),
        cut: tuple[int, ...] = (),
        num_bins: int = 0,
    ) -> "Numeric":
        """Fits values ``(N, P)`` with weights ``(N,)``.

        Columns in ``bend`` get a curve, those in ``cut`` up to ``num_bins`` bins.
        """
        seen = values if weight.all() else values[weight > 0]
        weight = weight[weight > 0]
        refuse_infinite(seen, names)
        curves = {j: QuantileMap.fit(seen[:, j], weight) for j in bend}
        found = {j: Bins.fit(seen[:, j], weight, num_bins) for j in cut if num_bins}
        bins = {j: each for j, each in found.items() if each is not None}
        seen = _bent(seen, curves)
        mean, deviation, missing = weighted_moments(seen, weight)
        masked = [int(j) for j in np.flatnonzero(missing)]
        if standardize:
            # Missing in every row is no feature, but a second intercept until a number comes.
            masked = [j for j in masked if missing[j] < len(seen)]
            return cls(mean, deviation, mean, masked, curves, bins)
        return cls(np.zeros_like(mean), np.ones_like(mean), mean, masked, curves, bins)

    def encode(
        self, values: np.ndarray, names: list[str], *, clip: bool = False, dtype: Any = np.float64
    ) -> np.ndarray:
        """Values ``(N, P)``, nan where missing, as features ``(N, P + M + T)``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._encode(values, names, clip, dtype)

    def _encode(self, values: np.ndarray, names: list[str], clip: bool, dtype: Any) -> np.ndarray:
        rows, columns = values.shape
        bent = _bent(values, self.curves)
        slope = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > _TINY)
        blank = (self.fill - self.center) * slope
        marked = columns + len(self.masked)
        out = np.empty((rows, marked + sum(map(len, self.bins.values()))), dtype=dtype)
        out[:, columns:marked] = 0
        buffer = np.empty((_block_rows(columns), columns))
        for block in _blocks(bent):
            # An overflow of the difference of two huge numbers is cut with the rest.
            z = np.subtract(bent[block], self.center, out=buffer[: len(bent[block])])
            missing = None if np.isfinite(z.sum()) else np.isnan(bent[block])
            z *= slope
            if missing is not None:
                refuse_infinite(values, names)
                np.copyto(z, blank, where=missing)
                out[block, columns:marked] = missing[:, self.masked]
            if clip:
                np.clip(z, -CLIP, CLIP, out=z)
            out[block, :columns] = z
            first = marked
            for j, each in self.bins.items():
                out[block, first : first + len(each)] = each.encode(values[block, j])
                first += len(each)
        return out

    def state(self) -> NumericState:
        """The state that a saved model keeps."""
        return NumericState(
            center=self.center.tolist(),
            scale=self.scale.tolist(),
            fill=self.fill.tolist(),
            masked=self.masked,
            curves=self.curves,
            bins=self.bins,
        )

    @classmethod
    def from_state(cls, state: NumericState) -> "Numeric":
        """The map that gave the state."""
        center, scale, fill = (np.array(v) for v in (state.center, state.scale, state.fill))
        return cls(center, scale, fill, state.masked, state.curves, state.bins)


def weighted_moments(
    values: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Mean, standard deviation and number of missing values of each column, nan left out.

    .. math:: m = \frac{\sum w_i x_i}{\sum w_i}, \qquad
        s = \sqrt{\frac{\sum w_i (x_i - m)^2}{\sum w_i}}

    so that a row of weight 3 counts like three rows. Sums are of differences to the mean of the
    first rows: squares of the numbers themselves would lose all digits where the mean is large. A
    deviation that is rounding error of the mean is 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation, missing = _moments(values, weight)
    large = ~np.isfinite(deviation)
    if large.any():  # squares beyond 1e308: the same in units of the largest number
        unit = np.nanmax(np.abs(values[:, large]), axis=0)
        small = _moments(values[:, large] / unit, weight)
        mean[large], deviation[large] = small[0] * unit, small[1] * unit
    return mean, deviation, missing


def _moments(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = values.shape[1]
    count, total, square = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    missing = np.zeros(columns, dtype=np.int64)
    origin = None
    for rows in _blocks(values):
        block, known = _filled(values[rows])
        if origin is None:
            origin = _origin(values, block, known)
        away = np.subtract(block, origin, dtype=np.float64)
        if known is not None:
            away *= known
            missing += len(block) - known.sum(0)
        count += weight[rows].sum() if known is None else weight[rows] @ known
        total += weight[rows] @ away
        square += weight[rows] @ np.square(away, out=away)
    if origin is None:
        return total, square, missing
    shift, second = (
        np.divide(part, count, out=np.zeros(columns), where=count > 0) for part in (total, square)
    )
    mean = np.where(count > 0, origin + shift, 0.0)
    variance = np.maximum(second - shift**2, 0.0)
    # The rounding of m alone leaves (eps m)^2 per row (scikit-learn's bound for constant columns).
    noise = (10 * np.finfo(float).eps * np.abs(mean)) ** 2
    noise = np.maximum(noise, 4 * np.finfo(float).eps * shift**2)  # and of the difference
    return mean, np.where(variance <= noise, 0.0, np.sqrt(variance)), missing


def _origin(values: np.ndarray, block: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """The mean of the first rows of each column; its first number where they have none."""
    if known is None:
        return np.asarray(block.sum(0, dtype=np.float64) / len(block))
    there = known.sum(0)
    origin = block.sum(0, dtype=np.float64) / np.maximum(there, 1)
    for j in np.flatnonzero(there == 0):
        numbers = values[~np.isnan(values[:, j]), j]
        origin[j] = numbers[0] if len(numbers) else 0.0
    return np.asarray(origin)


def as_numbers(column: "pd.Series") -> np.ndarray:
    """Converts a column to float64, nan where missing; other text is an error with its row."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    codes, values = pd.factorize(column)
    numbers = np.array([_as_number(value) for value in values] + [np.nan])
    wrong = np.array(
        [np.isnan(n) and str(v) not in MARKERS for n, v in zip(numbers, values, strict=False)]
        + [False]
    )
    bad = np.flatnonzero(wrong[codes])
    if len(bad):
        raise DataError(
            f"row {bad[0] + 1}, column '{column.name}': expected a number, "
            f"got '{str(values[codes[bad[0]]])[:40]}'."
        )
    return numbers[codes]


def refuse_infinite(values: np.ndarray, names: list[str]) -> None:
    """Infinite numbers are an error that counts them for each column."""
    with np.errstate(over="ignore", invalid="ignore"):
        if all(np.isfinite(values[rows].sum()) for rows in _blocks(values)):
            return  # a finite sum has finite parts
    where = np.isinf(values)
    counts = where.sum(0)
    if not counts.any():
        return
    said = [
        f"'{names[j]}' ({counts[j]} rows, the first is row {int(where[:, j].argmax()) + 1})"
        for j in np.flatnonzero(counts)[:5]
    ]
    raise DataError(
        f"infinite values in column {', '.join(said)}. Make them missing or leave the rows out."
    )


def _as_number(value: object) -> float:
    if isinstance(value, str):
        return parse_number(value)
    try:
        return float(value)  # type: ignore[arg-type]  # Decimal, int beyond 64 bits, bool
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _filled(block: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    if not np.isnan(block.sum()):  # one pass; a sum of numbers that are none is none
        return block, None
    known = ~np.isnan(block)
    if known.all():  # +inf and -inf
        return block, None
    return np.where(known, block, 0.0), known


def _bent(values: np.ndarray, curves: dict[int, QuantileMap]) -> np.ndarray:
    if not curves:
        return values
    values = values.astype(float)
    for j, curve in curves.items():
        values[:, j] = curve.scores(values[:, j])
    return values


def _blocks(values: np.ndarray) -> list[slice]:
    step = _block_rows(values.shape[1])
    return [slice(start, start + step) for start in range(0, len(values), step)]


def _block_rows(columns: int) -> int:
    return max(1, _BLOCK_BYTES // max(1, 8 * columns))
