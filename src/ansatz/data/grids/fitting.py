"""Images of several sizes brought to one: the whole image, its proportions kept, centred."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ansatz.errors import DataError

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
            f"{name} is {_text(size)}, the others are some {_text(target)}: it would be scaled by "
            f"{scale:.3g}. Leave it out, or say the size that is wanted (--size, size=)."
        )


def fitted(image: "Image", target: tuple[int, int], *, nearest: bool = False) -> np.ndarray:
    """An image as an array ``(H, W)`` or ``(H, W, C)`` of the size ``target``, zero around it.

    Bilinear interpolation, wide enough not to alias when it shrinks.

    Args:
        image: pillow's.
        target: (H, W).
        nearest: take the nearest pixel instead: for masks, whose numbers have no mean.
    """
    if (image.height, image.width) == target:
        return np.asarray(image)
    from PIL.Image import Resampling

    top, left, height, width = inner_box((image.height, image.width), target)
    how = Resampling.NEAREST if nearest else Resampling.BILINEAR
    inner = np.asarray(image.resize((width, height), how))
    made = np.zeros((*target, *inner.shape[2:]), inner.dtype)
    made[top : top + height, left : left + width] = inner
    return made


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
