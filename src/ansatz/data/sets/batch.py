"""The inputs of networks on sets: values and offsets, cut without padding."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.layers.ragged import Ragged, rows_of


class SetBatch(NamedTuple):
    """B sets of elements, in the order in which a network takes them.

    Args:
        values: ``(E, D)`` numbers of the elements.
        offsets: ``(B + 1,)``; set b is ``values[offsets[b]:offsets[b + 1]]``.
        codes: ``(E, C)`` of categories and kinds.
        beside: ``(B, U)`` numbers of the sets.
    """

    values: Tensor
    offsets: Tensor
    codes: Tensor
    beside: Tensor

    def count_rows(self) -> int:
        """The number of sets, B."""
        return len(self.offsets) - 1

    def take_rows(self, rows: slice | Tensor) -> "SetBatch":
        """Some of the sets."""
        values, offsets = Ragged(self.values, self.offsets).take_rows(rows)
        codes = self.codes[:0]
        if self.codes.shape[1]:
            codes = Ragged(self.codes, self.offsets).take_rows(rows).values
        else:
            codes = self.codes.new_zeros(len(values), 0)
        return SetBatch(values, offsets, codes, self.beside[rows])


class ElementBatch(NamedTuple):
    """Elements of B sets, as rows: the whole sets, and which elements are asked for.

    Args:
        values: as in :class:`SetBatch`.
        offsets: as there.
        codes: as there.
        beside: as there.
        chosen: ``(R,)`` positions of the rows.
    """

    values: Tensor
    offsets: Tensor
    codes: Tensor
    beside: Tensor
    chosen: Tensor

    def count_rows(self) -> int:
        """The number of elements that are asked for, R."""
        return len(self.chosen)

    def take_rows(self, rows: slice | Tensor) -> "ElementBatch":
        """Some of the elements, with the whole of their sets."""
        chosen = self.chosen[rows]
        owner = rows_of(self.offsets, len(self.values))[chosen]
        kept, inverse = owner.unique(return_inverse=True)
        some = SetBatch(*self[:4]).take_rows(kept)
        inside = chosen - self.offsets[owner]
        return ElementBatch(*some, some.offsets[inverse] + inside)


def flat_rows(inputs: SetBatch | ElementBatch) -> tuple[Ragged, Ragged]:
    """The numbers and the codes of the elements, as ragged rows."""
    return Ragged(inputs.values, inputs.offsets), Ragged(inputs.codes, inputs.offsets)


def chunks(inputs: SetBatch | ElementBatch, most: int) -> list[slice]:
    """Runs of consecutive rows whose sets have some ``most`` elements together."""
    if isinstance(inputs, ElementBatch):
        step = max(1, most)
        return [slice(k, k + step) for k in range(0, max(1, len(inputs.chosen)), step)]
    count = inputs.count_rows()
    group = torch.div(inputs.offsets[1:], max(1, most), rounding_mode="floor")
    ends = (group.diff().nonzero().squeeze(1) + 1).tolist()
    bounds = [0, *ends, max(count, 1)]
    return [slice(a, b) for a, b in pairwise(bounds) if b > a]
