"""Batches of graphs, or of the nodes and pairs of one."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.seeds import generator


class GraphSource:
    """Rows in memory, cut in a new order each epoch; all rows at once are never copied.

    Args:
        rows: all rows, whose input is a :class:`~ansatz.layers.GraphBatch`.
        batch_size: rows per batch; 0 takes all at once.
        smallest: rows that the last batch needs; fewer join the batch before it.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
    """

    def __init__(
        self,
        rows: Batch,
        batch_size: int,
        *,
        smallest: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.rows, self.count = rows, len(rows.index)
        self.batch_size = min(batch_size, self.count) or self.count
        self.smallest, self.seed, self.shuffle = smallest, seed, shuffle

    def __len__(self) -> int:
        full, rest = divmod(self.count, max(self.batch_size, 1))
        return full + (rest >= self.smallest or (rest > 0 and not full))

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        if self.batch_size == self.count:
            if start == 0:
                yield self.rows
            return
        for part in self._parts(epoch)[start:]:
            yield take_rows(self.rows, part)

    def _parts(self, epoch: int) -> list[Tensor]:
        order = torch.arange(self.count)
        if self.shuffle:
            order = torch.randperm(self.count, generator=generator(self.seed, "order", epoch))
        parts = list(order.split(self.batch_size))
        if len(parts) > len(self):
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts
