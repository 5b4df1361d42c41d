"""The role of each column: number, category, date, identifier."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansatz.data.categorical import sort_levels, spelled
from ansatz.data.dates import as_dates, looks_like_dates
from ansatz.data.frames import as_frame
from ansatz.data.spelling import Spelling, declared_spelling, find_spelling
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

_MANY = 20  # rows below which distinct values say nothing, and groups above which ids are ids
_ID_NAME = re.compile(
    r"^(?:.*[_\s.-])?(?:id|uuid|guid)$|^(?:index|idx|rownames?|row[_\s.-]?(?:id|number)|column_1)$"
    r"|^unnamed: ?\d+$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID)$")
GROUP_NAME = re.compile(
    r"^(?:(?:patient|subject|participant|person|pupil|student|school|site|clinic|hospital|cent(?:er|re)"
    r"|household|family|animal|donor|customer|user|batch|plate|cluster|rater|firm)"
    r"(?:[_\s.-]?(?:id|no|nr|num|number|code))?|(?:id|no|nr)[_\s.-]?(?:patient|subject|site))$",
    re.IGNORECASE,
)
GROUPS = "may name groups of rows"
_TIME_NAME = re.compile(
    r"^(?:t|x|time|year|month|week|day|hour|age|step|period|order|dose|depth|distance)$",
    re.IGNORECASE,
)


def reason_to_be_id(column: "pd.Series", levels: tuple[str, ...] = ()) -> str:
    """Explains why a column without gaps is an identifier; the empty string if it is not.

    Numbers that count the rows from 0 or 1 in their order; whole numbers or text called an id;
    text of which every cell is another word. A name like ``time`` or ``week`` speaks against it.
    """
    import pandas as pd

    rows, name = len(column), str(column.name)
    if rows < _MANY:
        return ""
    named = bool(_ID_NAME.match(name) or _CAMEL_ID.search(name))
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float)
        counting = values[0] in (0.0, 1.0) and not _TIME_NAME.match(name)
        if counting and np.array_equal(values, values[0] + np.arange(rows)):
            return "counts the rows"
        if not named or (values != np.floor(values)).any():
            return ""
    elif not named and (len(levels) < rows or any(" " in level for level in levels[:1000])):
        return ""
    distinct = column.nunique()
    if distinct == rows:
        return "names the rows"
    return "names groups of rows (--group splits by it)" if named and distinct > _MANY else ""


Role = Literal[
    "numeric",
    "categorical",
    "ordered",
    "date",
    "text",
    "constant",
    "id",
    "dropped",
    "stratum",
    "group",
]
USED = ("numeric", "categorical", "ordered", "date")


class Column(BaseModel):
    """One column: its name, the role it plays, and a note about it.

    Args:
        name: as in the table.
        role: ``numeric, categorical, ordered, date`` are used; ``text, constant, id, dropped,
            stratum, group`` are not.
        levels: the values of a categorical column; of an ordered one, from low to high.
        missing: rows without a value.
        note: why it has this role, where that is not plain.
        spelling: how its cells spell numbers or dates, where it is text.

    Example:
        >>> from ansatz.data import Column
        >>> Column(name="sex", role="categorical", levels=("F", "M")).used
        True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    role: Role
    levels: tuple[str, ...] = ()
    missing: int = 0
    note: str = ""
    spelling: Spelling | None = None

    @property
    def used(self) -> bool:
        """Whether the column becomes features."""
        return self.role in USED


