"""Files, pages or tiles that each hold one grid, decoded when they are needed."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.page import Place
from ansatz.data.grids.pool import in_order
from ansatz.data.grids.tile import Tile

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
    """

    paths: tuple[Place | Tile, ...]
    names: tuple[str, ...]
    read: Callable[[Any], np.ndarray]
    shape: tuple[int, ...]
    dtype: torch.dtype
    digests: np.ndarray | None = None

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
