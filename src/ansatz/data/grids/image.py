"""One image: what its header says, and its pixels."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ansatz.data.grids.image_file import SIDEWAYS, Limits, opened, orientation, upright
from ansatz.data.grids.places import Page, Place
from ansatz.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image


Depth = Literal["8 bit", "16 bit", "float"]
FIRST_PAGE = "read at their first frame or page; for all: --pages images or volume (pages=)"
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # grey of colours, as pillow weighs them
SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N")


class Look(NamedTuple):
    """The header of an image file.

    Args:
        size: (H, W), turned as the EXIF orientation says.
        is_colour: whether there is more than grey in it.
        depth: of its numbers.
        remarks: what will be done to it besides decoding, in words.
    """

    size: tuple[int, int]
    is_colour: bool
    depth: Depth
    remarks: tuple[str, ...] = ()


def look(path: Place, limits: Limits) -> Look:
    """Size and kind of an image, from its header alone."""
    with opened(path, limits) as image:
        (width, height), mode, turn = image.size, image.mode, orientation(image)
        size = (width, height) if turn in SIDEWAYS else (height, width)
        depth: Depth = "8 bit"
        is_grey16 = mode in SIXTEEN or (mode == "I" and image.format in ("PNG", "PPM"))
        if is_grey16 or has_sixteen_bits(image):
            depth = "16 bit"
        elif mode in ("F", "I"):
            depth = "float"
        is_colour = mode not in ("1", "L", "LA", "La", "I", "F", *SIXTEEN)
        remarks = list(_remarks(image, mode, turn))
        if not isinstance(path, Page) and _has_frames(image):
            remarks.append(FIRST_PAGE)
        return Look(size, is_colour, depth, tuple(remarks))


def decode(
    path: Place,
    channels: int,
    depth: Depth,
    limits: Limits,
    size: tuple[int, int] | None = None,
) -> "Image":
    """The image, upright, in pillow's mode L (one channel), RGB (three) or F (one, numbers).

    Args:
        path: the file, or a page of it.
        channels: 1 or 3.
        depth: what the numbers of all images of the set become.
        limits: what the file may claim.
        size: (H, W) that it will be fitted into. A JPEG of more than twice that size is decoded
            at 1/2, 1/4 or 1/8 of its own, never below twice the size, which is much faster.
    """
    with opened(path, limits) as image:
        turn = orientation(image)
        if size is not None and image.format in ("JPEG", "MPO"):
            height, width = size[::-1] if turn in SIDEWAYS else size
            image.draft(image.mode, (2 * width, 2 * height))
        found = upright(_plain(image), turn)
        if found is image and isinstance(path, Page):
            found = found.copy()  # the open file may turn to another page
        if found.mode not in ("F", "I"):
            mode = "L" if channels == 1 else "RGB"
            return found if found.mode == mode else found.convert(mode)
        values = np.asarray(found, dtype=np.float32)
        if depth == "float" and not np.isfinite(values).all():
            raise DataError(f"{path} holds values that are not finite.")
        from PIL import Image

        return Image.fromarray(values if depth == "float" else values / np.float32(65535))


def decode_planes(
    path: Place, channels: int, depth: Depth, limits: Limits, size: tuple[int, int] | None = None
) -> "list[Image]":
    """The image as a plane of numbers, pillow's mode F, for each channel: more than 8 bits."""
    from PIL import Image

    with opened(path, limits) as image:
        is_deep, turn = has_sixteen_bits(image), orientation(image)
    if is_deep:
        values = read_colours(path, limits)
        values = (values @ _LUMA)[..., None] if channels == 1 else values
        return [
            upright(Image.fromarray(np.ascontiguousarray(each)), turn) for each in _bands(values)
        ]
    found = decode(path, channels, depth, limits, size)
    if found.mode == "F":
        return [found] * channels
    values = np.asarray(found, dtype=np.float32) / np.float32(255)
    return [Image.fromarray(np.ascontiguousarray(each)) for each in _bands(values)]


def _bands(values: np.ndarray) -> list[np.ndarray]:
    """The channels of ``(H, W)`` or ``(H, W, C)``."""
    return [values] if values.ndim == 2 else list(np.moveaxis(values, -1, 0))


def _remarks(image: Any, mode: str, turn: int) -> Iterator[str]:
    if turn != 1:
        yield "turned upright as their EXIF tag says"
    if mode in ("LA", "La", "RGBA", "RGBa", "PA") or (mode == "P" and _is_transparent(image)):
        yield "laid on black where they are transparent"
    if mode in ("P", "PA"):
        yield "turned from a palette into colours"
    if mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        yield f"turned from {mode} into RGB"
    is_deep = mode in ("RGB", "RGBA", "LA") and any("16" in str(tile[3]) for tile in image.tile)
    if is_deep and not has_sixteen_bits(image):
        yield "read at 8 of their 16 bits per colour"


def _plain(image: "Image") -> "Image":
    """Mode L, RGB, I or F: no palette, no alpha."""
    image.load()
    mode = image.mode
    if mode in ("La", "RGBa"):
        image = image.convert(mode.upper())
        mode = image.mode
    if mode == "P":
        image = image.convert("RGBA" if _is_transparent(image) else "RGB")
    elif mode == "PA":
        image = image.convert("RGBA")
    if image.mode in ("LA", "RGBA"):
        from PIL.Image import new

        base = new(image.mode, image.size, (0,) * (len(image.mode) - 1) + (255,))
        base.paste(image, mask=image.getchannel("A"))
        return base.convert(image.mode[:-1])
    if image.mode in ("L", "RGB", "F", "I"):
        return image
    if image.mode in SIXTEEN:
        return image.convert("I")
    return image.convert("L" if image.mode == "1" else "RGB")


def _is_transparent(image: "Image") -> bool:
    return "transparency" in image.info


def _has_frames(image: Any) -> bool:
    if image.format != "TIFF":  # whose pages would all be visited to count them
        return bool(getattr(image, "is_animated", False))
    try:
        image.seek(1)
    except EOFError:
        return False
    finally:
        image.seek(0)
    return True


_OTHER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_LAYOUTS = ("RGB", "RGBA", "RGBX")


def has_sixteen_bits(image: Any) -> bool:
    """Tests whether an open image's colours have 16 bits that :func:`read_colours` can read."""
    tiles = getattr(image, "tile", None) or []
    return bool(tiles) and all(_swapped(tile) is not None for tile in tiles)


def read_colours(path: Place, limits: Limits) -> np.ndarray:
    """The colours ``(H, W, 3)`` as shares of 65,535, laid on black where they are transparent.

    Pillow's decoders unpack the first byte of each number. Set to the other
    order, they unpack the second one: two readings give all 16 bits, of every compression.
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
