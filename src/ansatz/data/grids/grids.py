"""The container of images, signals and volumes."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.layout import Channels, as_values, channels_first
from ansatz.data.keys import mix
from ansatz.errors import UsageError
from ansatz.seeds import derive
from ansatz.spec import InputSpec

Rows = slice | Sequence[int] | Sequence[bool] | np.ndarray | Tensor


class Grids:
    """N examples of one shape ``(C, *size)``: a tensor in memory, or files that are decoded late.

    A pixel is a number of type uint8, 0..255 as cameras count, or float32.

    Args:
        store: a tensor ``(N, C, *size)`` of uint8 or float32, or :class:`GridFiles`.
        names: what the examples are called, e.g. their files; None if they have no names.
        spacing: the width of a voxel along each axis of ``size``; None where it is not known.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids import Grids
        >>> grids = Grids.of(np.zeros((5, 8, 9, 3), np.uint8))
        >>> len(grids), grids.shape, grids[[0, 2]].load().shape
        (5, (3, 8, 9), torch.Size([2, 3, 8, 9]))
    """

    def __init__(
        self,
        store: Tensor | GridFiles,
        names: Sequence[str] | None = None,
        *,
        spacing: tuple[float, ...] | None = None,
    ) -> None:
        self._store = store
        self.spacing = store.spacing if isinstance(store, GridFiles) else spacing
        self._names = tuple(names) if names is not None else None

    @classmethod
    def of(cls, values: "Grids | object", channels: Channels = "auto") -> "Grids":
        """An array or tensor of examples; :func:`~.layout.channels_first` finds the channels."""
        if isinstance(values, Grids):
            return values
        return Grids(channels_first(as_values(values), channels).contiguous())

    def __len__(self) -> int:
        return len(self._store.paths if isinstance(self._store, GridFiles) else self._store)

    def __getitem__(self, rows: Rows) -> Self:
        """The examples at ``rows``: a slice, numbers or truth values."""
        chosen = self._chosen(rows)
        chosen.spacing = self.spacing
        return chosen

    def _chosen(self, rows: Rows) -> Self:
        if isinstance(rows, slice) and isinstance(self._store, Tensor) and (rows.step or 1) > 0:
            return type(self)(self._store[rows], None if self._names is None else self._names[rows])
        places = row_numbers(rows, len(self))
        if isinstance(self._store, GridFiles):
            return type(self)(self._store.select(places))
        names = None if self._names is None else [self._names[place] for place in places]
        return type(self)(self._store[torch.from_numpy(places)], names)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(C, *size)`` of one example."""
        if isinstance(self._store, GridFiles):
            return self._store.shape
        return tuple(self._store.shape[1:])

    @property
    def spec(self) -> InputSpec:
        """The shape of an example, for a network factory."""
        return InputSpec.grid(*self.shape)

    @property
    def has_features(self) -> bool:
        """Pixels are always there to predict from."""
        return True

    def describe(self) -> dict[str, Any]:
        """Counts the numbers of an example; pixels have no names."""
        return {"names": None, "count": math.prod(self.shape), "columns": None}

    @property
    def dtype(self) -> torch.dtype:
        """torch.uint8 or torch.float32."""
        return self._store.dtype

    @property
    def is_in_memory(self) -> bool:
        """False where files are decoded on demand."""
        return isinstance(self._store, Tensor)

    @property
    def nbytes(self) -> int:
        """Bytes of all examples when decoded."""
        return len(self) * math.prod(self.shape) * self.dtype.itemsize

    @property
    def names(self) -> tuple[str, ...] | None:
        """The files' names; None for plain arrays."""
        return self._store.names if isinstance(self._store, GridFiles) else self._names

    def load(self, rows: Rows | None = None, *, threads: bool = True) -> Tensor:
        """``(n, C, *size)`` decoded; all examples where ``rows`` is None.

        Args:
            rows: which examples.
            threads: decode files by several threads.
        """
        if isinstance(self._store, Tensor):
            return self._store if rows is None else self[rows]._tensor()
        places = np.arange(len(self)) if rows is None else row_numbers(rows, len(self))
        return self._store.load(places, threads=threads)

    def to_memory(self) -> Self:
        """The same examples as one tensor."""
        if self.is_in_memory:
            return self
        made = type(self)(self._stored(), self.names)
        made.spacing = self.spacing
        return made

    def content_keys(self, seed: int = 0) -> np.ndarray:
        """A 64-bit hash of each example's decoded pixels, ``(N,)`` uint64.

        Equal images have equal keys, whatever file or format holds them, and in memory as in
        files; other seeds give unrelated keys.
        """
        if isinstance(self._store, GridFiles):
            found = self._store.digests
            digests = (
                np.array([digest(array) for array in self._store.arrays()], np.uint64)
                if found is None
                else found
            )
        else:
            rows = self._store.contiguous().numpy()
            digests = np.array([digest(row) for row in rows], np.uint64)
        return mix(digests ^ np.uint64(derive(seed, "grid")))

    def _tensor(self) -> Tensor:
        assert isinstance(self._store, Tensor)
        return self._store

    def _stored(self) -> Tensor:
        """All examples as they are kept."""
        return Grids.load(self)

    def __repr__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        where = "in memory" if self.is_in_memory else "in files"
        return f"{type(self).__name__}({len(self)} of shape {self.shape}, {kind}, {where})"


def row_numbers(rows: Rows, count: int) -> np.ndarray:
    """Row numbers from a slice, numbers (negative ones count from the end) or truth values."""
    if isinstance(rows, slice):
        return np.ascontiguousarray(np.arange(count)[rows])
    found = rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "biu"):
        raise UsageError(f"rows must be a slice, row numbers or truth values, got {rows!r}.")
    if found.dtype.kind == "b":
        if len(found) != count:
            raise UsageError(f"{len(found)} truth values for {count} examples.")
        return np.flatnonzero(found)
    found = found.astype(np.int64)
    if found.size and (found.min() < -count or found.max() >= count):
        odd = found.max() if found.max() >= count else found.min()
        raise UsageError(f"row {odd} of {count} examples does not exist.")
    return np.where(found < 0, found + count, found)


def digest(array: np.ndarray) -> int:
    """A 64-bit hash of an array's numbers and shape; -0 is 0."""
    if array.dtype.kind == "f":
        array = array + np.float32(0)  # -0 + 0 = 0
    made = hashlib.blake2b(f"{array.dtype.kind}{array.shape}".encode(), digest_size=8)
    made.update(np.ascontiguousarray(array).data)
    return int.from_bytes(made.digest(), "little")
