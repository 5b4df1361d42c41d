"""Batches of rows that say themselves how they are cut: sets, and elements of sets."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.seeds import generator

Change = Callable[[Batch, torch.Generator], Batch]


class CutSource:
    """Rows in memory, in a new order each epoch; rows of one group come together.

    Args:
        rows: all rows, as one batch.
        batch_size: rows per batch; of groups, the rows after which a batch is full.
        smallest: rows that the last batch needs; fewer join the batch before it.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
        groups: ``(N,)`` numbers from 0 on, of rows that stay together; None where each is alone.
        change: makes new inputs of a batch with a generator of its place.
    """

    def __init__(
        self,
        rows: Batch,
        batch_size: int,
        *,
        smallest: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        groups: Tensor | None = None,
        change: Change | None = None,
    ) -> None:
        self.rows, self.batch_size, self.smallest = rows, batch_size, smallest
        self.seed, self.shuffle, self.change = seed, shuffle, change
        self.groups = groups
        if groups is not None:
            self.order = groups.argsort(stable=True)
            self.sizes = groups.unique(return_counts=True)[1]
            self.ends = torch.cat([self.sizes.new_zeros(1), self.sizes.cumsum(0)])

    def __len__(self) -> int:
        if self.groups is not None:
            return -(-len(self.sizes) // self._groups_each)
        full, rest = divmod(len(self.rows.index), self.batch_size)
        return full + (rest >= self.smallest or (rest > 0 and not full))

    @property
    def _groups_each(self) -> int:
        """Groups in a batch: as many as have its rows on average."""
        return max(1, round(self.batch_size * len(self.sizes) / max(1, len(self.rows.index))))

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        for place, rows in list(enumerate(self._chosen(epoch)))[start:]:
            batch = take_rows(self.rows, rows)
            if self.change is not None:
                batch = self.change(batch, generator(self.seed, "change", epoch, place))
            yield batch

    def _chosen(self, epoch: int) -> list[Tensor]:
        count = len(self.rows.index) if self.groups is None else len(self.sizes)
        order = torch.arange(count)
        if self.shuffle:
            order = torch.randperm(count, generator=generator(self.seed, "order", epoch))
        if self.groups is not None:
            return [self._members(part) for part in order.split(self._groups_each)]
        parts = list(order.split(self.batch_size))
        if len(parts) > len(self):
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts

    def _members(self, groups: Tensor) -> Tensor:
        """The rows of some groups."""
        starts, sizes = self.ends[:-1][groups], self.sizes[groups]
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        shift = (starts - ends[:-1]).repeat_interleave(sizes)
        return self.order[shift + torch.arange(int(ends[-1]))]
