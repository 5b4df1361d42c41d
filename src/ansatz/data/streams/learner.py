"""Fits the preprocessing of a table in one pass over its blocks."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.categorical import MISSING, _ordered, spelled
from ansatz.data.columns import Column
from ansatz.data.dates import PARTS
from ansatz.data.number_columns import number_columns, numbers_of
from ansatz.data.numeric import NumericState, QuantileMap, _moments, refuse_infinite
from ansatz.data.preprocessing import EMBED_ABOVE, Preprocessor, _bend
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


class Moments:
    r"""Weighted mean and standard deviation of each column of a stream, nan left out.

    Each block's own moments are taken in two passes; two blocks with weights :math:`W_a, W_b` are
    joined by

    .. math:: m = m_a + \frac{W_b}{W_a + W_b} \delta, \qquad
        S = S_a + S_b + \frac{W_a W_b}{W_a + W_b} \delta^2, \qquad \delta = m_b - m_a

    which loses no digits where the mean is large.

    References:
        Chan, Golub and LeVeque (1983), Algorithms for computing the sample variance.
    """

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.weight, self.mean, self.square = (np.zeros(columns) for _ in range(3))
        self.missing = np.zeros(columns, dtype=np.int64)
        self.low, self.high = np.full(columns, np.nan), np.full(columns, np.nan)

    def add(self, values: np.ndarray, weight: np.ndarray) -> None:
        """Takes in values ``(N, P)`` with positive weights ``(N,)``."""
        if len(values) == 0:
            return
        known = ~np.isnan(values)
        mass = weight @ known
        mean, deviation, missing = _moments(values, weight)
        total = self.weight + mass
        delta = np.where(self.weight > 0, mean - self.mean, 0.0)
        share = np.divide(mass, total, out=np.zeros_like(total), where=total > 0)
        self.square += mass * np.square(deviation) + self.weight * share * np.square(delta)
        first = (self.weight == 0) & (mass > 0)
        self.mean = np.where(first, mean, np.where(mass > 0, self.mean + share * delta, self.mean))
        self.weight, self.missing = total, self.missing + missing
        self.rows += len(values)
        with np.errstate(invalid="ignore"):
            self.low = np.fmin(self.low, np.fmin.reduce(values, axis=0))
            self.high = np.fmax(self.high, np.fmax.reduce(values, axis=0))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations, 0 where rounding of the mean alone would explain them."""
        variance = np.divide(
            self.square, self.weight, out=np.zeros_like(self.square), where=self.weight > 0
        )
        noise = (10 * np.finfo(float).eps * np.abs(self.mean)) ** 2
        found: np.ndarray = np.where(variance <= noise, 0.0, np.sqrt(variance))
        return found


class Learner:
    """Learns means, standard deviations, missing values and levels block by block.

    The state is that of :meth:`ansatz.data.Preprocessor.fit` on the same rows: exact but for
    rounding. Columns that are bent to normal scores take their curve from a sample.
    """

    def __init__(self, columns: list[Column], *, quantile: bool | list[str] = False) -> None:
        self.columns, self.quantile = columns, quantile
        self._dates = {column.name: list(PARTS) for column in columns if column.role == "date"}
        self._slots = number_columns(columns, self._dates)
        self._moments = Moments(len(self._slots))
        self._levels: dict[str, dict[str, float]] = {
            column.name: {} for column in columns if column.role == "categorical"
        }
        self._missing = dict.fromkeys(self._levels, False)
        self._text = dict.fromkeys(self._levels, False)
        self.rows = 0

    def add(self, frame: "pd.DataFrame", weight: np.ndarray | None = None) -> None:
        """Takes in training rows with positive weights."""
        import pandas as pd

        if len(frame) == 0:
            return
        weight = np.ones(len(frame)) if weight is None else weight
        self.rows += len(frame)
        self._moments.add(numbers_of(frame, self._slots), weight)
        for name, mass in self._levels.items():
            codes, found = spelled(frame[name])
            known = codes >= 0
            sums = np.bincount(codes[known], weights=weight[known], minlength=len(found))
            for level, total in zip(found, sums.tolist(), strict=True):
                mass[level] = mass.get(level, 0.0) + total
            self._missing[name] |= not known.all()
            self._text[name] |= not pd.api.types.is_numeric_dtype(frame[name].dtype)

    def preprocessor(
        self, sample: "pd.DataFrame | None" = None, weight: np.ndarray | None = None
    ) -> Preprocessor:
        """The preprocessor of the rows so far; bent columns take their curve from a sample."""
        if self.rows == 0:
            raise DataError("no rows to train on.")
        moments = self._moments
        extent = moments.high - moments.low
        keep = [
            j
            for j, slot in enumerate(self._slots)
            if not slot.part or slot.part == PARTS[0] or extent[j] > 1e-9
        ]
        slots = [self._slots[j] for j in keep]
        dates = {name: [s.part for s in slots if s.column == name] for name in self._dates}
        mean, deviation = moments.mean[keep], moments.deviation[keep]
        self._refuse_huge(deviation, [slot.feature for slot in slots])
        curves = {}
        for j in _bend(slots, self.quantile):
            assert sample is not None
            curves[j], mean[j], deviation[j] = _bent(
                numbers_of(sample, [slots[j]]), np.ones(len(sample)) if weight is None else weight
            )
        first = {slot.column: j for j, slot in reversed(list(enumerate(slots)))}
        gone = moments.missing[keep]
        masked = [
            j
            for j, slot in enumerate(slots)
            if 0 < gone[j] < moments.rows and first[slot.column] == j
        ]
        numeric = NumericState(
            center=mean.tolist(),
            scale=deviation.tolist(),
            fill=mean.tolist(),
            masked=masked,
            curves=curves,
        )
        state: dict[str, Any] = {
            "purpose": "network",
            "dtype": "float32",
            "named": True,
            "columns": [column.model_dump() for column in self.columns],
            "numeric": numeric.model_dump(),
            "categorical": [
                self._categorical(column) for column in self.columns if column.role == "categorical"
            ],
            "dates": dates,
            "missing": {slots[j].column: int(gone[j]) for j in masked},
        }
        return Preprocessor.from_state(state)

    def _categorical(self, column: Column) -> dict[str, Any]:
        import pandas as pd

        mass = self._levels[column.name]
        present = [level for level, total in mass.items() if total > 0]
        levels = _ordered(pd.Series(dtype=object), present, column.levels)
        if self._missing[column.name] and MISSING not in levels:
            levels.append(MISSING)
        return {
            "name": column.name,
            "levels": levels or [MISSING],
            "coding": "embedding" if len(levels) > EMBED_ABOVE else "indicator",
            "text": self._text[column.name],
        }

    def _refuse_huge(self, deviation: np.ndarray, names: list[str]) -> None:
        for j in np.flatnonzero(~np.isfinite(deviation)):
            raise DataError(
                f"column '{names[j]}' holds numbers that are too large to be squared. Divide the "
                "column by a power of ten."
            )


def _bent(values: np.ndarray, weight: np.ndarray) -> tuple[QuantileMap, float, float]:
    """The curve of a sample, and mean and standard deviation of its scores."""
    refuse_infinite(values, [""])
    curve = QuantileMap.fit(values[:, 0], weight)
    moments = Moments(1)
    moments.add(curve.scores(values[:, 0])[:, None], weight)
    return curve, float(moments.mean[0]), float(moments.deviation[0])
