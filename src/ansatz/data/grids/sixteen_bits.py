"""Colours of 16 bits, which pillow opens as bytes."""

import sys
from typing import Any

import numpy as np

from ansatz.data.grids.image_file import Limits, opened
from ansatz.data.grids.page import Place

_OTHER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_LAYOUTS = ("RGB", "RGBA", "RGBX")


def has_sixteen_bits(image: Any) -> bool:
    """Whether an open image's colours have 16 bits that :func:`read_colours` can read.

    Example:
        >>> from PIL import Image
        >>> from ansatz.data.grids.sixteen_bits import has_sixteen_bits
        >>> has_sixteen_bits(Image.new("RGB", (5, 4)))
        False
    """
    tiles = getattr(image, "tile", None) or []
    return bool(tiles) and all(_swapped(tile) is not None for tile in tiles)


def read_colours(path: Place, limits: Limits) -> np.ndarray:
    """The colours ``(H, W, 3)`` as shares of 65,535, laid on black where they are transparent.

    Pillow's decoders unpack the first byte of each number. Told that its bytes are in the other
    order, they unpack the second one: two readings give all 16 bits, of every compression.

    Example:
        >>> import inspect
        >>> from ansatz.data.grids.sixteen_bits import read_colours
        >>> list(inspect.signature(read_colours).parameters)
        ['path', 'limits']
    """
    with opened(path, limits, anew=True) as image:
        high = np.array(image, dtype=np.uint16)
    with opened(path, limits, anew=True) as image:
        image.tile = [_swapped(tile) for tile in image.tile]  # type: ignore[attr-defined]
        low = np.array(image, dtype=np.uint16)
    shares = (high * 256 + low).astype(np.float32) / np.float32(65535)
    return shares if shares.shape[-1] == 3 else shares[..., :3] * shares[..., 3:]


def _swapped(tile: Any) -> Any | None:
    """The part of a file with its numbers' bytes in the other order; None where it has none."""
    is_tuple = isinstance(tile.args, tuple)
    layout, _, order = str(tile.args[0] if is_tuple else tile.args).partition(";16")
    if layout not in _LAYOUTS or order not in _OTHER:
        return None
    name = f"{layout};16{_OTHER[order]}"
    return tile._replace(args=(name, *tile.args[1:]) if is_tuple else name)
