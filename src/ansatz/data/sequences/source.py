"""Batches of sequences of similar lengths."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.data.batch import UNLABELLED, Batch, Padded, Ragged, pad, take_rows
from ansatz.seeds import generator

WINDOW = 50  # batches within which sequences are sorted by length


class SequenceSource:
    """Sequences in memory, in a new order each epoch, in batches of similar lengths.

    The order of an epoch is shuffled, sorted by length within windows of 50 batches, and the
    batches are shuffled again: little padding, and every batch still has rows by chance.

    Args:
        sequences: one for each row.
        rows: everything but the inputs.
        batch_size: sequences per batch.
        smallest: rows that the last batch needs; fewer join the batch before it.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
        each: the outcomes are of steps, ``(N, longest)`` codes, -1 where there is none.
    """

    def __init__(
        self,
        sequences: Ragged,
        rows: Batch,
        batch_size: int,
        *,
        smallest: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        each: bool = False,
    ) -> None:
        self.sequences, self.rows, self.batch_size = sequences, rows, batch_size
        self.smallest, self.seed, self.shuffle, self.each = smallest, seed, shuffle, each
        self.lengths = sequences.offsets.diff()

    def __len__(self) -> int:
        full, rest = divmod(len(self.rows.index), self.batch_size)
        return full + (rest >= self.smallest or (rest > 0 and not full))

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        for rows in self._chosen(epoch)[start:]:
            inputs: Padded = pad(self.sequences.take_rows(rows))
            yield self._labelled(take_rows(self.rows, rows), inputs)

    def _labelled(self, rows: Batch, inputs: Padded) -> Batch:
        """The rows with their inputs; outcomes of steps end with the longest sequence."""
        if not self.each:
            return rows._replace(inputs=inputs)
        target = rows.target[:, : inputs.mask.shape[1]]
        weight = rows.weight.unsqueeze(1) * (target != UNLABELLED)
        return rows._replace(inputs=inputs, target=target.clamp(min=0), weight=weight)

    def _chosen(self, epoch: int) -> list[Tensor]:
        """The rows of each batch."""
        count, size = len(self.rows.index), self.batch_size
        # Evaluated together are texts of similar length, whose order does not matter.
        order = self.lengths.argsort(stable=True) if size < count else torch.arange(count)
        if self.shuffle:
            draw = generator(self.seed, "order", epoch)
            order = torch.randperm(count, generator=draw)
            windows = order.split(WINDOW * size)
            order = torch.cat([w[self.lengths[w].argsort(stable=True)] for w in windows])
        parts = list(order.split(size))
        if len(parts) > len(self):
            parts[-2:] = [torch.cat(parts[-2:])]
        if self.shuffle:
            parts = [parts[k] for k in torch.randperm(len(parts), generator=draw).tolist()]
        return parts
