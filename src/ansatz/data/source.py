"""Where batches come from: a pure function of (seed, epoch, position)."""

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import torch

from ansatz.data.batch import Batch, all_tensors, map_tensors
from ansatz.seeds import generator


class Source(Protocol):
    """Batches, the same ones for the same (seed, epoch, position): nothing to save for a resume.

    ``len(source)`` is the number of batches in an epoch.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, Source, TensorSource
        >>> source: Source = TensorSource(Batch.of(torch.randn(5, 2), torch.zeros(5)), 2, seed=0)
        >>> len(source)
        3
    """

    def __len__(self) -> int: ...

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        ...


class TensorSource:
    """Tensors in memory, in a new order each epoch.

    Rows are gathered in blocks of some 512 kB and handed out as slices of a block: a step costs no
    per-row work, and what was gathered is still in the processor's cache when it is used.

    Args:
        rows: all rows, as one batch.
        batch_size: rows per batch; the last batch of an epoch may be shorter.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
        strata: ``(N,)`` labels; every batch of a shuffled epoch then has each label's share of
            the rows, to within one row.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, TensorSource
        >>> source = TensorSource(Batch.of(torch.randn(5, 2), torch.zeros(5)), 2, seed=0)
        >>> [len(batch.index) for batch in source.batches(epoch=0, start=1)]
        [2, 1]
    """

    def __init__(
        self,
        rows: Batch,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        strata: torch.Tensor | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        self.rows, self.batch_size, self.seed, self.shuffle = rows, batch_size, seed, shuffle
        self.count, self.strata = len(rows.index), strata
        inputs, target, _, offset, _ = rows
        one_input = len(inputs) == 1 and isinstance(inputs[0], torch.Tensor)
        self._is_plain = one_input and isinstance(target, torch.Tensor) and offset is None
        row_bytes = sum(t.nbytes for t in all_tensors(rows)) // max(self.count, 1) + 1
        self._block = max(1, 2**19 // (row_bytes * batch_size)) * batch_size  # rows per gather

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        order = None
        if self.shuffle:
            order = self._order(epoch)
        skip = start * self.batch_size
        # Gathered from the block's start even when entered in its middle: the same rows at the
        # same places in memory, so that a resumed run rounds as the uninterrupted one did.
        for first in range(skip - skip % self._block, self.count, self._block):
            last = min(self.count, first + self._block)
            block = self._gather(order, first, last)
            # Views are made by one call per tensor and block, which costs a third of slicing.
            views = zip(*(t.split(self.batch_size) for t in all_tensors(block)), strict=True)
            for parts in islice(views, max(0, skip - first) // self.batch_size, None):
                yield self._assembled(parts)

    def _assembled(self, parts: tuple[torch.Tensor, ...]) -> Batch:
        """A batch of the structure of the rows, from its tensors in order."""
        if self._is_plain:
            x, target, weight, index = parts
            return Batch((x,), target, weight, None, index)
        rest = iter(parts)
        made: Batch = map_tensors(lambda _: next(rest), self.rows)
        return made

    def _order(self, epoch: int) -> torch.Tensor:
        order = torch.randperm(self.count, generator=generator(self.seed, "order", epoch))
        if self.strata is None:
            return order
        labels = self.strata.cpu()[order]
        place = torch.empty(self.count, dtype=torch.float64)
        for label in labels.unique():  # the k-th of n rows of a label stands at (k + 1/2) / n
            mine = labels == label
            count = int(mine.sum())
            place[mine] = (torch.arange(count, dtype=torch.float64) + 0.5) / count
        return order[place.argsort(stable=True)]

    def _gather(self, order: torch.Tensor | None, first: int, last: int) -> Batch:
        if order is None:
            return map_tensors(lambda tensor: tensor[first:last], self.rows)
        chosen = order[first:last]
        return map_tensors(
            lambda tensor: tensor.index_select(0, chosen.to(tensor.device)), self.rows
        )
