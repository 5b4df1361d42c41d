"""Batches of grids, from memory or from files that are decoded in advance."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ansatz.data.batch import Batch
from ansatz.data.grids.grid_files import in_order
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.masks import Masks
from ansatz.data.source import TensorSource

_AHEAD = 4  # batches decoded before their turn; together with one per thread they are in memory


class GridSource:
    """Grids in a new order each epoch: the batches of :class:`TensorSource`, wherever they are.

    Grids in memory are gathered as any tensor. Files are decoded by a few threads while the
    network is busy with earlier batches; at most ``ahead`` finished ones wait. The order is the
    one that TensorSource gives for the same seed; batches keep the grids' own type, bytes as bytes.

    Args:
        grids: the examples.
        rows: their outcomes, weights, offsets and numbers, N of each; ``rows.inputs`` are further
            inputs, which follow the grids.
        batch_size: examples per batch.
        smallest: examples that the last batch of an epoch needs; fewer join the batch before it.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the examples' own order.
        strata: ``(N,)`` labels that each batch has its share of.
        masks: outcomes that are decoded too; they replace ``rows.target``.
        workers: threads; None for one per processor.
        ahead: batches that may wait.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.data.grids import Grids, GridSource
        >>> grids = Grids.of(torch.zeros(5, 8, 8, dtype=torch.uint8))
        >>> source = GridSource(grids, Batch.of((), torch.zeros(5)), 2)
        >>> [tuple(batch.inputs[0].shape) for batch in source.batches(epoch=0)]
        [(2, 1, 8, 8), (2, 1, 8, 8), (1, 1, 8, 8)]
    """

    def __init__(
        self,
        grids: Grids,
        rows: Batch,
        batch_size: int,
        *,
        smallest: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        strata: Tensor | None = None,
        masks: Masks | None = None,
        workers: int | None = None,
        ahead: int = _AHEAD,
    ) -> None:
        counts = {len(grids), len(rows.index)} | ({len(masks)} if masks is not None else set())
        if len(counts) > 1:
            raise ValueError(f"grids, rows and masks must be as many, got {sorted(counts)}.")
        self.grids, self.masks, self.workers, self.ahead = grids, masks, workers, ahead
        self.in_memory = grids.is_in_memory
        first = grids.load() if self.in_memory else torch.arange(len(grids))
        inner = rows._replace(inputs=(first, *rows.inputs))
        if masks is not None:
            # Masks in memory are bytes; a batch of them becomes int64 when its turn comes.
            inner = inner._replace(target=torch.arange(len(masks)))
        self.inner = TensorSource(
            inner, batch_size, smallest=smallest, seed=seed, shuffle=shuffle, strata=strata
        )

    def __len__(self) -> int:
        return len(self.inner)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        found = self.inner.batches(epoch, start)
        if self.in_memory and (self.masks is None or self.masks.is_in_memory):
            return map(self._decoded, found) if self.masks is not None else found
        return in_order(self._decoded, found, workers=self.workers, ahead=self.ahead)

    def _decoded(self, batch: Batch) -> Batch:
        first, *others = batch.inputs
        if not self.in_memory:
            first = self.grids.load(first, threads=False)
        target: Any = batch.target
        if self.masks is not None:
            target = self.masks.load(target, threads=False)
        return batch._replace(inputs=(first, *others), target=target)
