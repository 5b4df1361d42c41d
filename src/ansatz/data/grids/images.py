"""Image files as grids: one size, one number of channels, one kind of numbers."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from ansatz.data.grids.grid_files import GridFiles, in_runs
from ansatz.data.grids.image import Depth, Look, decode, decode_planes, look
from ansatz.data.grids.image_file import Limits, bombs_are_errors
from ansatz.data.grids.places import Place
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_SCALE = 16  # an image that would be enlarged or shrunk more belongs to another set


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The size that images are brought to: that of at least half of them, else the medians."""
    (size, count), *_ = Counter(sizes).most_common(1)
    if 2 * count >= len(sizes):
        return size
    height, width = np.median(np.array(sizes), axis=0)
    return round(float(height)), round(float(width))


def inner_box(size: tuple[int, int], target: tuple[int, int]) -> tuple[int, int, int, int]:
    """(top, left, height, width) of an image of ``size``, scaled to fit, inside ``target``."""
    scale = min(target[0] / size[0], target[1] / size[1])
    height, width = (max(1, min(t, round(s * scale))) for s, t in zip(size, target, strict=True))
    return (target[0] - height) // 2, (target[1] - width) // 2, height, width


def check_scale(name: str, size: tuple[int, int], target: tuple[int, int]) -> None:
    """Refuses an image that would be scaled by more than a factor of 16."""
    scale = min(target[0] / size[0], target[1] / size[1])
    if not 1 / MOST_SCALE <= scale <= MOST_SCALE:
        raise DataError(
            f"{name} is {_size_text(size)}, the others are some {_size_text(target)}: it would be "
            f"scaled by {scale:.3g}. Leave it out, or say the size that is wanted (--size, size=)."
        )


def fitted(image: "Image", target: tuple[int, int]) -> np.ndarray:
    """Fits an image into ``target``: an array ``(H, W)`` or ``(H, W, C)``, zero around it.

    Bilinear interpolation, wide enough not to alias when it shrinks.
    """
    if (image.height, image.width) == target:
        return np.asarray(image)
    from PIL.Image import Resampling

    top, left, height, width = inner_box((image.height, image.width), target)
    inner = np.asarray(image.resize((width, height), Resampling.BILINEAR))
    made = np.zeros((*target, *inner.shape[2:]), inner.dtype)
    made[top : top + height, left : left + width] = inner
    return made


def _size_text(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


class Kind(NamedTuple):
    """The size, channels and depth that all images of a set get.

    Args:
        size: (H, W).
        channels: 1 or 3.
        depth: ``"8 bit"`` for bytes, ``"16 bit"`` for shares of the largest value in [0, 1],
            ``"float"`` for numbers as they are.
    """

    size: tuple[int, int]
    channels: int
    depth: Depth


def look_at(
    paths: Sequence[Place], limits: Limits, damaged: dict[int, DataError]
) -> list[Look | None]:
    """Reads the files' headers; puts files that cannot be read into ``damaged``."""

    def attempt(place: int) -> Look | DataError:
        try:
            return look(paths[place], limits)
        except DataError as error:
            return error

    found: list[Look | None] = []
    with bombs_are_errors():
        for place, each in enumerate(in_runs(attempt, range(len(paths)), paths, ahead=256)):
            if isinstance(each, DataError):
                damaged[place] = each
            found.append(each if isinstance(each, Look) else None)
    return found


def choose_kind(
    looks: Sequence[Look],
    names: Sequence[str],
    *,
    size: tuple[int, int] | None,
    channels: int | None,
    notes: list[str],
    shares: bool | None = None,
) -> Kind:
    """One size, number of channels and depth for all, said in ``notes``.

    Grey images become colour where any image is. Bytes beside 16-bit images become shares of
    255, and so they do where ``shares`` are asked for; where they are not wanted (False), colours
    of 16 bits are read at 8. Images of free numbers do not mix with either.
    """
    target = size or common_size([each.size for each in looks])
    if size is None:
        for each, name in zip(looks, names, strict=True):
            check_scale(name, each.size, target)
    depth = _one_depth(looks, names)
    colours = sum(each.is_colour for each in looks)
    if channels is None:
        channels = 3 if colours else 1
    if channels not in (1, 3):
        raise UsageError(f"images are read with 1 or 3 channels, asked for {channels}.")
    kind = Kind(target, channels, depth)
    if depth == "16 bit" and shares is False and _are_colours(looks):
        kind = kind._replace(depth="8 bit")
    notes += _notes(looks, names, kind, colours)
    return kind._replace(depth="16 bit") if depth == "8 bit" and shares else kind


def read_image(path: Place, kind: Kind, limits: Limits) -> np.ndarray:
    """Reads one image as ``(C, H, W)`` of a set's kind: uint8, or float32 beyond 8 bits."""
    if kind.depth != "8 bit":
        planes = decode_planes(path, kind.channels, kind.depth, limits, kind.size)
        return np.stack([fitted(plane, kind.size) for plane in planes])
    array = fitted(decode(path, kind.channels, kind.depth, limits, kind.size), kind.size)
    array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return np.ascontiguousarray(array)


def image_files(
    paths: Sequence[Place], names: Sequence[str], kind: Kind, limits: Limits
) -> GridFiles:
    """Image files of one kind; nothing is decoded yet."""
    dtype = torch.uint8 if kind.depth == "8 bit" else torch.float32
    read = partial(read_image, kind=kind, limits=limits)
    return GridFiles(tuple(paths), tuple(names), read, (kind.channels, *kind.size), dtype)


def _one_depth(looks: Sequence[Look], names: Sequence[str]) -> Depth:
    depths = {each.depth for each in looks}
    if "float" in depths and len(depths) > 1:
        where = names[next(k for k, each in enumerate(looks) if each.depth == "float")]
        raise DataError(f"{where} holds free numbers, beside images of 8 or 16 bits.")
    if "float" in depths:
        return "float"
    return "16 bit" if "16 bit" in depths else "8 bit"


def _are_colours(looks: Sequence[Look]) -> bool:
    """Whether all images of 16 bits have colours: cameras fill the range, which greys need not."""
    return all(each.is_colour for each in looks if each.depth == "16 bit")


def _notes(looks: Sequence[Look], names: Sequence[str], kind: Kind, colours: int) -> list[str]:
    notes, count = [], len(looks)
    other = sum(each.size != kind.size for each in looks)
    if other:
        height, width = kind.size
        notes.append(
            f"{other} of {count} images have another size than {height} x {width}: they were "
            "scaled to fit (bilinear, antialiased, proportions kept, black around them)."
        )
    if kind.channels == 3 and 0 < colours < count:
        notes.append(f"{count - colours} of {count} images are grey: they were read as colour.")
    if kind.channels == 1 and colours:
        notes.append(f"{colours} of {count} images have colours: they were read as grey.")
    if kind.depth == "16 bit":
        notes.append("images of 16 bits were read as shares of 65,535, in [0, 1].")
    deep = sum(each.depth == "16 bit" for each in looks)
    if kind.depth == "16 bit" and deep < count:
        first = next(k for k, each in enumerate(looks) if each.depth == "16 bit")
        notes.append(
            f"{deep} of {count} images have 16 bits ({names[first]}): the others were read as "
            "shares of 255."
        )
    if kind.depth == "8 bit" and deep:
        notes.append(f"{deep} of {count} images have 16 bits per colour: they were read at 8.")
    if kind.depth == "float":
        notes.append("the images hold free numbers: they were read as they are.")
    for remark, times in sorted(Counter(r for each in looks for r in each.remarks).items()):
        notes.append(f"{times} of {count} images were {remark}.")
    return notes
