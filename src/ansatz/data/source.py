"""Sources of batches: a pure function of (seed, epoch, position)."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from ansatz.data.batch import Batch, all_tensors, map_tensors, named_parts
from ansatz.seeds import generator

_BLOCK = 2**19  # bytes of a tensor that are gathered at once


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


def require_tensors(rows: tuple[Any, ...], source: str, name: str = "") -> None:
    """Rejects a field that is not a tensor or a tuple of tensors."""
    for own, part in named_parts(rows, name):
        if isinstance(part, tuple) and not hasattr(part, "take_rows"):
            require_tensors(part, source, own)
        elif part is not None and not isinstance(part, torch.Tensor):
            raise TypeError(
                f"{source} gathers tensors with one row per row, and {own} is of type "
                f"{type(part).__name__}: it needs a source of its own."
            )


class TensorSource:
    """Tensors in memory, in a new order each epoch.

    Each tensor is gathered in blocks of some 512 kB and handed out in slices of a block: a step
    costs no per-row work, and what was gathered is still in the processor's cache when it is used.
    Ragged rows, graphs and other fields that are not one tensor row per row need a source of their
    own.

    Args:
        rows: all rows, as one batch of tensors.
        batch_size: rows per batch; the last batch of an epoch may be shorter.
        smallest: rows that the last batch needs; fewer join the batch before it.
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
        smallest: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        strata: torch.Tensor | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        require_tensors(rows, "TensorSource")
        self.rows, self.batch_size, self.seed, self.shuffle = rows, batch_size, seed, shuffle
        self.count, self.strata, self.smallest = len(rows.index), strata, smallest
        inputs, target, _, offset, _ = rows
        one_input = len(inputs) == 1 and isinstance(inputs[0], torch.Tensor)
        self._is_plain = one_input and isinstance(target, torch.Tensor) and offset is None

    def __len__(self) -> int:
        full, rest = divmod(self.count, self.batch_size)
        return full + (rest >= self.smallest or (rest > 0 and not full))

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        order = self._order(epoch) if self.shuffle else None
        tensors = all_tensors(self.rows)
        for parts in zip(*(self._parts(t, order, start) for t in tensors), strict=True):
            yield self._assembled(parts)

    def _parts(
        self, tensor: torch.Tensor, order: torch.Tensor | None, start: int
    ) -> Iterator[torch.Tensor]:
        """One tensor of the batches from position ``start`` on."""
        batch_bytes = tensor.nbytes // max(self.count, 1) * self.batch_size + 1
        block = max(1, _BLOCK // batch_bytes) * self.batch_size  # rows per gather
        skip, end = start * self.batch_size, len(self) * self.batch_size
        # Gathered from the block's start even when entered in its middle: the same rows at the
        # same places in memory, so that a resumed run rounds as the uninterrupted one did.
        for first in range(skip - skip % block, end, block):
            rows = slice(first, first + block if first + block < end else self.count)
            if order is None:
                found = tensor[rows]
            else:
                found = tensor.index_select(0, order[rows].to(tensor.device))
            # Views are made by one call per block, which costs a third of slicing.
            parts = found.split(self.batch_size) if block > self.batch_size else (found,)
            last = min(block, end - first) - self.batch_size  # the row that the last one begins at
            if len(parts) * self.batch_size > last + self.batch_size:
                parts = (*parts[: last // self.batch_size], found[last:])
            yield from parts[max(0, skip - first) // self.batch_size :]

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


class MemberSource:
    """For each of S members its own rows in its own order, side by side.

    A batch has the leading shape ``(S, b)``. Members may have unequally many rows: in a shuffled
    epoch everyone gives as many full batches as the smallest has, a different choice of rows each
    epoch; when all rows are taken at once, the shorter are filled up with rows of weight 0.

    Args:
        rows: all rows, as one batch.
        members: for each member the numbers of its rows.
        batch_size: rows per member and step; 0 takes all rows at once.
        seed: the order of member s in epoch e is a function of (seed, s, e).
    """

    def __init__(
        self, rows: Batch, members: Sequence[Tensor], batch_size: int, *, seed: int = 0
    ) -> None:
        require_tensors(rows, "MemberSource")
        self.rows, self.members, self.seed = rows, list(members), seed
        least, most = min(map(len, self.members)), max(map(len, self.members))
        self.whole = batch_size <= 0 or batch_size > least
        self.batch_size = most if self.whole else batch_size
        self._batches = 1 if self.whole else least // batch_size
        row_bytes = sum(t.nbytes for t in all_tensors(rows)) // max(len(rows.index), 1) + 1
        step_bytes = row_bytes * self.batch_size * len(self.members)
        self._block = max(1, 2**24 // step_bytes)  # batches per gather
        self._all: Batch | None = None

    def __len__(self) -> int:
        return self._batches

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        if self.whole:
            if start == 0:
                yield self.all_rows()
            return
        order = self._order(epoch)  # (S, batches * b)
        for first in range(start - start % self._block, self._batches, self._block):
            last = min(self._batches, first + self._block)
            chosen = order[:, first * self.batch_size : last * self.batch_size]
            # (S, T, b) -> (T, S, b): a batch is then one piece of memory.
            chosen = chosen.reshape(len(order), last - first, -1).transpose(0, 1).contiguous()
            block = self._gather(chosen)
            for place in range(max(0, start - first), last - first):
                yield map_tensors(lambda t, k=place: t[k], block)

    def all_rows(self) -> Batch:
        """Every member's rows at once, ``(S, n)``; those filled up have weight 0."""
        if self._all is None:
            size = max(map(len, self.members))
            index = torch.stack([_fill(rows, size) for rows in self.members])
            there = torch.stack([torch.arange(size) < len(rows) for rows in self.members])
            batch = self._gather(index)
            self._all = batch._replace(weight=batch.weight * there.to(batch.weight.dtype))
        return self._all

    def _order(self, epoch: int) -> Tensor:
        count = self._batches * self.batch_size
        orders = []
        for member, rows in enumerate(self.members):
            draw = torch.randperm(
                len(rows), generator=generator(self.seed, "member", member, "order", epoch)
            )
            orders.append(rows[draw[:count]])
        return torch.stack(orders)

    def _gather(self, index: Tensor) -> Batch:
        flat = index.reshape(-1)

        def take(tensor: Tensor) -> Tensor:
            return tensor.index_select(0, flat).reshape(*index.shape, *tensor.shape[1:])

        taken: Batch = map_tensors(take, self.rows)
        return taken


def _fill(rows: Tensor, size: int) -> Tensor:
    return torch.cat([rows, rows[:1].expand(size - len(rows))])
