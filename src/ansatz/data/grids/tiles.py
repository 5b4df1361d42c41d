"""Cuts one labelled scene into several examples along its longest axis."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids, digest
from ansatz.data.grids.masks import KEPT_AS, Masks
from ansatz.data.grids.places import TilePlace
from ansatz.errors import UsageError

SHORTEST = 8  # pixels along a tile: of fewer, most have a border for a neighbour
_AXES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}


class TileCuts(NamedTuple):
    r"""Cuts a grid into N blocks of equal length along an axis of n pixels.

    .. math:: b_k = \lfloor k n / N \rfloor, \qquad L = \lceil n / N \rceil, \qquad k = 0, ..., N

    Block k holds the pixels :math:`b_k, ..., b_{k+1} - 1`: every pixel is in exactly one. Where N
    does not divide n, some blocks have L - 1 of them; their last pixel is mirrored to fill the
    block up to L, and the mirrored pixel has no label.
    """

    tiles: int
    axis: int
    pixels: int

    @property
    def length(self) -> int:
        """L."""
        return -(-self.pixels // self.tiles)

    def block(self, values: np.ndarray, number: int, fill: int | None = None) -> np.ndarray:
        """The block k = ``number`` of ``(..., *size)``; ``fill`` in place of mirrored pixels."""
        begin, end = (k * self.pixels // self.tiles for k in (number, number + 1))
        places = np.arange(begin, begin + self.length)
        made = values.take(places.clip(max=end - 1), self.axis)
        if fill is not None:
            made.swapaxes(self.axis, -1)[..., places >= end] = fill
        return made


def cut_tiles(table: GridTable, tiles: int) -> GridTable:
    """Cuts every example with its mask into tiles along its longest axis.

    One scene with its mask, or one volume with a few annotated slices, cannot be split;
    its tiles can. :class:`TileCuts` defines which pixels a tile holds. Tiles without any label
    are left out, with a note.

    Shapes:
        - grids: ``(B, C, *size)`` to ``(B N, C, *tile)``, the tiles of an example together;
          ``tile`` is ``size`` with ``ceil(n / N)`` in place of its largest, n.
        - masks: ``(B, *size)`` to ``(B N, *tile)``.
    """
    assert table.masks is not None
    size = table.masks.shape
    pixels = max(size)
    place = size.index(pixels)
    _require_length(table.origin, pixels, tiles)
    cut = TileCuts(tiles, place - len(size), pixels)
    frame = table.frame.iloc[np.repeat(np.arange(len(table)), tiles)].reset_index(drop=True)
    if "tile" not in frame.columns:
        frame.insert(0, "tile", np.tile(np.arange(1, tiles + 1), len(table)))
    names = _names(table.grids, tiles)
    grids = Grids(_cut(table.grids, cut), names, spacing=table.grids.spacing)
    masks = Masks(_cut(table.masks, cut, KEPT_AS), names, table.masks.classes)
    axis = f"its longest axis, the {_AXES[len(size)][place]} of {pixels} pixels"
    notes = [
        *table.notes,
        f"each example was cut into {tiles} tiles of {' x '.join(map(str, masks.shape))} along "
        f"{axis}. Neighbouring tiles share a border: a test among them is of the same scene.",
    ]
    made = GridTable(table.origin, frame, grids, masks, notes, table.target)
    kept = np.array([(each != KEPT_AS).any() for each in _blocks(table.masks, cut, KEPT_AS)])
    if kept.all():
        return made
    empty = [f"tile {1 + k % tiles}" if names is None else names[k] for k in np.flatnonzero(~kept)]
    few = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
    notes.append(f"tiles without a labelled pixel, left out: {len(empty)} ({few}).")
    return made.rows(np.flatnonzero(kept))


def _require_length(origin: str, pixels: int, tiles: int) -> None:
    most = pixels // SHORTEST
    if most < 2:
        raise UsageError(
            f"{origin}: the longest axis has {pixels} pixels, too few for two tiles of {SHORTEST}: "
            "leave out --tiles (tiles=)."
        )
    if tiles > most:
        raise UsageError(
            f"{origin}: {tiles} tiles of {pixels} pixels would be shorter than {SHORTEST}; at "
            f"most: --tiles {most} (tiles={most})."
        )


def _names(grids: Grids, tiles: int) -> list[str] | None:
    if grids.names is None:
        return None
    return [f"{name} tile {k + 1}" for name in grids.names for k in range(tiles)]


def _cut(grids: Grids, cut: TileCuts, fill: int | None = None) -> Tensor | GridFiles:
    """Cuts the store of grids or masks into tiles, in memory or in files as it was."""
    store = grids._store
    block = list(store.shape if isinstance(store, GridFiles) else store.shape[1:])
    block[cut.axis] = cut.length
    found = _blocks(grids, cut, fill)
    if isinstance(store, Tensor):
        made = torch.empty((len(store) * cut.tiles, *block), dtype=store.dtype)
        for kept, each in zip(made.numpy(), found, strict=True):
            kept[:] = each
        return made
    return GridFiles(
        tuple(TilePlace(path, k) for path in store.paths for k in range(cut.tiles)),
        tuple(_names(grids, cut.tiles) or ()),
        partial(_read, read=store.read, cut=cut, fill=fill),
        tuple(block),
        store.dtype,
        np.array([digest(each) for each in found], np.uint64),
    )


def _blocks(grids: Grids, cut: TileCuts, fill: int | None) -> Iterator[np.ndarray]:
    """All tiles in order, ``(C, *tile)`` each; a file is decoded once."""
    store = grids._store
    arrays = store.numpy() if isinstance(store, Tensor) else store.arrays()
    return (cut.block(each, k, fill) for each in arrays for k in range(cut.tiles))


def _read(
    tile: TilePlace, read: Callable[[Any], np.ndarray], cut: TileCuts, fill: int | None
) -> np.ndarray:
    return cut.block(read(tile.place), tile.number, fill)
