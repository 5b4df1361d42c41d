"""Columns that name rows instead of describing them."""

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_MANY = 20  # rows below which distinct values say nothing, and groups above which ids are ids
_ID_NAME = re.compile(
    r"^(?:.*[_\s.-])?(?:id|uuid|guid)$|^(?:index|idx|rownames?|row[_\s.-]?(?:id|number)|column_1)$"
    r"|^unnamed: ?\d+$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID)$")
_TIME_NAME = re.compile(
    r"^(?:t|x|time|year|month|week|day|hour|age|step|period|order|dose|depth|distance)$",
    re.IGNORECASE,
)


def reason_to_be_id(column: "pd.Series", levels: tuple[str, ...] = ()) -> str:
    """Why a column without gaps is an identifier, or the empty string if it is none.

    Numbers that count the rows from 0 or 1 in their order; whole numbers or text called an id;
    text of which every cell is another word. A name like ``time`` or ``week`` speaks against it.

    Args:
        column: numbers or text.
        levels: the distinct cells, if it is text.
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
