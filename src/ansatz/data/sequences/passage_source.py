"""Batches of windows from token streams."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.data.batch import UNLABELLED, Batch
from ansatz.data.sequences.passages import Passages
from ansatz.seeds import generator


class PassageSource:
    """Windows of ``context`` tokens from the runs of passages.

    In training, an epoch has as many windows of each run as cover it once, in a new order and at
    random places: a function of (seed, epoch, position). Otherwise windows follow one another, and
    each token is predicted once.

    Args:
        rows: the passages.
        batch_size: windows per batch.
        seed: of order and places.
        shuffle: False goes through the runs in order.
        dtype: of the weights.
    """

    def __init__(
        self,
        rows: Passages,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        self.shuffle, self.dtype = shuffle, dtype
        runs = rows.runs()
        fields = torch.tensor([run[:4] for run in runs], dtype=torch.long).reshape(-1, 4)
        counts = (fields[:, 2] - fields[:, 1] + rows.window - 1) // rows.window
        self.run = fields.repeat_interleave(counts, 0)  # (windows, 4)
        before = counts.cumsum(0) - counts
        self.number = torch.arange(len(self.run)) - before.repeat_interleave(counts)

    def __len__(self) -> int:
        return -(-len(self.run) // self.batch_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        order = torch.arange(len(self.run))
        if self.shuffle:
            order = order[torch.randperm(len(order), generator=self._draw("order", epoch))]
        for position, chosen in enumerate(order.split(self.batch_size)):
            if position >= start:
                yield self._batch(chosen, epoch, position)

    def _draw(self, name: str, *places: int) -> torch.Generator:
        return generator(self.seed, name, *places)

    def _batch(self, chosen: Tensor, epoch: int, position: int) -> Batch:
        _, start, stop, first = self.run[chosen].unbind(1)
        window, draw = self.rows.window, None
        if self.shuffle:
            draw = self._draw("place", epoch, position)
            free = (stop - start - window).clamp(min=0) + 1
            share = torch.rand(len(chosen), generator=draw, dtype=torch.float64)
            low = start + (share * free).long()
        else:
            low = start + window * self.number[chosen]
        length = torch.minimum(stop - low, torch.tensor(window))
        inputs, target = self.rows.batch(low, length, draw)
        weight = (target != UNLABELLED).to(self.dtype)
        return Batch(inputs, target.clamp(min=0), weight, None, first)
