"""Files, pages or tiles that each hold one grid, decoded by a few threads when needed."""

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.image_file import kept_open
from ansatz.data.grids.places import Page, Place, TilePlace

T = TypeVar("T")
R = TypeVar("R")
_MOST = 8  # threads; a disk is not faster for more


def in_order(
    function: Callable[[T], R], items: Iterable[T], *, workers: int | None = None, ahead: int = 32
) -> Iterator[R]:
    """``map(function, items)``, computed by threads up to ``ahead`` items in advance.

    Decoders of images leave Python's lock, so that threads decode side by side. No more than
    ``ahead`` results wait at any time. An error comes out at its item's place; whoever stops
    early leaves no thread behind.
    """
    workers = workers or min(_MOST, os.cpu_count() or 1)
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="ansatz-read") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


_LONGEST = 256  # pages


def in_runs(
    function: Callable[[int], R],
    numbers: Sequence[int],
    places: Sequence[Place | TilePlace],
    *,
    ahead: int,
) -> Iterator[R]:
    """``map(function, numbers)`` by threads, where each number stands for a file or a page.

    Neighbouring pages of one file are one thread's work, which opens the file once.
    """

    def work(run: list[int]) -> list[R]:
        with kept_open():
            return [function(number) for number in run]

    runs = list(_runs(numbers, places, min(_LONGEST, ahead)))
    longest = max(map(len, runs), default=1)
    for found in in_order(work, runs, ahead=max(1, ahead // longest)):
        yield from found


def _runs(
    numbers: Sequence[int], places: Sequence[Place | TilePlace], longest: int
) -> Iterator[list[int]]:
    def key(number: int) -> object:
        place = places[number]
        return place.path if isinstance(place, Page) else number

    for _, group in groupby(numbers, key):
        run = list(group)
        yield from (run[start : start + longest] for start in range(0, len(run), longest))


_MOST_AHEAD = 32
_WAITING_BYTES = 2**28


class GridFiles(NamedTuple):
    """Paths and how to read them.

    Args:
        paths: one file, one page of a file, or one tile of either, per example.
        names: what errors and tables call them.
        read: a path to its ``(C, *size)`` array, always of this shape and type.
        shape: ``(C, *size)``.
        dtype: uint8 or float32.
        digests: ``(N,)`` uint64, hashes of the decoded contents; None if nobody has looked.
        spacing: the width of a voxel along each axis of ``size``; None where it is not known.
    """

    paths: tuple[Place | TilePlace, ...]
    names: tuple[str, ...]
    read: Callable[[Any], np.ndarray]
    shape: tuple[int, ...]
    dtype: torch.dtype
    digests: np.ndarray | None = None
    spacing: tuple[float, ...] | None = None

    def select(self, rows: np.ndarray) -> "GridFiles":
        """Some of the files; nothing is read."""
        return self._replace(
            paths=tuple(self.paths[row] for row in rows),
            names=tuple(self.names[row] for row in rows),
            digests=None if self.digests is None else self.digests[rows],
        )

    @property
    def ahead(self) -> int:
        """How many decoded files may wait: some 256 MB of them, at most 32."""
        size = math.prod(self.shape) * self.dtype.itemsize
        return max(2, min(_MOST_AHEAD, _WAITING_BYTES // size))

    def arrays(self) -> Iterator[np.ndarray]:
        """The decoded files in order, by a few threads."""
        return in_order(self.read, self.paths, ahead=self.ahead)

    def load(self, rows: Sequence[int] | np.ndarray, *, threads: bool = True) -> Tensor:
        """Some files, decoded, ``(n, C, *size)``."""
        made = torch.empty((len(rows), *self.shape), dtype=self.dtype)
        paths = [self.paths[row] for row in rows]
        arrays = in_order(self.read, paths, ahead=self.ahead) if threads else map(self.read, paths)
        kept = made.numpy()
        for place, array in enumerate(arrays):
            kept[place] = array
        return made
