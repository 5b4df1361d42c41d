"""Blocks on disk, and shuffled batches from them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ansatz.data.batch import Batch, all_tensors, map_tensors, take_rows
from ansatz.data.streams.kinds import Kinds
from ansatz.data.table import _import
from ansatz.seeds import generator
from ansatz.storage.disk import explain

if TYPE_CHECKING:
    import pandas as pd


class BlockFile:
    """A table written block by block and read in any order: what text costs is paid once.

    Each block is an Arrow stream of its own, uncompressed, so that the kind of a column may still
    change while the file grows; :class:`Kinds` settles it in reading.
    """

    def __init__(self, path: Path, kinds: Kinds) -> None:
        self.path, self.kinds = path, kinds
        self.counts: list[int] = []
        self._starts = [0]

    def append(self, frame: "pd.DataFrame") -> None:
        """Writes one block; a full disk is a :class:`~ansatz.errors.ResourceError`."""
        arrow = _import("ipc", "streams")
        table = arrow.Table.from_pandas(frame, preserve_index=False)
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        try:
            with self.path.open("ab") as file:
                file.write(content)
        except OSError as error:
            raise explain(error, self.path) from error
        self.counts.append(len(frame))
        self._starts.append(self._starts[-1] + len(content))

    def read(self, number: int) -> "pd.DataFrame":
        """One block, its index that of the rows before it were all blocks one table."""
        arrow = _import("ipc", "streams")
        with self.path.open("rb") as file:
            file.seek(self._starts[number])
            content = file.read(self._starts[number + 1] - self._starts[number])
        frame = arrow.ipc.open_stream(content).read_all().to_pandas(ignore_metadata=True)
        return self.kinds.settle(frame)


class BlockSource:
    """Rows of a table that does not fit in memory, as a :class:`~ansatz.data.Source`.

    Epoch e permutes the blocks, cuts the permutation into windows of several blocks, and permutes
    the rows of each window: both orders are functions of (seed, e) and the window alone. Batches
    run on from one window into the next, so that all but the last of an epoch are full. To start
    in the middle of an epoch only the window of that batch is read: there is no buffer to save.

    Args:
        read: the rows of a block, encoded, in their order.
        counts: how many rows each block gives.
        batch_size: rows per batch.
        seed: of both orders.
        window: blocks whose rows are mixed; memory grows with it.
        shuffle: False keeps the table's own order.
    """

    def __init__(
        self,
        read: Callable[[int], Batch],
        counts: Sequence[int],
        batch_size: int,
        *,
        seed: int = 0,
        window: int = 8,
        shuffle: bool = True,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        if window < 1:
            raise ValueError(f"window must be at least 1 block, got {window}.")
        self.read, self.counts = read, np.asarray(counts, dtype=np.int64)
        self.batch_size, self.seed, self.window, self.shuffle = batch_size, seed, window, shuffle
        self.count = int(self.counts.sum())

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        order = self._order(epoch)
        windows = [order[k : k + self.window] for k in range(0, len(order), self.window)]
        ends = np.cumsum([self.counts[blocks].sum() for blocks in windows])
        offset = start * self.batch_size
        if offset >= self.count:
            return
        number = int(np.searchsorted(ends, offset, side="right"))
        begin = offset - (int(ends[number - 1]) if number else 0)
        left: Batch | None = None  # what did not fill a batch of the window before
        for k in range(number, len(windows)):
            rows = self._mixed(epoch, k, windows[k])
            if rows is None:
                continue
            size = len(rows.index)
            if left is not None:
                need = min(self.batch_size - len(left.index), size)
                left = _join([left, take_rows(rows, slice(need))])
                begin = need
                if len(left.index) < self.batch_size:
                    continue
                yield left
            while begin + self.batch_size <= size:
                yield take_rows(rows, slice(begin, begin + self.batch_size))
                begin += self.batch_size
            left = take_rows(rows, slice(begin, size)) if begin < size else None
            begin = 0
        if left is not None:
            yield left

    def _order(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(len(self.counts))
        order = torch.randperm(len(self.counts), generator=generator(self.seed, "blocks", epoch))
        return order.numpy()

    def _mixed(self, epoch: int, number: int, blocks: np.ndarray) -> Batch | None:
        """The rows of a window in their order of this epoch."""
        parts = [self.read(int(block)) for block in blocks if self.counts[block]]
        if not parts:
            return None
        rows = _join(parts)
        del parts
        if not self.shuffle:
            return rows
        count = len(rows.index)
        order = torch.randperm(count, generator=generator(self.seed, "window", epoch, number))
        return take_rows(rows, order)


def _join(parts: Sequence[Batch]) -> Batch:
    """Batches one behind the other."""
    if len(parts) == 1:
        return parts[0]
    joined = iter([torch.cat(found) for found in zip(*map(all_tensors, parts), strict=True)])
    whole: Batch = map_tensors(lambda tensor: next(joined), parts[0])
    return whole
