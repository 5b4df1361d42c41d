"""Numbers for a network: centred, scaled, filled where missing, all columns at once."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansatz.data.bins import Bins
from ansatz.data.cells import MARKERS, parse_number
from ansatz.data.quantiles import Curve
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CLIP = 6.0  # standard deviations; beyond it a network extrapolates without having seen anything
_TINY = 1e-300  # its inverse is still a number
_BLOCK_BYTES = 2**18  # a block of rows that stays in the cache


class NumericState(BaseModel):
    """What :class:`Numeric` learned, as JSON."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    center: list[float]
    scale: list[float]
    fill: list[float]
    masked: list[int]
    curves: dict[int, Curve]
    bins: dict[int, Bins] = {}


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
    curves: dict[int, Curve] = field(default_factory=dict)
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
        """Learns from values ``(N, P)`` with weights ``(N,)``.

        Columns in ``bend`` get a curve, those in ``cut`` up to ``num_bins`` bins.
        """
        seen = values if weight.all() else values[weight > 0]
        weight = weight[weight > 0]
        refuse_infinite(seen, names)
        curves = {j: Curve.fit(seen[:, j], weight) for j in bend}
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
        """What a saved model keeps."""
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
    """A column as float64, nan where missing; text that is no number is an error with its row."""
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


def _bent(values: np.ndarray, curves: dict[int, Curve]) -> np.ndarray:
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
