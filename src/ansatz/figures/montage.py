"""Pictures side by side as one image, which a drawing embeds without blurring its pixels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ansatz.figures.style import figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pictures = NDArray[np.uint8]
WIDTH = 6.6  # inches of a drawing
LINE = 0.14  # inches of a line of small text
SMALL = 7.5  # points
LETTER = 0.063  # inches of a letter of it, on average
# Those of the style.
BLUE, VERMILION, GREEN, PURPLE = (32, 128, 192), (213, 94, 0), (0, 158, 115), (184, 106, 154)


def pictures(images: NDArray[Any], side: int = 96) -> Pictures:
    """Images of any channels as pictures in red, green and blue, no larger than ``side``.

    One channel is grey, three are colours, a fourth (opacity) is left out; of other numbers the
    mean is shown. Numbers that are not bytes are stretched from their least to their largest over
    all images. A larger picture is averaged down.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - returns: ``(N, h, w, 3)`` bytes.
    """
    given = np.asarray(images)
    given = given[..., None] if given.ndim == 3 else given
    if given.ndim != 4:
        raise ValueError(f"pictures need images (N, H, W, C), got {given.shape}.")
    values = given if given.dtype == np.uint8 else _stretched(given)
    channels = values.shape[-1]
    if channels in (3, 4):
        shown = values[..., :3]
    else:
        grey = values.mean(-1, keepdims=True) if channels > 1 else values
        shown = np.broadcast_to(grey, (*values.shape[:3], 3))
    return _shrunk(np.ascontiguousarray(shown, dtype=np.float32), side)


def _stretched(images: NDArray[Any]) -> NDArray[Any]:
    values = np.nan_to_num(images.astype(np.float32))
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    return (values - low) * (255 / max(high - low, 1e-30))


def _shrunk(values: NDArray[np.float32], side: int) -> Pictures:
    height, width = values.shape[1:3]
    factor = max(height, width) / side
    if factor > 1 and len(values):
        size = [max(round(height / factor), 1), max(round(width / factor), 1)]
        moved = torch.from_numpy(values).permute(0, 3, 1, 2)
        values = functional.interpolate(moved, size, mode="area").permute(0, 2, 3, 1).numpy()
    return coarse(values)


def coarse(values: NDArray[np.float32], bits: int = 6) -> Pictures:
    """Bytes with few tones of each colour: 64 nobody misses, and they take half the room."""
    top = 2**bits - 1
    levels = (np.clip(values, 0, 255) * (top / 255)).round()
    poor: NDArray[np.uint8] = (levels * (255 / top)).round().astype(np.uint8)
    return poor


def blended(ground: Pictures, heat: NDArray[Any], *, signed: bool = True) -> Pictures:
    """Pictures, faded, under a heat that is blue where it is positive and vermilion below zero.

    Each heat has its own scale: its largest magnitude but one in a hundred is opaque.

    Shapes:
        - ground: ``(N, H, W, 3)``.
        - heat: ``(N, H, W)``.
    """
    faded = 255 - 0.28 * (255 - ground.astype(np.float32).mean(-1, keepdims=True))
    values, strength = np.asarray(heat), strengths(heat)[..., None]
    positive, negative = (np.array(tint, np.float32) for tint in (BLUE, VERMILION))
    tint = np.where((values < 0)[..., None] & signed, negative, positive)
    found = faded * (1 - strength) + tint * strength
    return coarse(found)


def strengths(heat: NDArray[Any]) -> NDArray[np.float32]:
    """How opaque a heat is, from 0 to 1: its largest magnitude but one in a hundred is 1.

    Shapes:
        - heat: ``(N, *size)``, and so the result.
    """
    size = np.abs(np.nan_to_num(np.asarray(heat, dtype=np.float32)))
    axes = tuple(range(1, size.ndim))
    top = np.quantile(size, 0.99, axis=axes, keepdims=True)
    top = np.where(top > 0, top, size.max(axes, keepdims=True))
    found: NDArray[np.float32] = np.clip(size / np.where(top > 0, top, 1), 0, 1)
    return found


class Montage(NamedTuple):
    """Pictures in rows and columns, with room for text above each, as one image."""

    image: Pictures  # ``(height, width, 4)`` bytes, transparent between pictures
    rows: int  # of pictures
    columns: int  # of pictures
    slot: tuple[int, int]  # (height, width) in pixels of a picture with the room around it
    size: tuple[int, int]  # (height, width) of a picture
    start: int = 0  # pixels above the first row

    def corner(self, i: int) -> tuple[int, int]:
        """(left, top) of picture ``i``, in pixels."""
        row, column = divmod(i, self.columns)
        above = self.slot[0] - self.size[0] - (self.slot[1] - self.size[1])
        return column * self.slot[1], self.start + row * self.slot[0] + above


def montage(
    shown: Pictures, *, columns: int, text: float = 0.0, head: float = 0.0, gap: float = 0.06
) -> Montage:
    """Puts pictures into rows of ``columns`` each.

    Shapes:
        - shown: ``(N, H, W, 3)``.
    """
    height, width = shown.shape[1:3]
    between, above = max(round(gap * width), 1), round(text * width)
    start = round(head * width)
    slot = (height + between + above, width + between)
    rows = -(-len(shown) // columns)
    image = np.zeros((start + rows * slot[0], columns * slot[1], 4), np.uint8)
    for i, picture in enumerate(shown):
        top, left = start + (i // columns) * slot[0] + above, (i % columns) * slot[1]
        image[top : top + height, left : left + width, :3] = picture
        image[top : top + height, left : left + width, 3] = 255
    return Montage(image, rows, columns, slot, (height, width), start)


def strip(
    shown: Pictures,
    captions: Sequence[str],
    *,
    columns: int,
    lines: int = 1,
    side: float | None = None,
    labels: Sequence[str] = (),
    heads: Sequence[str] = (),
) -> str:
    """Pictures in rows with a caption above each, as a drawing for a page.

    Returns:
        The ``<svg>`` element.
    """
    # Small pictures are enlarged by whole numbers, so that the room around is finer than pixels.
    factor = -(-24 // max(shown.shape[2], 1))
    shown = shown.repeat(factor, axis=1).repeat(factor, axis=2)
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    margin = min(max(1.1, 0.15 + longest * LETTER), 2.2) if labels else 0.0
    gap = 0.06 if side is None or side > 0.5 else 0.15  # tiny pictures would run together
    most = (WIDTH - margin) / columns / (1 + gap)
    width = most if side is None else min(side, most)
    text, head = ((n * LINE + 0.05) / width if n else 0.0 for n in (lines, 1 if heads else 0))
    found = montage(shown, columns=columns, text=text, head=head, gap=gap)
    scale = width / found.size[1]  # inches per pixel
    across, down = (found.image.shape[axis] * scale for axis in (1, 0))
    with figure(margin + across, down) as paper:
        axes = paper.add_axes((margin / (margin + across), 0, across / (margin + across), 1))
        _place(axes, found)
        for i, caption in enumerate([*heads] if heads else captions):
            left, top = found.corner(i)
            axes.text(left, top - 0.02 / scale, caption, fontsize=SMALL, va="bottom")
        for row, label in enumerate(labels):
            middle = found.corner(row * columns)[1] + found.size[0] / 2
            axes.text(-0.08 / scale, middle, label, ha="right", va="center", fontsize=SMALL + 0.5)
        return to_svg(paper)


def _place(axes: "Axes", found: Montage) -> None:
    height, width = found.image.shape[:2]
    axes.imshow(found.image, interpolation="none", extent=(0, width, height, 0), aspect="auto")
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