def infer_columns(
    frame: Any,
    *,
    roles: Mapping[str, str | Sequence[str]] | None = None,
    drop: Collection[str] = (),
) -> list[Column]:
    """Infers the role of every column of a table of features.

    Numbers are numeric; text, booleans and pandas' categories are categorical; ordered categories
    are ordered; text that spells dates (``2021-12-31``, ``31.12.2021``) or numbers (``64.5%``,
    ``$1,234.50``) in one way is read so, and the way is kept in ``spelling``. A column with one
    value is constant, one that names the rows is an id: both are left out, with a note. Free text
    is an error that says how to go on.

    Args:
        frame: the features.
        roles: corrections: a role; the levels from low to high of an ordered column, as a list or
            as ``"low<mid<high"``; the format of dates, ``"%d/%m/%Y"``; or a number as the cells
            write it, ``"1.234,5"``.
        drop: columns to leave out.

    Example:
        >>> from ansatz.data import infer_columns
        >>> columns = infer_columns({"age": [3, 4, 5], "sex": ["M", "F", "M"], "one": [1, 1, 1]})
        >>> [column.role for column in columns]
        ['numeric', 'categorical', 'constant']
    """
    frame = as_frame(frame)
    roles = dict(roles or {})
    _check_names(frame, [*roles, *drop])
    plain = _plain_numbers(frame, skip={*roles, *drop})
    columns = []
    for name in frame.columns:
        if name in drop:
            columns.append(Column(name=name, role="dropped", note="left out as asked"))
        elif name in roles:
            columns.append(_declared(frame[name], roles[name]))
        else:
            columns.append(plain[name] if name in plain else _infer(frame[name]))
    columns = _leave_out_ids(frame, columns, kept=set(roles))
    columns = [c if c.name in roles else _hint_at_groups(frame, c) for c in columns]
    _refuse_text([column.name for column in columns if column.role == "text"])
    return columns


def describe_columns(columns: Sequence[Column]) -> list[tuple[str, str, str]]:
    """Rows (name, role, remark) for printing; plain numeric columns have an empty remark.

    Example:
        >>> from ansatz.data import Column, describe_columns
        >>> describe_columns([Column(name="sex", role="categorical", levels=("F", "M"))])
        [('sex', 'categorical', '2 levels: F, M')]
    """
    rows: list[tuple[str, str, str]] = []
    for column in columns:
        remarks = []
        if column.levels:
            mark = " < " if column.role == "ordered" else ", "
            shown = mark.join(column.levels[:5]) + (", ..." if len(column.levels) > 5 else "")
            remarks.append(f"{len(column.levels)} levels: {shown}")
        if column.missing:
            remarks.append(f"{column.missing} missing")
        if column.note:
            remarks.append(column.note)
        rows.append((column.name, column.role, "; ".join(remarks)))
    return rows


def _plain_numbers(frame: "pd.DataFrame", skip: set[str]) -> dict[str, Column]:
    """Numeric columns, evaluated all at once: a table may have a hundred thousand."""
    names = [
        name
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if isinstance(dtype, np.dtype) and dtype.kind in "fiu" and name not in skip
    ]
    if not names or len(frame) == 0:
        return {}
    values = frame[names].to_numpy(dtype=float)
    missing = np.isnan(values).sum(0)
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(values, axis=0)
        same = (low == np.fmax.reduce(values, axis=0)) & (missing == 0)
    return {
        name: _constant(name, f"is {low[k]:g} in every row")
        if same[k]
        else _empty_or_numeric(name, int(missing[k]), len(frame))
        for k, name in enumerate(names)
    }


def _empty_or_numeric(name: str, missing: int, rows: int) -> Column:
    if missing == rows:
        return _constant(name, "is missing in every row", missing)
    return Column(name=name, role="numeric", missing=missing)


def _constant(name: str, why: str, missing: int = 0) -> Column:
    return Column(name=name, role="constant", missing=missing, note=f"{why}: left out")


def _infer(column: "pd.Series") -> Column:
    import pandas as pd

    name, missing = str(column.name), int(column.isna().sum())
    if len(column) and missing == len(column):
        return _constant(name, "is missing in every row", missing)
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        levels = [str(level) for level in dtype.categories]
        return Column(name=name, role="ordered", levels=tuple(levels), missing=missing)
    if dtype.kind == "M" or isinstance(dtype, pd.DatetimeTZDtype):
        return _date(column, missing)
    if dtype.kind in "cm":
        raise DataError(f"column '{name}' holds {dtype}; expected numbers, text or dates.")
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)  # pandas' and Arrow's own kinds
        same = missing == 0 and len(values) and (values == values[0]).all()
        if same:
            return _constant(name, f"is {values[0]:g} in every row")
        return Column(name=name, role="numeric", missing=missing)
    return _infer_objects(column, missing)


