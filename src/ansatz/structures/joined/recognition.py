"""Recognizes frames with a column of texts among others, by a look at their values."""

from pathlib import Path
from typing import Any

from ansatz.data.columns import is_free_text
from ansatz.data.grids.listing import family


def recognizes_rows(X: Any) -> bool:
    """Tests whether X is a frame of several columns, one of which holds free text."""
    columns, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if columns is None or dtypes is None or len(columns) < 2:
        return False
    words = [name for name in columns if str(dtypes[name]) in ("object", "string", "str")]
    return any(is_free_text(X[name]) and not _are_files(X[name]) for name in words)


def _are_files(column: Any) -> bool:
    return all(family(Path(str(cell))) for cell in column.dropna().iloc[:20])
