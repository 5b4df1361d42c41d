"""One pass over a table: the roles of its columns, and a bounded sample of its rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

import numpy as np

from ansatz.data.categorical import sort_levels, spelled
from ansatz.data.cells import MARKERS
from ansatz.data.columns import (
    _CAMEL_ID,
    _ID_NAME,
    _MANY,
    _TIME_NAME,
    GROUP_NAME,
    GROUPS,
    USED,
    Column,
    Role,
    _constant,
    _is_number,
    _is_text,
    _refuse_text,
)
from ansatz.data.dates import as_dates, looks_like_dates
from ansatz.data.keys import mix
from ansatz.data.spelling import Spelling, declared_spelling, find_spelling
from ansatz.errors import DataError, UsageError
from ansatz.seeds import derive

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 100_000  # distinct values that are kept apart


class ColumnScan:
    """Counts of one column: values, gaps, range, levels; enough to say what the column is.

    The answers are those of :func:`ansatz.data.infer_columns` on the whole table. Beyond 100,000
    distinct words a column is an identifier, free text, or an error.
    """

    def __init__(self, name: str, role: str | None = None) -> None:
        self.name, self.role = name, role
        self.rows = self.missing = 0
        self.low = self.high = np.nan
        self.levels: dict[str, int] = {}
        self.full = False  # more levels than are kept
        self.times = False  # dates by type, not by spelling
        self._spelled_dates = True
        self._first: float | None = None
        self._counting = not _TIME_NAME.match(name)  # 0, 1, 2, ... so far
        self._whole = True
        self._named = bool(_ID_NAME.match(name) or _CAMEL_ID.search(name))
        self._distinct: np.ndarray | None = np.empty(0) if self._named else None
        self._order = _order(role)

    def add(self, column: "pd.Series") -> None:
        """Some more rows, whose index numbers them."""
        if self.role == "drop":
            self.rows += len(column)
            self.missing += int(column.isna().sum())
            return
        kind = getattr(column.dtype, "kind", "O")
        if kind in "fiu":
            self._add_numbers(column)
            if self.role in ("categorical", "ordered") or self._order:
                self._add_words(column)
        elif kind == "M":
            self.times = True
        elif kind in "cm":
            raise DataError(
                f"column '{self.name}' holds {column.dtype}; expected numbers, text or dates."
            )
        else:
            self._add_words(column)
        self.rows += len(column)
        self.missing += int(column.isna().sum())

    def column(self) -> Column:
        """The column and its role."""
        if self.role is not None:
            return self._declared()
        if self.rows and self.missing == self.rows:
            return _constant(self.name, "is missing in every row", self.missing)
        if self.times:
            return self._as("date")
        if self.numeric:
            if self.low == self.high and not self.gaps:
                return _constant(self.name, f"is {self.low:g} in every row")
            return self._as("numeric", note=GROUPS if GROUP_NAME.match(self.name) else "")
        return self._words()

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, whatever spelled the missing ones."""
        return not np.isnan(self.low) and all(level in MARKERS for level in self.levels)

    @property
    def gaps(self) -> int:
        """Missing values, spelled ones included where the others are numbers."""
        marked = self.role is None and self.numeric
        return self.missing + (sum(self.levels.values()) if marked else 0)

    def reason_to_be_id(self) -> str:
        """Explains why the column is an identifier, as ``columns.reason_to_be_id``."""
        if self.rows < _MANY or self.gaps:
            return ""
        if self.numeric:
            if self._counting and self._first in (0.0, 1.0):
                return "counts the rows"
            if not self._named or not self._whole or self._distinct is None:
                return ""
            distinct = len(self._distinct)
        else:
            distinct = len(self.levels)
            spaced = any(" " in level for level in list(self.levels)[:1000])
            if not self._named and (distinct < self._kept_rows or spaced):
                return ""
        if distinct == self._kept_rows or (self.full and self._unique_so_far):
            return "names the rows"
        named = self._named and distinct > _MANY
        return "names groups of rows (--group splits by it)" if named else ""

    @property
    def _kept_rows(self) -> int:
        """Rows among which levels were counted."""
        return sum(self.levels.values()) if self.full and self.levels else self.rows

    @property
    def _unique_so_far(self) -> bool:
        return all(count == 1 for count in self.levels.values())

    def _add_numbers(self, column: "pd.Series") -> None:
        values = column.to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        bad = np.isinf(low) or np.isinf(high)
        if bad:
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise DataError(
                f"infinite values in column '{self.name}' (the first is row "
                f"{column.index[row] + 1}). Make them missing or leave the rows out."
            )
        self.low, self.high = np.fmin(self.low, low), np.fmax(self.high, high)
        if self._counting:
            if self._first is None:
                self._first = float(values[0])
            expected = self._first + np.arange(self.rows, self.rows + len(values))
            self._counting = bool(np.array_equal(values, expected))
        if self._distinct is not None:
            self._whole = self._whole and bool((values == np.floor(values)).all())
            if len(self._distinct) <= MOST_LEVELS:
                self._distinct = np.union1d(self._distinct, values)
            self.full = len(self._distinct) > MOST_LEVELS

    def _add_words(self, column: "pd.Series") -> None:
        import pandas as pd

        if pd.api.types.infer_dtype(column, skipna=True) in ("date", "datetime", "datetime64"):
            self.times = True
            return
        codes, found = spelled(column)
        if self._order:
            self._check_order(column, codes, found)
        counts = np.bincount(codes[codes >= 0], minlength=len(found))
        new = [level for level in found if level not in self.levels]
        self._spelled_dates = self._spelled_dates and (not new or looks_like_dates(new))
        if self._spelled_dates and new:
            as_dates(column)  # an impossible date is an error now, not later
        for level, count in zip(found, counts.tolist(), strict=True):
            if level in self.levels:
                self.levels[level] += count
            elif len(self.levels) < MOST_LEVELS or self._spelled_dates:
                self.levels[level] = count
            else:
                self.full = True

    def _check_order(self, column: "pd.Series", codes: np.ndarray, found: list[str]) -> None:
        strange = [level for level in found if level not in self._order]
        if strange:
            row = int(np.flatnonzero(codes == found.index(strange[0]))[0])
            raise DataError(
                f"row {column.index[row] + 1}, column '{self.name}': '{strange[0]}' is not among "
                f"the ordered levels {' < '.join(self._order)}."
            )

    def _words(self) -> Column:
        levels = list(self.levels)
        if len(levels) == 1 and not self.missing:
            return _constant(self.name, f"is '{levels[0]}' in every row")
        if levels and self._spelled_dates:
            return self._as("date")
        spelling = find_spelling(self.name, levels)
        if spelling is not None:
            return self._spelled(spelling)
        known = self._kept_rows if self.full else self.rows - self.missing
        if _is_text(levels, known):
            return self._as("text")
        if self.full:
            if self.reason_to_be_id():
                return self._as("categorical")
            raise DataError(
                f"column '{self.name}' has more than {MOST_LEVELS:,} levels. Leave it out: "
                f"--drop {self.name}"
            )
        note = ""
        if len(levels) > 0.5 * self.rows and self.rows >= _MANY:
            note = f"{len(levels)} levels in {self.rows} rows say little"
        return self._as("categorical", tuple(sort_levels(levels)), note)

    def _declared(self) -> Column:
        assert self.role is not None
        if self.role == "drop":
            return self._as("dropped", note="left out as asked")
        if self._order:
            return self._as("ordered", self._order)
        if self.role == "ordered":
            levels = sort_levels(list(self.levels))
            if not all(_is_number(level) for level in levels):
                raise UsageError(
                    f"column '{self.name}' needs its order: --role {self.name}=low<middle<high"
                )
            return self._as("ordered", tuple(levels))
        if self.role == "categorical":
            if self.full:
                raise DataError(
                    f"column '{self.name}' has more than {MOST_LEVELS:,} levels. Leave it out: "
                    f"--drop {self.name}"
                )
            return self._as("categorical", tuple(sort_levels(list(self.levels))))
        spelling = declared_spelling(self.role, list(self.levels))
        if spelling is None and self.levels and not self._spelled_dates:
            spelling = find_spelling(self.name, list(self.levels))
        if spelling is not None and (self.role == spelling.role or self.role not in get_args(Role)):
            return self._spelled(spelling)
        if self.role == "date":
            if not (self.times or self._spelled_dates):
                raise DataError(f"column '{self.name}': expected ISO dates like 2024-02-29.")
            return self._as("date")
        return self._as(self.role, note="as asked")

    def _spelled(self, spelling: Spelling) -> Column:
        marked = sum(n for level, n in self.levels.items() if level.strip() in MARKERS)
        column = self._as(spelling.role, note=spelling.note)
        update = {"spelling": spelling, "missing": self.missing + marked}
        return column.model_copy(update=update)

    def _as(self, role: str, levels: tuple[str, ...] = (), note: str = "") -> Column:
        return Column.model_validate(
            {
                "name": self.name,
                "role": role,
                "levels": levels,
                "missing": self.gaps,
                "note": note,
            }
        )