def _infer_objects(column: "pd.Series", missing: int) -> Column:
    import pandas as pd

    name = str(column.name)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("decimal", "floating", "integer", "mixed-integer-float"):
        return Column(name=name, role="numeric", missing=missing)
    if kind in ("date", "datetime", "datetime64"):
        return _date(column, missing)
    codes, levels = spelled(column)
    if len(levels) == 1 and missing == 0:
        return _constant(name, f"is '{levels[0]}' in every row")
    if looks_like_dates(levels):
        return _date(column, missing)
    spelling = find_spelling(name, levels, codes)
    if spelling is not None:
        return _spelled(column, spelling)
    if _is_text(levels, len(column) - missing):
        return Column(name=name, role="text", missing=missing)
    note = ""
    if len(levels) > 0.5 * len(codes) and len(codes) >= _MANY:
        note = f"{len(levels)} levels in {len(codes)} rows say little"
    ordered = tuple(sort_levels(levels))
    return Column(name=name, role="categorical", levels=ordered, missing=missing, note=note)


def _spelled(column: "pd.Series", spelling: Spelling) -> Column:
    values = spelling.read(column)
    name, missing = str(column.name), int(values.isna().sum())
    if missing == 0 and (values == values.iloc[0]).all():
        return _constant(name, f"is '{spelling.example}' in every row")
    return Column(
        name=name,
        role="date" if spelling.format else "numeric",
        missing=missing,
        note=spelling.note,
        spelling=spelling,
    )


def _date(column: "pd.Series", missing: int) -> Column:
    as_dates(column)  # an impossible date is an error now, not later
    return Column(name=str(column.name), role="date", missing=missing)


def _is_text(levels: list[str], count: int) -> bool:
    """Mostly distinct, and written in words or long: nobody's category."""
    if count < _MANY or len(levels) <= 0.5 * count:
        return False
    sample = levels[:1000]
    words = np.mean([len(level.split()) for level in sample])
    length = np.mean([len(level) for level in sample])
    return bool(words >= 3 or length > 30)


def _leave_out_ids(frame: "pd.DataFrame", columns: list[Column], kept: set[str]) -> list[Column]:
    found = {
        column.name: why
        for column in columns
        if column.role in ("numeric", "categorical", "text")
        and column.name not in kept
        and column.spelling is None
        and not column.missing
        and (why := reason_to_be_id(frame[column.name], column.levels))
    }
    if not any(column.used and column.name not in found for column in columns):
        return columns  # the only features: then they are meant
    return [
        column.model_copy(
            update={
                "role": "id",
                "levels": (),
                "note": f"{found[column.name]}: left out (--role {column.name}=numeric keeps it)"
                if column.role == "numeric"
                else f"{found[column.name]}: left out",
            }
        )
        if column.name in found
        else column
        for column in columns
    ]


def _hint_at_groups(frame: "pd.DataFrame", column: Column) -> Column:
    """A note on whole numbers that are called like ids or stand in blocks, and stay features."""
    kind = getattr(frame.dtypes[column.name], "kind", "O")
    if column.role != "numeric" or column.spelling is not None or kind not in "iuf":
        return column
    named = GROUP_NAME.match(column.name) is not None
    if not named and (kind == "f" or _TIME_NAME.match(column.name)):
        return column
    values = frame[column.name].dropna().to_numpy()
    if (named and (values == np.floor(values)).all()) or (not named and _in_blocks(values)):
        return column.model_copy(update={"note": GROUPS})
    return column


def _in_blocks(values: np.ndarray) -> bool:
    """Whether ten values or more stand in one block each, all about equally long."""
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True)) + 1
    if not 10 <= len(ends) <= len(values) // 2:
        return False
    lengths = np.diff(ends, prepend=0)
    if lengths.min() < 2 or lengths.max() > 2 * np.median(lengths):
        return False
    return len(np.unique(values[ends - 1])) == len(ends)


