"""Batches for several members at once, each from rows of its own."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ansatz.data.batch import Batch, all_tensors, map_tensors
from ansatz.data.source import require_tensors
from ansatz.seeds import generator


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
