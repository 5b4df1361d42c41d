"""Batches of frames in a new order each epoch."""

from collections.abc import Iterator

import torch

from ansatz.data.batch import Batch, take_rows
from ansatz.seeds import generator


class FrameSource:
    """Frames in memory with all their pairs.

    Args:
        rows: all rows, as one batch.
        batch_size: frames per batch.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
    """

    def __init__(
        self, rows: Batch, batch_size: int, *, seed: int = 0, shuffle: bool = True
    ) -> None:
        self.rows, self.batch_size = rows, max(1, batch_size)
        self.seed, self.shuffle = seed, shuffle

    def __len__(self) -> int:
        return -(-len(self.rows.index) // self.batch_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        count = len(self.rows.index)
        order = torch.arange(count)
        if self.shuffle:
            order = torch.randperm(count, generator=generator(self.seed, "order", epoch))
        for part in list(order.split(self.batch_size))[start:]:
            yield take_rows(self.rows, part)
