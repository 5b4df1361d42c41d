"""Times of a table as whole steps of one length, and what the calendar says of each step."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

HOUR, DAY = 3_600.0, 86_400.0  # seconds
_MONTHS = {1: 12, 3: 4, 12: 1}  # months in a step -> steps in a year


class Clock(NamedTuple):
    """Steps of one length: step k is at ``first + k * length``.

    Args:
        kind: ``"number"``, ``"time"`` with a length in seconds, or ``"month"`` in months.
        length: of a step.
        first: the time of step 0, a number or nanoseconds since 1970.
    """

    kind: str
    length: float
    first: float

    @property
    def season(self) -> int:
        """Steps of the shortest natural cycle: a day, a week, a year; 1 where there is none."""
        if self.kind == "number":
            return 1
        if self.kind == "month":
            return _MONTHS.get(int(self.length), 1)
        if self.length < DAY:
            return max(1, round(DAY / self.length))
        if self.length < 7 * DAY:
            return max(1, round(7 * DAY / self.length))
        return max(1, round(365.25 * DAY / self.length))

    def times(self, steps: NDArray[np.int64]) -> Any:
        """The times of steps, numbers or dates."""
        import pandas as pd

        if self.kind == "number":
            return self.first + steps * self.length
        start = pd.Timestamp(int(self.first))
        if self.kind == "month":
            months = start.to_period("M") + (steps * int(self.length)).astype(int)
            offset = start - start.to_period("M").start_time
            return pd.PeriodIndex(months).to_timestamp() + offset
        return pd.DatetimeIndex(start + pd.to_timedelta(steps * self.length, unit="s"))

    def calendar(self, count: int) -> tuple[NDArray[np.float64], list[str]]:
        """What is known of the first ``count`` steps, ``(count, A)``, and the names."""
        import pandas as pd

        if self.kind == "number" or not count:
            return np.zeros((count, 0)), []
        at = pd.DatetimeIndex(self.times(np.arange(count)))
        seconds = (at - at.normalize()).total_seconds().to_numpy()
        columns: dict[str, NDArray[np.float64]] = {}
        if self.kind == "time" and self.length < DAY:
            for k in (1, 2, 3):
                columns |= _wave(f"hour {k}", k * seconds / DAY)
        if self.kind == "time" and self.length < 7 * DAY:
            day = (at.day_of_week.to_numpy() + seconds / DAY) / 7
            columns |= _wave("weekday 1", day) | _wave("weekday 2", 2 * day)
            columns["weekend"] = (at.day_of_week.to_numpy() >= 5).astype(float)
        if self.season > 1 or self.kind == "time":
            year = (at.day_of_year.to_numpy() - 1) / 365.25
            columns |= _wave("year 1", year) | _wave("year 2", 2 * year)
        return np.stack(list(columns.values()), 1), list(columns)


def _wave(name: str, turns: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    angle = 2 * np.pi * turns
    return {f"sin {name}": np.sin(angle), f"cos {name}": np.cos(angle)}


def read_times(frame: "pd.DataFrame", name: str, origin: str) -> "pd.Series":
    """A column of times as numbers or dates; ``A+B`` adds the hours in B to the dates in A."""
    import pandas as pd

    if name in frame.columns or "+" not in name:
        return _one_column(frame, name, origin)
    first, _, second = name.partition("+")
    date, hours = _one_column(frame, first, origin), _one_column(frame, second, origin)
    if date.dtype.kind != "M" or hours.dtype.kind == "M":
        raise DataError(f"{origin}: '{name}' needs a column of dates and a column of hours.")
    return date + pd.to_timedelta(hours, unit="h")


def _one_column(frame: "pd.DataFrame", name: str, origin: str) -> "pd.Series":
    if name not in frame.columns:
        known = ", ".join(map(str, frame.columns[:20]))
        raise DataError(f"{origin}: no column '{name}' for the time. Columns: {known}.")
    column = frame[name]
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise DataError(f"{origin}, row {missing[0] + 1}, column '{name}': the time is missing.")
    if column.dtype.kind == "M":
        return column.dt.tz_localize(None) if getattr(column.dt, "tz", None) else column
    if column.dtype.kind in "iuf":
        return column
    text = column.astype(str).str.strip()
    found = _parse(text)
    bad = np.flatnonzero(found.isna())
    if len(bad):
        raise DataError(
            f"{origin}, row {bad[0] + 1}, column '{name}': expected a time written like "
            f"'{text.iloc[0]}', got '{text.iloc[bad[0]][:40]}'. Write all times in one format."
        )
    return found


def _parse(text: "pd.Series") -> "pd.Series":
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    form = guess_datetime_format(text.iloc[0])
    if form is None:
        form = "ISO8601"
    found = pd.to_datetime(text, format=form, errors="coerce", utc="%z" in form)
    return found.dt.tz_localize(None) if getattr(found.dt, "tz", None) is not None else found


def to_steps(times: "pd.Series", series: NDArray[np.int64], name: str) -> tuple[Clock, Any]:
    """The clock of some times and the step of each, ``(N,)``; ``series`` says whose they are."""
    import pandas as pd

    order = np.lexsort((times.to_numpy(), series))
    inside = np.diff(series[order]) == 0
    if times.dtype.kind == "M":
        stamps = times.to_numpy().astype("datetime64[ns]")
        gaps = np.diff(stamps[order].astype(np.int64))[inside] / 1e9
        month = _months(pd.DatetimeIndex(stamps), gaps)
        if month is not None:
            return month
        values, kind = stamps.astype(np.int64) / 1e9, "time"
        scale = 1e9
    else:
        values, kind, scale = times.to_numpy(dtype=np.float64), "number", 1.0
        gaps = np.diff(values[order])[inside]
    gaps = gaps[gaps > 0]
    length = float(gaps.min()) if len(gaps) else (DAY if kind == "time" else 1.0)
    first = values.min()
    steps = (values - first) / length
    whole = np.round(steps)
    odd = np.flatnonzero(np.abs(steps - whole) > 1e-3)
    if len(odd):
        raise DataError(
            f"row {odd[0] + 1}, column '{name}': {times.iloc[odd[0]]} is not a whole number of "
            f"steps of {length:g}{' s' if kind == 'time' else ''} after {times.min()}. Times must "
            "lie on one grid."
        )
    return Clock(kind, length, first * scale), whole.astype(np.int64)


def _months(at: "pd.DatetimeIndex", gaps: NDArray[np.float64]) -> tuple[Clock, Any] | None:
    """Steps of months, where no two times are closer than 28 days and all have the same day."""
    positive = gaps[gaps > 0]
    if not len(positive) or positive.min() < 28 * DAY or len(at.day.unique()) > 1:
        return None
    months = (at.year * 12 + at.month).to_numpy().astype(np.int64)
    steps = months - months.min()
    apart = np.gcd.reduce(steps[steps > 0]) if (steps > 0).any() else 1
    return Clock("month", float(apart), float(at.min().value)), steps // apart