def _order(role: str | None) -> tuple[str, ...]:
    if role is None or "<" not in role:
        return ()
    return tuple(level.strip() for level in role.split("<"))


class Survey:
    """Looks at features block by block and says what each column is.

    The roles are those of :func:`ansatz.data.infer_columns` on the whole table.
    """

    def __init__(self, roles: Mapping[str, str] | None = None) -> None:
        self.roles = dict(roles or {})
        for name, role in self.roles.items():
            known_role = "<" in role or role in (*get_args(Role), "drop")
            if not known_role and declared_spelling(role, ()) is None:
                known = ", ".join([*USED, "drop"])
                raise UsageError(f"unknown role '{role}' for column '{name}'. Known: {known}.")
        self._scans: dict[str, ColumnScan] = {}
        self.rows = 0

    def add(self, frame: "pd.DataFrame") -> None:
        """Takes in some rows."""
        if not self._scans:
            for name in self.roles:
                if name not in frame.columns:
                    raise UsageError(f"no column is called '{name}'.")
            self._scans = {name: ColumnScan(name, self.roles.get(name)) for name in frame.columns}
        for name, scan in self._scans.items():
            scan.add(frame[name])
        self.rows += len(frame)

    def columns(self) -> list[Column]:
        """The role of each column; free text is an error that suggests a role."""
        columns = [scan.column() for scan in self._scans.values()]
        found = {
            column.name: why
            for column in columns
            if column.role in ("numeric", "categorical", "text")
            and column.name not in self.roles
            and column.spelling is None
            and (why := self._scans[column.name].reason_to_be_id())
        }
        if any(column.used and column.name not in found for column in columns):
            columns = [
                _as_id(column, found[column.name]) if column.name in found else column
                for column in columns
            ]
        _refuse_text([column.name for column in columns if column.role == "text"])
        return columns


def _as_id(column: Column, why: str) -> Column:
    keep = f" (--role {column.name}=numeric keeps it)" if column.role == "numeric" else ""
    note = f"{why}: left out{keep}"
    return column.model_copy(update={"role": "id", "levels": (), "note": note})


class RowSample:
    """At most ``size`` rows, each with the same chance; all rows where there are no more.

    The sample is the ``size`` rows whose numbers have the least hash of (seed, use): it needs one
    pass, no random state, and does not depend on how rows are cut into blocks.
    """

    def __init__(self, size: int, *, seed: int = 0, use: str = "sample") -> None:
        self.size, self.seen = size, 0
        self._salt = np.uint64(derive(seed, use))
        self._frames: list[pd.DataFrame] = []
        self._keys: list[np.ndarray] = []
        self._held = 0
        self._bound = np.uint64(2**64 - 1)

    def add(self, frame: "pd.DataFrame") -> None:
        """Offers rows, whose index numbers them."""
        self.seen += len(frame)
        keys = mix(frame.index.to_numpy().astype(np.uint64) ^ self._salt)
        keep = keys <= self._bound
        if not keep.any():
            return
        # A copy: a slice would keep the whole block alive.
        self._frames.append(frame[keep].copy())
        self._keys.append(keys[keep])
        self._held += int(keep.sum())
        if self._held > 2 * self.size + 1_000:
            self._shrink()

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows, in the order of the table."""
        import pandas as pd

        self._shrink()
        return pd.concat(self._frames).sort_index() if self._frames else pd.DataFrame()

    @property
    def complete(self) -> bool:
        """Whether the sample is all rows that were offered."""
        return self.seen <= self.size

    def _shrink(self) -> None:
        import pandas as pd

        if self._held <= self.size:
            return
        keys = np.concatenate(self._keys)
        self._bound = np.partition(keys, self.size - 1)[self.size - 1]
        keep = keys <= self._bound
        self._frames = [pd.concat(self._frames)[keep]]
        self._keys = [keys[keep]]
        self._held = int(keep.sum())
