"""Rows of different lengths, one behind the other."""

from typing import NamedTuple

import torch
from torch import Tensor


class Ragged(NamedTuple):
    """B rows of different lengths: the tokens of texts, the elements of sets.

    Row b is ``values[offsets[b]:offsets[b + 1]]``; it may be empty. A batch may hold it in place
    of any tensor.

    Args:
        values: ``(N, ...)``, all rows one behind the other.
        offsets: ``(B + 1,)`` int64, from 0 to N, never falling.
    """

    values: Tensor
    offsets: Tensor

    def count_rows(self) -> int:
        """The number of rows, B."""
        return len(self.offsets) - 1

    def take_rows(self, rows: slice | Tensor) -> "Ragged":
        """The rows of a slice, or those of an index tensor in its order."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(self.count_rows())
            if step == 1:  # a run of rows is a run of values: nothing to copy
                kept = self.offsets[first : max(first, last) + 1]
                return Ragged(self.values[kept[0] : kept[-1]], kept - kept[0])
        starts, lengths = self.offsets[:-1][rows], self.offsets.diff()[rows]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        shift = (starts - offsets[:-1]).repeat_interleave(lengths)
        return Ragged(self.values[shift + torch.arange(len(shift), device=shift.device)], offsets)