def _declared(column: "pd.Series", role: str | Sequence[str]) -> Column:
    import pandas as pd

    name, missing = str(column.name), int(column.isna().sum())
    if role == "drop":
        return Column(name=name, role="dropped", missing=missing, note="left out as asked")
    if not isinstance(role, str):
        return _ordered(column, [str(level) for level in role], missing)
    if "<" in role:
        return _ordered(column, [level.strip() for level in role.split("<")], missing)
    if role == "ordered":
        if isinstance(column.dtype, pd.CategoricalDtype):
            return _ordered(column, [str(c) for c in column.cat.categories], missing)
        levels = sort_levels(spelled(column)[1])
        if not all(_is_number(level) for level in levels):
            raise UsageError(f"column '{name}' needs its order: --role {name}=low<middle<high")
        return _ordered(column, levels, missing)
    if role in ("categorical", "stratum", "group"):
        levels = sort_levels(spelled(column)[1])
        return Column(name=name, role=role, levels=tuple(levels), missing=missing)  # type: ignore[arg-type]
    spelling = role_spelling(column, role)
    if spelling is not None:
        return _spelled(column, spelling)
    if role == "date":
        return _date(column, missing)
    if role not in get_args(Role):
        known = ", ".join([*USED, "drop"])
        raise UsageError(f"unknown role '{role}' for column '{name}'. Known: {known}.")
    return Column(name=name, role=role, missing=missing, note="as asked")  # type: ignore[arg-type]


def role_spelling(column: "pd.Series", role: str) -> Spelling | None:
    """The spelling of a column of text whose role is given: shown by the role, or found out."""
    import pandas as pd

    shown = declared_spelling(role, spelled(column)[1])
    if shown is not None:
        return shown
    if role not in ("numeric", "date") or pd.api.types.is_numeric_dtype(column.dtype):
        return None
    codes, levels = spelled(column)
    if getattr(column.dtype, "kind", "O") == "M" or looks_like_dates(levels):
        return None
    found = find_spelling(str(column.name), levels, codes)
    return found if found is not None and found.role == role else None


def stratum_codes(frame: "pd.DataFrame", columns: Sequence[Column]) -> np.ndarray | None:
    """The code of each row's stratum, ``(N,)``; None where no column is a stratum."""
    column = next((column for column in columns if column.role == "stratum"), None)
    if column is None:
        return None
    if column.name not in frame.columns:
        raise DataError(f"the table lacks the column '{column.name}' of the strata.")
    place = {level: k for k, level in enumerate(column.levels)}
    codes, found = spelled(frame[column.name])
    known = np.array([place.get(level, -1) for level in found] + [-1])[codes]
    if (known < 0).any():
        row = int((known < 0).argmax())
        value = "(missing)" if codes[row] < 0 else found[codes[row]]
        raise DataError(
            f"row {row + 1}, column '{column.name}': '{value}' is not among the strata "
            f"{', '.join(column.levels[:5])} of the fit."
        )
    return known


def plain_columns(frame: "pd.DataFrame", columns: Sequence[Column]) -> "pd.DataFrame":
    """The table with numbers and dates where its columns spell them."""
    changed = {
        column.name: column.spelling.read(frame[column.name])
        for column in columns
        if column.spelling is not None and column.name in frame.columns
    }
    return frame.assign(**changed) if changed else frame


def _ordered(column: "pd.Series", levels: list[str], missing: int) -> Column:
    codes, found = spelled(column)
    strange = [level for level in found if level not in levels]
    if strange:
        row = int(np.flatnonzero(codes == found.index(strange[0]))[0]) + 1
        raise DataError(
            f"row {row}, column '{column.name}': '{strange[0]}' is not among the ordered levels "
            f"{' < '.join(levels)}."
        )
    return Column(name=str(column.name), role="ordered", levels=tuple(levels), missing=missing)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_names(frame: "pd.DataFrame", names: list[str]) -> None:
    import difflib

    for name in names:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, list(frame.columns), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"no column is called '{name}'.{hint}")


def is_free_text(column: "pd.Series") -> bool:
    """Tests whether the cells of a column are texts, each of its own, rather than categories."""
    if column.dtype.kind in "biufcmM":
        return False
    _, levels = spelled(column)
    return _is_text(levels, int(column.notna().sum())) and not looks_like_dates(levels)


def _refuse_text(names: list[str]) -> None:
    if names:
        listed = ", ".join(f"'{name}'" for name in names)
        plural = "columns hold" if len(names) > 1 else "column holds"
        raise DataError(
            f"{plural} free text: {listed}. To train on it: --text {names[0]}; leave out: --drop "
            f"{','.join(names)}; or treat as categories: --role {names[0]}=categorical"
        )
