"""Examples that are pairs: something to read, and the text that belongs to it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.data.sequences.sequences import Texts
from ansatz.seeds import generator

WINDOW = 50  # batches within which pairs are sorted by length


class Pairs:
    """N sources, with the texts that belong to them where these are known.

    Args:
        source: rows of any structure: texts, signals, images.
        targets: texts; None where they are to be predicted.

    Example:
        >>> from ansatz.data.sequences.pairs import Pairs
        >>> from ansatz.data.sequences.sequences import Texts
        >>> len(Pairs(Texts(["a dog", "a cat"]), Texts(["ein Hund", "eine Katze"]))[[0]])
        1
    """

    spec, has_features = None, True

    def __init__(self, source: Any, targets: Texts | None = None) -> None:
        self.source, self.targets = source, targets

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: Any) -> "Pairs":
        return Pairs(self.source[index], None if self.targets is None else self.targets[index])

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each source, so that all its translations stay on one side of a split."""
        keys: NDArray[np.uint64] = self.source.content_keys(seed)
        return keys

    def describe(self) -> dict[str, Any]:
        """The features of the source."""
        found: dict[str, Any] = self.source.describe()
        return found


class PairSource:
    """Pairs in memory, in a new order each epoch, in batches of similar lengths and of one size.

    The order of an epoch is shuffled and sorted by length within windows of 50 batches; each
    window is cut into batches of about as many tokens, and the batches are shuffled again.

    Args:
        encoded: says how the inputs of some rows are made, ``encoded(rows) -> tuple``.
        lengths: ``(N, 2)`` steps of each source and tokens of each text.
        rows: everything but the inputs; weights are multiplied by the tokens of the text.
        batch_size: pairs per batch in the mean.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
    """

    def __init__(
        self,
        encoded: Any,
        lengths: Tensor,
        rows: Batch,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.encoded, self.lengths, self.batch_size = encoded, lengths, batch_size
        self.seed, self.shuffle = seed, shuffle
        tokens = lengths[:, 1].to(rows.weight.dtype)
        self.rows = rows._replace(weight=rows.weight * tokens)

    def __len__(self) -> int:
        windows = torch.arange(len(self.lengths)).split(WINDOW * self.batch_size)
        return sum(-(-len(each) // self.batch_size) for each in windows)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        for rows in self._chosen(epoch)[start:]:
            yield take_rows(self.rows, rows)._replace(inputs=self.encoded(rows))

    def _chosen(self, epoch: int) -> list[Tensor]:
        """The rows of each batch."""
        count, size = len(self.lengths), self.batch_size
        if not self.shuffle:
            return list(torch.arange(count).split(size))
        draw = generator(self.seed, "order", epoch)
        order = torch.randperm(count, generator=draw)
        found = [part for window in order.split(WINDOW * size) for part in self._cut(window)]
        return [found[k] for k in torch.randperm(len(found), generator=draw).tolist()]

    def _cut(self, window: Tensor) -> list[Tensor]:
        """A window in batches of about as many steps, one at least in each."""
        cost = self.lengths[window].sum(1)
        order = cost.argsort(stable=True)
        window, cost = window[order], cost[order].double()
        batches = -(-len(window) // self.batch_size)
        share = (cost.cumsum(0) - cost / 2) / cost.sum()
        place = (share * batches).long().clamp(max=batches - 1)
        counts = torch.bincount(place, minlength=batches)
        if not bool(counts.all()):
            return list(window.tensor_split(batches))
        return list(window.split(counts.tolist()))
