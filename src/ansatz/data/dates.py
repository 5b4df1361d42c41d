"""Dates and times as numbers: a trend, and the phase of the year, the week and the day."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_SECONDS_PER_DAY = 86_400
PARTS = ("trend", "year sin", "year cos", "week sin", "week cos", "day sin", "day cos")


def looks_like_dates(levels: list[str]) -> bool:
    """Whether all spellings are ISO dates (2024-02-29) or date-times, with seconds and zone or not.

    Other spellings (2/3/2024) are ambiguous and never guessed.
    """
    return bool(levels) and all(_ISO.fullmatch(level.strip()) for level in levels)


def as_dates(column: "pd.Series") -> "pd.Series":
    """The column as UTC times without a zone, NaT where missing."""
    import pandas as pd

    try:
        if column.dtype.kind in "fiu" and column.notna().any():
            raise ValueError(f"expected a date, got {column.dropna().iloc[0]!r}")
        text = pd.api.types.is_object_dtype(column.dtype) or column.dtype.kind not in "M"
        times: Any = pd.to_datetime(column, utc=True, format="ISO8601" if text else None)
    except (ValueError, TypeError, OverflowError) as error:
        row, value = _first_bad(column)
        raise DataError(
            f"row {row + 1}, column '{column.name}': expected an ISO date like 2024-02-29, got "
            f"{str(value)[:40]!r}."
        ) from error
    return times.dt.tz_localize(None)


def date_parts(column: "pd.Series") -> np.ndarray:
    r"""The numbers behind :data:`PARTS`, ``(N, 7)``, nan where the date is missing.

    .. math:: \text{trend} = \text{days since 1970-01-01}, \qquad
        \sin\frac{2\pi p}{P}, \ \cos\frac{2\pi p}{P}

    with the position p in the year (P = 365.25 days), the week (P = 7) and the day (P = 1): the
    last hour of a day is then as near to the first as it is in life.
    """
    times = as_dates(column)
    known = times.notna().to_numpy()
    seconds = np.full(len(times), np.nan)
    seconds[known] = times[known].to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    days = seconds / _SECONDS_PER_DAY
    in_day = days - np.floor(days)
    in_week = np.mod(days, 7.0)  # 1970-01-01 was a Thursday; the phase does not matter
    day_of_year = times.dt.day_of_year.to_numpy(dtype=float, na_value=np.nan) - 1
    phases = [(day_of_year + in_day) / 365.25, in_week / 7.0, in_day]
    waves = [wave(2 * np.pi * phase) for phase in phases for wave in (np.sin, np.cos)]
    return np.stack([days, *waves], axis=1)


def _first_bad(column: "pd.Series") -> tuple[int, object]:
    import pandas as pd

    for row, value in enumerate(column):
        if pd.isna(value):
            continue
        if isinstance(value, str):
            try:
                pd.to_datetime([value], utc=True, format="ISO8601")
                continue
            except (ValueError, TypeError, OverflowError):
                return row, value
        if isinstance(value, int | float | np.number):
            return row, value
    return 0, column.iloc[0]
