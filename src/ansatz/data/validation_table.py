"""A second table, whose rows stop the training, put behind the rows of the first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ansatz.data.frames import as_frame
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

PART = "ansatz/part"  # the column that marks the rows of the two tables


def frame_of_pair(data: Any, target: Sequence[str]) -> Any:
    """``(X, y)`` as one table; anything else as it is."""
    if not isinstance(data, tuple):
        return data
    if len(data) != 2 or len(target) != 1:
        raise UsageError("validation_data must be a table or, with one target, (X, y).")
    import pandas as pd

    X, y = data
    frame = as_frame(X)
    if len(frame) != len(y):
        raise DataError(f"validation_data: X has {len(frame)} rows and y has {len(y)}.")
    return frame.assign(**{target[0]: y if isinstance(y, list) else pd.Series(y).to_numpy()})


def append_validation(frame: "pd.DataFrame", origin: str, more: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of both tables, those of the second marked by the column ``PART``."""
    import pandas as pd

    absent = [name for name in frame.columns if name not in more.columns]
    if absent:
        raise DataError(f"{origin}, whose rows stop the training, has no column '{absent[0]}'.")
    if more.empty:
        raise DataError(f"{origin}, whose rows stop the training, has no rows.")
    parts = [frame, more[list(frame.columns)].copy()]
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):  # levels in their order
            levels = frame[name].cat.categories
            new = [level for level in parts[1][name].dropna().unique() if level not in levels]
            kind = pd.CategoricalDtype([*levels, *new], frame[name].cat.ordered)
            parts = [part.assign(**{name: part[name].astype(kind)}) for part in parts]
    joined = pd.concat(parts, ignore_index=True)
    is_first = joined.index < len(frame)
    return joined.assign(**{PART: pd.Series(is_first).map({True: "train", False: "validation"})})
