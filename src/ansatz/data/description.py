"""Describes the columns of a table by the outcome: "Table 1" of a study."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.categorical import sort_levels, spelled
from ansatz.data.columns import Column, infer_columns, plain_columns
from ansatz.data.dates import as_dates
from ansatz.data.frames import as_frame
from ansatz.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

GROUPS = 8  # levels of the outcome; with more only the most frequent have columns
LEVELS = 10  # of a column; the rest share a row
SKEWED = 1.0  # skewness beyond which median and quartiles take the place of mean and sd


def table_one(
    data: Any, by: str | None = None, columns: Sequence[Column] | None = None
) -> "pd.DataFrame":
    """Describes each column of a table, overall and by the levels or tertiles of the outcome.

    A number has its mean (standard deviation), or its median [quartiles] where it is skewed; a
    category the count (percent) of each level among rows with a value; missing values the count
    (percent) of all rows. There are no tests: differences between samples that one can see need
    none, and those that matter are the model's to find.

    Args:
        data: any table.
        by: the column that divides the rows; None describes all rows together.
        columns: the roles of the columns; inferred when None.

    Example:
        >>> from ansatz.data import table_one
        >>> ill = ["no", "no", "yes", "yes"]
        >>> table = {"age": [30, 40, 50, 60], "sex": list("fmfm"), "ill": ill}
        >>> print(table_one(table, by="ill").to_string(index=False))
             variable    all (n = 4)   no (n = 2)  yes (n = 2)
        age, mean (sd)   45 (12.91)   35 (7.071)   55 (7.071)
          sex, n (%) f        2 (50)       1 (50)       1 (50)
                     m        2 (50)       1 (50)       1 (50)
    """
    import pandas as pd

    frame = as_frame(data)
    frame.columns = [str(name) for name in frame.columns]
    groups = {"all": np.ones(len(frame), dtype=bool)}
    if by is not None and by not in frame.columns:
        raise UsageError(f"no column '{by}'. Columns: {', '.join(frame.columns[:20])}.")
    if columns is None:  # amounts, percents and dates are text yet
        columns = infer_columns(frame)
        frame = plain_columns(frame, columns)
    if by is not None:
        groups |= outcome_groups(frame[by])
    head = [f"{name} (n = {int(rows.sum())})" for name, rows in groups.items()]
    lines: list[list[str]] = []
    for column in columns:
        if column.name != by and column.name in frame.columns and column.role != "text":
            lines += _lines(frame[column.name], column, list(groups.values()))
    return pd.DataFrame(lines, columns=["variable", *head])


def outcome_groups(cells: "pd.Series") -> "dict[str, NDArray[np.bool_]]":
    """The rows of each level of an outcome, or of each third of its numbers."""
    codes, levels = spelled(cells)
    if cells.dtype.kind in "iuf" and len(levels) > GROUPS:
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        low, high = np.nanquantile(values, [1 / 3, 2 / 3])
        if low < high:
            return {
                f"{cells.name} <= {low:.4g}": values <= low,
                f"{low:.4g} to {high:.4g}": (values > low) & (values <= high),
                f"> {high:.4g}": values > high,
            }
    frequent = sorted(levels, key=lambda level: -int((codes == levels.index(level)).sum()))[:GROUPS]
    return {level: codes == levels.index(level) for level in sort_levels(frequent)}


def _lines(
    cells: "pd.Series", column: Column, groups: "Sequence[NDArray[np.bool_]]"
) -> list[list[str]]:
    missing = cells.isna().to_numpy()
    if missing.all():
        lines = []
    elif column.role == "date":
        lines = [_line(f"{column.name}, range", [_dates(cells[rows]) for rows in groups])]
    elif cells.dtype.kind in "iuf" and column.role not in ("categorical", "ordered"):
        lines = [_numbers(cells, column.name, groups)]
    else:
        lines = _levels(cells, column, groups)
    if missing.any():
        counts = [_share(int(missing[rows].sum()), int(rows.sum())) for rows in groups]
        lines.append(_line(f"{column.name}, missing, n (%)", counts))
    return lines


def _line(name: str, values: Sequence[str]) -> list[str]:
    return [name, *values]


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.3g})" if total else "–"


def _numbers(cells: "pd.Series", name: str, groups: "Sequence[NDArray[np.bool_]]") -> list[str]:
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    known = values[~np.isnan(values)]
    sd = known.std()
    skewed = sd > 0 and abs(float(((known - known.mean()) ** 3).mean()) / sd**3) > SKEWED
    parts = [values[rows & ~np.isnan(values)] for rows in groups]
    if skewed:
        return _line(f"{name}, median [quartiles]", [_quartiles(part) for part in parts])
    return _line(f"{name}, mean (sd)", [_moments(part) for part in parts])


def _moments(values: "NDArray[np.float64]") -> str:
    if not len(values):
        return "–"
    sd = values.std(ddof=1) if len(values) > 1 else float("nan")
    return f"{values.mean():.4g} ({sd:.4g})"


def _quartiles(values: "NDArray[np.float64]") -> str:
    if not len(values):
        return "–"
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.4g} [{low:.4g}, {high:.4g}]"


def _dates(cells: "pd.Series") -> str:
    days = as_dates(cells).dropna()
    return f"{days.min().date()} to {days.max().date()}" if len(days) else "–"


def _levels(
    cells: "pd.Series", column: Column, groups: "Sequence[NDArray[np.bool_]]"
) -> list[list[str]]:
    codes, levels = spelled(cells)
    order = [level for level in column.levels if level in levels]
    order = order if len(order) == len(levels) else sort_levels(levels)
    if len(order) > LEVELS:
        order = sorted(order, key=lambda level: -int((codes == levels.index(level)).sum()))[:LEVELS]
    lines = []
    for k, level in enumerate(order):
        own = codes == levels.index(level)
        shares = [_share(int(own[rows].sum()), int((codes[rows] >= 0).sum())) for rows in groups]
        lines.append(_line(f"{column.name}, n (%) {level}" if k == 0 else level, shares))
    if len(levels) > len(order):
        kept = np.isin(codes, [levels.index(level) for level in order])
        own = ~kept & (codes >= 0)
        shares = [_share(int(own[rows].sum()), int((codes[rows] >= 0).sum())) for rows in groups]
        lines.append(_line(f"{len(levels) - len(order)} more", shares))
    return lines
