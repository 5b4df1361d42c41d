"""Tables in which the numbers of a row are one signal."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ansatz.data.frames import as_frame
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.layout import as_values
from ansatz.errors import DataError


def read_signals(data: Any, target: Sequence[str] = ()) -> GridTable:
    """Signals of one channel: the columns of numbers, in their order, that are not targets.

    Args:
        data: a table's file or frame.
        target: columns that stay columns, if they are there; those of words do so anyway.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data.grids.signals import read_signals
        >>> frame = pd.DataFrame({"a": [1.0, 2], "b": [3.0, 4], "c": [5.0, 6], "y": [0, 1]})
        >>> read_signals(frame, ["y"]).grids.load()[0]
        tensor([[1., 3., 5.]])
    """
    origin, notes = "the table", []
    if isinstance(data, str | PathLike):
        from ansatz.data.table import read_table

        table = read_table(data)
        frame, origin, notes = table.frame, table.origin, list(table.notes)
    else:
        frame = as_frame(data)
    there = [name for name in target if name in frame.columns]
    given = frame.drop(columns=there).select_dtypes(["number", "bool"])
    numbers = list(given.columns)
    if len(numbers) < 2:
        raise DataError(f"{origin}: a signal needs at least two columns of numbers.")
    values = frame[numbers].to_numpy(dtype=np.float32)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise DataError(
            f"{origin}, row {row + 1}, column '{numbers[column]}': a gap in a signal. Fill it, or "
            "leave the row out."
        )
    grids = Grids(as_values(values, origin).unsqueeze(1))
    rest = frame.drop(columns=numbers).reset_index(drop=True)
    notes.append(f"{len(numbers)} columns of numbers were read as a signal of one channel.")
    return GridTable(origin, rest, grids, None, notes, there[0] if there else None)
