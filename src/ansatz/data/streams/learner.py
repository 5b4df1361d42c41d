"""What a preprocessor learns, from training rows that pass by once."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.categorical import _ordered
from ansatz.data.columns import Column
from ansatz.data.dates import PARTS
from ansatz.data.levels import MISSING, spelled
from ansatz.data.numbers import number_columns, numbers_of
from ansatz.data.numeric import NumericState, refuse_infinite
from ansatz.data.preprocessing import EMBED_ABOVE, Preprocessor, _bend
from ansatz.data.quantiles import Curve
from ansatz.data.streams.moments import Moments
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


class Learner:
    """Learns means, spreads, missing values and levels block by block.

    The state is that of :meth:`ansatz.data.Preprocessor.fit` on the same rows: exact but for
    rounding. Columns that are bent to normal scores take their curve from a sample.

    Args:
        columns: their roles.
        quantile: as in :meth:`ansatz.data.Preprocessor.fit`.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data import Column
        >>> from ansatz.data.streams.learner import Learner
        >>> learner = Learner([Column(name="age", role="numeric")])
        >>> for ages in ([20, 40], [60]):
        ...     learner.add(pd.DataFrame({"age": ages}))
        >>> learner.preprocessor().transform({"age": [40.0]})[0].item()
        0.0
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
            raise DataError("no rows to learn from.")
        moments = self._moments
        spread = moments.high - moments.low
        keep = [
            j
            for j, slot in enumerate(self._slots)
            if not slot.part or slot.part == PARTS[0] or spread[j] > 1e-9
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


def _bent(values: np.ndarray, weight: np.ndarray) -> tuple[Curve, float, float]:
    """The curve of a sample, and mean and spread of its scores."""
    refuse_infinite(values, [""])
    curve = Curve.fit(values[:, 0], weight)
    moments = Moments(1)
    moments.add(curve.scores(values[:, 0])[:, None], weight)
    return curve, float(moments.mean[0]), float(moments.deviation[0])
