"""One column of a table: its codes, and the values that codes stand for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.generative.marginal import DECIMALS, Kind, lattice

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.data import Column

MOST_LEVELS = 400  # that have a code of their own; rarer ones share the last
DAY = 86_400e9  # nanoseconds
Cells = NDArray[Any]


@dataclass
class TableColumn:
    """What a column holds, and how its values are written.

    Args:
        name: as in the table.
        role: ``number``, ``level``, ``date``, ``constant`` or ``id``.
        dtype: of the column, as pandas names it.
        levels: of a column of levels; ``rest`` are further ones that share the last code.
        rest: the rare levels, drawn by ``rest_shares``.
        step: of numbers: the distance of neighbouring values, 0 without a lattice; of dates in
            days.
        value: of a constant.
        center: of numbers, for networks.
        scale: of numbers.
        has_gaps: whether values were missing.
        format: of dates that are text.
    """

    name: str
    role: str
    dtype: str
    levels: list[Any] = field(default_factory=list)
    rest: list[Any] = field(default_factory=list)
    rest_shares: list[float] = field(default_factory=list)
    step: float = 0.0
    value: Any = None
    center: float = 0.0
    scale: float = 1.0
    has_gaps: bool = False
    format: str | None = None

    @classmethod
    def fit(cls, column: "pd.Series", role: "Column | None" = None) -> "TableColumn":
        """Reads a column of the training rows."""
        import pandas as pd

        name, dtype = str(column.name), str(column.dtype)
        gaps = bool(column.isna().any())
        known = column.dropna()
        asked = role.role if role is not None else ""
        if not len(known) or (known.nunique() == 1 and not gaps):
            value = plain(known.iloc[0]) if len(known) else None
            return cls(name, "constant", dtype, value=value, has_gaps=gaps)
        if asked == "id":
            return cls(name, "id", dtype)
        is_date = asked == "date" or column.dtype.kind == "M"
        if is_date:
            days = days_of(known)
            form = None
            if column.dtype.kind != "M":
                form = (role.spelling.format if role and role.spelling else None) or "%Y-%m-%d"
            elif role is not None and role.spelling is not None:
                form = role.spelling.format
            made = cls(name, "date", dtype, has_gaps=gaps, format=form)
            return made._with_numbers(days)
        numeric = pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "b"
        if numeric and asked not in ("categorical", "ordered"):
            made = cls(name, "number", dtype, has_gaps=gaps)
            return made._with_numbers(known.to_numpy(dtype=np.float64))
        return cls(name, "level", dtype, has_gaps=gaps)._with_levels(column, role)

    def _with_numbers(self, values: NDArray[np.float64]) -> "TableColumn":
        self.step = lattice(values)
        self.center, self.scale = float(values.mean()), float(values.std()) or 1.0
        return self

    def _with_levels(self, column: "pd.Series", role: "Column | None") -> "TableColumn":
        counts = column.value_counts()
        found = [plain(level) for level in counts.index]
        if isinstance(getattr(column.dtype, "categories", None), object) and hasattr(
            column.dtype, "categories"
        ):
            seen = set(found)
            ordered = [plain(each) for each in column.dtype.categories if plain(each) in seen]
        elif role is not None and role.role == "ordered" and role.levels:
            named = {str(level): level for level in found}
            ordered = [named[level] for level in role.levels if level in named]
        else:
            ordered = sorted(found, key=str)
        if len(ordered) > MOST_LEVELS:
            frequent = set(found[: MOST_LEVELS - 1])
            tail = counts.iloc[MOST_LEVELS - 1 :]
            self.rest = [plain(level) for level in tail.index]
            self.rest_shares = (tail / tail.sum()).tolist()
            ordered = [level for level in ordered if level in frequent]
        self.levels = ordered
        return self

    @property
    def is_modelled(self) -> bool:
        """Whether a generator models it."""
        return self.role in ("number", "level", "date")

    @property
    def kind(self) -> Kind:
        """What its codes are."""
        return Kind(len(self.levels) + bool(self.rest), 0.0) if self.levels else Kind(0, self.step)

    @property
    def width(self) -> int:
        """How many inputs of a network it makes."""
        return (self.kind.levels or 1) + int(self.has_gaps)

    def features(self, codes: Tensor) -> Tensor:
        """Inputs of a network, ``(N, width)``."""
        gone = codes.isnan()
        if self.kind.levels:
            code = codes.nan_to_num(0).long()
            found = torch.nn.functional.one_hot(code, self.kind.levels).double()
            found = torch.where(gone.unsqueeze(1), 0, found)
        else:
            found = ((codes - self.center) / self.scale).nan_to_num(0.0).unsqueeze(1)
        return torch.cat([found, gone.double().unsqueeze(1)], 1) if self.has_gaps else found

    def decoded(self, codes: NDArray[np.float64] | None, count: int) -> Any:
        """The values that codes stand for, in the column's own type."""
        import pandas as pd

        if self.role == "constant":
            return pd.Series([self.value] * count, dtype=self.dtype if count else None)
        if self.role == "id":
            numbers = np.arange(1, count + 1)
            if self.dtype in ("object", "str", "string"):
                return pd.Series([f"{self.name}-{k}" for k in numbers], dtype=self.dtype)
            return pd.Series(numbers).astype(self.dtype)
        assert codes is not None
        gone = np.isnan(codes)
        if self.role == "level":
            return self._levels_at(codes, gone)
        if self.role == "date":
            return self._dates_at(codes, gone)
        values = codes
        if self.step:
            places = next((p for p in range(DECIMALS) if _is_whole(self.step * 10**p)), DECIMALS)
            values = np.round(np.round(codes / self.step) * self.step, places)
        series = pd.Series(values)
        if self.dtype.lower().startswith(("int", "uint")):
            series = series.round()
            return series.astype(self.dtype if not gone.any() else self.dtype.capitalize())
        return series.astype(self.dtype if self.dtype != "object" else "float64")

    def _levels_at(self, codes: NDArray[np.float64], gone: NDArray[np.bool_]) -> Any:
        import pandas as pd

        code = np.where(gone, 0, codes).astype(int)
        names = np.array([*self.levels, None], dtype=object)[code]
        if self.rest:
            at = np.flatnonzero((code == len(self.levels)) & ~gone)
            shares = np.cumsum(self.rest_shares)
            for number, row in enumerate(at):  # evenly over the shares: a function of the codes
                place = (number * 0.6180339887498949 + 0.5) % 1.0
                which = int(np.searchsorted(shares, place).clip(max=len(self.rest) - 1))
                names[row] = self.rest[which]
        names[gone] = None
        if self.dtype == "category":
            return pd.Series(pd.Categorical(names, categories=[*self.levels, *self.rest]))
        return pd.Series(names, dtype=self.dtype if not gone.any() else None)

    def _dates_at(self, codes: NDArray[np.float64], gone: NDArray[np.bool_]) -> Any:
        import pandas as pd

        days = np.round(codes / self.step) * self.step if self.step else codes
        stamps = pd.Series(pd.to_datetime(np.where(gone, 0, days) * DAY, unit="ns"))
        stamps = stamps.where(~gone)
        if self.format is not None:
            return stamps.dt.strftime(self.format).where(~gone, None)
        if "," in self.dtype:  # with a time zone
            return stamps.dt.tz_localize("UTC").astype(self.dtype)
        return stamps.astype(self.dtype)

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "TableColumn":
        """The inverse of :meth:`record`."""
        return cls(**state)


