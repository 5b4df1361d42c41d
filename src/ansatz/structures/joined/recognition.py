"""Recognizes frames with a column of texts among others, by a look at their values."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.columns import is_free_text
from ansatz.data.frames import is_frame
from ansatz.data.grids.listing import family

if TYPE_CHECKING:
    import pandas as pd


def recognizes_rows(X: Any) -> bool:
    """Tests whether X is a frame of several columns, one of which holds free text."""
    if isinstance(X, Mapping) or not is_frame(X):
        return False
    return any(is_free_text(column) and not _are_files(column) for column in _words(X))


def _words(frame: Any) -> "list[pd.Series]":
    """The columns of words of a frame of any library, where it has several columns.

    Numbers of other libraries' frames are not copied.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        import narwhals as nw

        try:
            found = nw.from_native(frame, eager_only=True)
            names = [name for name, kind in found.schema.items() if kind == nw.String]
            return [found[name].to_pandas() for name in names if len(found.columns) > 1]
        except (TypeError, ImportError):  # as_frame says what is missing
            return []
    dtypes = enumerate(map(str, frame.dtypes))
    places = [place for place, kind in dtypes if kind in ("object", "string", "str")]
    return [frame.iloc[:, place] for place in places if frame.shape[1] > 1]


def _are_files(column: Any) -> bool:
    return all(family(Path(str(cell))) for cell in column.dropna().iloc[:20])
