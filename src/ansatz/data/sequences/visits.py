"""Examples that are the rows of a long table: the visits of a patient, the logs of a machine."""

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data.batch import Ragged
from ansatz.data.dates import as_dates
from ansatz.data.keys import cell_keys, mix
from ansatz.errors import DataError
from ansatz.seeds import derive
from ansatz.spec import InputSpec

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400.0  # seconds


class Visits:
    """N sequences whose steps are rows of a table.

    Args:
        frame: the steps, one sequence behind the other.
        offsets: ``(N + 1,)``; sequence i is ``frame[offsets[i]:offsets[i + 1]]``.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data.sequences.visits import Visits
        >>> frame = pd.DataFrame({"pulse": [60.0, 70.0, 80.0]})
        >>> len(Visits(frame, [0, 2, 3])[[1]].frame)
        1
    """

    spec = InputSpec.sequence(features=1)  # how many a network sees depends on the levels
    has_features = True

    def __init__(self, frame: "pd.DataFrame", offsets: Any) -> None:
        self.frame, self.offsets = frame, torch.as_tensor(offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> "Visits":
        rows = index if isinstance(index, slice) else torch.as_tensor(index)
        if isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            rows = rows.nonzero().squeeze(1)
        places = Ragged(torch.arange(len(self.frame)), self.offsets).take_rows(rows)
        return Visits(self.frame.iloc[places.values.numpy()], places.offsets)

    def prefixes(self) -> "Visits":
        """The first rows of each sequence, up to its first, its second, ..., its last."""
        starts = self.offsets[:-1].repeat_interleave(self.offsets.diff())
        lengths = torch.arange(len(self.frame)) - starts + 1
        ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        place = torch.arange(int(ends[-1])) - (ends[:-1] - starts).repeat_interleave(lengths)
        return Visits(self.frame.iloc[place.numpy()], ends)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each sequence."""
        rows = cell_keys(self.frame, derive(seed, "visit"))
        found = [
            hashlib.blake2b(rows[a:b].tobytes(), digest_size=8).digest()
            for a, b in pairwise(self.offsets.tolist())
        ]
        return mix(np.frombuffer(b"".join(found), dtype=np.uint64))

    def describe(self) -> dict[str, Any]:
        """The columns of a step."""
        return {"names": None, "count": self.frame.shape[1], "columns": None}


def in_order(
    frame: "pd.DataFrame", identifier: str, time: str | None, origin: str
) -> "tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.float64] | None]":
    """The rows of each sequence together and in the order of time, their offsets, their times."""
    missing = np.flatnonzero(frame[identifier].isna())
    if len(missing):
        raise DataError(f"{origin}, row {missing[0] + 1}: no value of '{identifier}' (--id).")
    codes, _ = frame[identifier].factorize()
    times = None if time is None else _times(frame[time], origin)
    keys = (codes,) if times is None else (times, codes)
    order = np.lexsort(keys)
    offsets = np.append(0, np.bincount(codes).cumsum()).astype(np.int64)
    if times is None:
        return frame.iloc[order], offsets, None
    times = times[order]
    twice = np.flatnonzero((np.diff(times) == 0) & (np.diff(codes[order]) == 0))
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        raise DataError(
            f"{origin}: '{identifier}' {frame[identifier].iloc[first]} has two rows at '{time}' "
            f"{frame[time].iloc[first]}: rows {first + 1} and {second + 1}."
        )
    return frame.iloc[order], offsets, times


def _times(column: "pd.Series", origin: str) -> NDArray[np.float64]:
    """Numbers as they are; dates as days."""
    if column.dtype.kind in "iuf":
        times = column.to_numpy(dtype=np.float64)
    else:
        try:
            dates = as_dates(column)
        except DataError as error:
            raise DataError(f"{origin}, {error}") from None
        times = dates.to_numpy().astype("datetime64[us]").astype(np.int64) / (1e6 * DAY)
        times[dates.isna().to_numpy()] = np.nan
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        raise DataError(f"{origin}, row {bad[0] + 1}: no value of '{column.name}' (--time).")
    return times