def coded_column(column: TableColumn, cells: "pd.Series") -> NDArray[np.float64]:
    """The codes of values, nan where they are missing; a level never seen is refused."""
    import pandas as pd

    gone = cells.isna().to_numpy()
    if column.role == "date":
        found = np.full(len(cells), np.nan)
        found[~gone] = days_of(cells[~gone])
        return found
    if column.role == "number":
        try:
            numbers: NDArray[np.float64] = pd.to_numeric(cells).to_numpy(
                dtype=np.float64, na_value=np.nan
            )
            return numbers
        except (ValueError, TypeError):
            raise DataError(f"column '{column.name}': expected numbers.") from None
    codes: dict[Any, int] = {level: k for k, level in enumerate(column.levels)}
    codes |= dict.fromkeys(column.rest, len(column.levels))
    codes = {**{str(level): k for level, k in codes.items()}, **codes}
    place, values = pd.factorize(cells.astype(object))
    at = np.full(len(values) + 1, np.nan)  # the last is that of missing values
    for number, value in enumerate(map(plain, values)):
        code = codes.get(value, codes.get(str(value)))
        if code is None:
            some = ", ".join(map(str, column.levels[:8]))
            raise DataError(
                f"column '{column.name}': '{str(value)[:60]}' was never seen in the fit. "
                f"Known: {some}{', ...' if len(column.levels) > 8 else ''}."
            )
        at[number] = code
    found = at[np.where(gone, len(values), place)]
    return found


def days_of(column: "pd.Series") -> NDArray[np.float64]:
    """Dates as days since 1970."""
    import pandas as pd

    from ansatz.data.dates import as_dates

    stamps = pd.to_datetime(as_dates(column))
    if getattr(stamps.dt, "tz", None) is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    found: NDArray[np.float64] = stamps.astype("datetime64[ns]").astype("int64").to_numpy() / DAY
    return found


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-6
