"""Moves of whole pixels, none of them computed: flips, quarter turns, shifts, crops."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from ansatz.data.augmentation.augmentation import (
    Augmentation,
    Padding,
    Pair,
    chances,
    check_between,
    check_padding,
    check_whole,
    per_example,
)
from ansatz.data.batch import UNLABELLED
from ansatz.errors import UsageError


def padded_index(count: int, margin: int, padding: Padding) -> Tensor:
    """Indexes the pixels at the places -margin ... count + margin - 1 of an axis.

    ``reflect`` mirrors at the edge of the outermost pixel (b a | a b c | c b), as often as needed.
    """
    places = torch.arange(-margin, count + margin)
    if padding == "reflect":
        places = places.remainder(2 * count)
        return torch.minimum(places, 2 * count - 1 - places)
    return places.clamp(0, count - 1)


def padded(x: Tensor, margins: Sequence[int], padding: Padding, fill: int = 0) -> Tensor:
    """Pads x before and after each of its last axes."""
    if not any(margins):
        return x
    widths = [width for margin in reversed(margins) for width in (margin, margin)]
    wide = torch.nn.functional.pad(x, widths, value=fill)
    if padding == "zeros":
        return wide
    for axis, margin in enumerate(margins, start=x.ndim - len(margins)):
        count = x.shape[axis]
        places = padded_index(count, margin, padding).to(x.device) + margin
        for start in (0, margin + count):  # only the margins are gathered: the rest is in place
            found = wide.index_select(axis, places[start : start + margin])
            wide.narrow(axis, start, margin).copy_(found)
    return wide


def take_windows(x: Tensor, starts: Tensor, size: Sequence[int]) -> Tensor:
    r"""One window per example, each from its own start.

    .. math:: y_{b,c,i} = x_{b,c,s_b + i}, \qquad 0 \le i < \text{size}

    Whole rows are copied: the rows of all windows are found by their first pixel in memory.

    Args:
        x: the grids.
        starts: the first pixel :math:`s_b` of each window along each axis.
        size: pixels of a window along each axis.

    Shapes:
        - x: ``(B, C, *outer)``, any dtype.
        - starts: ``(B, n)`` whole numbers with ``0 <= starts <= outer - size``.
        - returns: ``(B, C, *size)``.
    """
    x, width = x.contiguous(), size[-1]
    outer, (batch, channels) = x.shape[2:], x.shape[:2]
    strides = [math.prod(outer[axis + 1 :]) for axis in range(len(outer))]
    whole = math.prod(outer)
    # (B, C): where each channel of each example begins, and its window in it
    first = torch.arange(batch * channels, device=x.device).view(batch, channels) * whole
    places = first + (starts * torch.tensor(strides, device=x.device)).sum(1, keepdim=True)
    for axis, stride in enumerate(strides[:-1]):
        places = places.unsqueeze(-1) + torch.arange(size[axis], device=x.device) * stride
    rows = x.as_strided((x.numel() - width + 1, width), (1, 1))  # a row from every pixel on
    return rows.index_select(0, places.flatten()).view(batch, channels, *size)


def random_windows(
    x: Tensor,
    masks: Tensor | None,
    starts: Tensor,
    size: Sequence[int],
    margins: Sequence[int],
    padding: Padding,
) -> Pair:
    """The windows of padded grids and of their masks, which are unknown outside the frame."""
    y = take_windows(padded(x, margins, padding), starts, size)
    if masks is None:
        return y, None
    wide = padded(masks.unsqueeze(1), margins, padding, fill=UNLABELLED)
    return y, take_windows(wide, starts, size).squeeze(1)


@dataclass(frozen=True)
class Flip(Augmentation):
    r"""Mirror images: each axis of a grid reversed with probability p.

    .. math:: y_i = x_{N - 1 - i} \text{ with probability } p, \quad x_i \text{ otherwise}

    Right where left and right mean the same (photographs, cells under a microscope), wrong for
    digits and letters. Flipping twice gives the image back, bit for bit.

    Args:
        axes: which axes of the grid, counted from the last one: -1 is left and right, -2 top and
            bottom, -3 front and back. Each is drawn on its own.
        p: probability.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Flip
        >>> Flip(p=1.0)(torch.arange(3.0).view(1, 1, 3))
        tensor([[[2., 1., 0.]]])

    References:
        Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 4.1.
    """

    axes: Sequence[int] = (-1,)
    _: KW_ONLY
    p: float = 0.5

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))  # from a JSON list, too
        if not set(self.axes) <= {-1, -2, -3} or len(set(self.axes)) < len(self.axes):
            raise UsageError(f"axes of Flip must be some of -1, -2, -3, got {self.axes!r:.40}.")
        check_between("p of Flip", self.p, 0, 1)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Flips what the draw says."""
        if min(self.axes, default=-1) < 2 - x.ndim:
            raise UsageError(f"Flip along axis {min(self.axes)} needs a grid that has it.")
        flipped = chances(x, self.p, len(self.axes), generator=generator)
        for axis, chosen in zip(self.axes, flipped.unbind(1), strict=True):
            x = torch.where(per_example(chosen, x), x.flip(axis), x)
            if masks is not None:
                masks = torch.where(per_example(chosen, masks), masks.flip(axis), masks)
        return x, masks


@dataclass(frozen=True)
class Rotate90(Augmentation):
    r"""Quarter turns of the last two axes: 0, 90, 180 or 270 degrees, each as likely.

    .. math:: y_{i,j} = x_{j,\, N-1-i} \text{ for one of them}

    Pixels move and none is computed: four times the same turn is the identity, bit for bit. Right
    where no direction is special (cells under a microscope, pictures from above). Together with
    :class:`Flip` these are the eight symmetries of a square.

    Shapes:
        - x: ``(B, C, N, N)`` or ``(B, C, D, N, N)``, any dtype; masks: without C, or None; returns:
          the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Rotate90
        >>> x = torch.rand(3, 1, 4, 4)
        >>> y = Rotate90()(x, None, torch.Generator().manual_seed(0))
        >>> any(torch.equal(y[0], x[0].rot90(k, (-2, -1))) for k in range(4))
        True

    References:
        Ronneberger, Fischer and Brox (2015), U-Net, section 3.1. https://arxiv.org/abs/1505.04597
    """

    moves_only: ClassVar[bool] = True
    grid_axes: ClassVar[tuple[int, ...]] = (2, 3)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Turns each example by its own draw."""
        if x.shape[-1] != x.shape[-2]:
            raise UsageError(f"Rotate90 needs square grids, got {tuple(x.shape[-2:])}. Try Rotate.")
        turns = torch.randint(4, (len(x),), generator=generator).to(x.device)
        return rotate_quarters(x, turns), None if masks is None else rotate_quarters(masks, turns)


def rotate_quarters(x: Tensor, turns: Tensor) -> Tensor:
    """Each example by its number of quarter turns, against the clock."""
    y = x.clone()
    for turn in (1, 2, 3):
        rows = (turns == turn).nonzero().squeeze(1)
        y[rows] = x[rows].rot90(turn, (-2, -1))
    return y


@dataclass(frozen=True)
class Shift(Augmentation):
    r"""Shifts by whole pixels, up to k along each axis.

    .. math:: y_i = x_{i - s}, \qquad s \sim \mathrm{Uniform}\{-k, \dots, k\}

    No value is computed, so bytes stay bytes and nothing is blurred.

    Args:
        pixels: :math:`k`.
        padding: what comes in from outside: ``"reflect"`` (mirrored at the edge), ``"border"``
            (the outermost pixel) or ``"zeros"``, whose labels are -1, unknown.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Shift
        >>> y = Shift(1, padding="zeros")(torch.ones(100, 1, 4))
        >>> sorted(set(y.sum((1, 2)).tolist()))
        [3.0, 4.0]

    References:
        LeCun et al. (1998), Gradient-based learning applied to document recognition, section III.
    """

    pixels: int = 2
    _: KW_ONLY
    padding: Padding = "reflect"

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole("pixels of Shift", self.pixels, 0)
        check_padding("Shift", self.padding)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Shifts each example by its own draw."""
        axes = x.ndim - 2
        starts = torch.randint(2 * self.pixels + 1, (len(x), axes), generator=generator).to(
            x.device
        )
        margins = (self.pixels,) * axes
        return random_windows(x, masks, starts, x.shape[2:], margins, self.padding)


@dataclass(frozen=True)
class Crop(Augmentation):
    r"""A window at a random place of the grid, which may be padded before.

    .. math:: y_i = x_{s + i}, \quad s \sim \mathrm{Uniform}\{-m, \dots, N + m - n\}

    with N pixels and a window of n pixels along an axis. A margin of 4 and windows of the image's
    own size are the usual augmentation of 32 x 32 photographs; windows smaller than the image are
    AlexNet's 224 of 256.

    Args:
        size: pixels of the window, :math:`n`: one number for all axes, or one each. None keeps the
            size of the grid, with a margin.
        margin: pixels of padding before and after, :math:`m`.
        padding: ``"reflect"`` (mirrored at the edge), ``"border"`` (the outermost pixel) or
            ``"zeros"``, whose labels are -1, unknown.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: without C, or None.
        - returns: ``(B, C, *n)`` and ``(B, *n)``.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Crop
        >>> x = torch.rand(2, 3, 32, 32)
        >>> Crop(24)(x).shape, Crop(margin=4)(x).shape
        (torch.Size([2, 3, 24, 24]), torch.Size([2, 3, 32, 32]))

    References:
        Krizhevsky, Sutskever and Hinton (2012), section 4.1; He et al. (2016), Deep residual
        learning for image recognition, section 4.2. https://arxiv.org/abs/1512.03385
    """

    size: int | Sequence[int] | None = None
    _: KW_ONLY
    margin: int = 0
    padding: Padding = "reflect"

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size is not None and not isinstance(self.size, int):
            object.__setattr__(self, "size", tuple(self.size))
        for pixels in self.size if isinstance(self.size, tuple) else (self.size or 1,):
            check_whole("size of Crop", pixels, 1)
        check_whole("margin of Crop", self.margin, 0)
        check_padding("Crop", self.padding)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """A window of each example, by its own draw."""
        size = self._size(x)
        last = torch.tensor(x.shape[2:]) + 2 * self.margin - torch.tensor(size)
        if (last < 0).any():
            raise UsageError(
                f"Crop of {size} pixels with margin {self.margin} does not fit "
                f"a grid of {tuple(x.shape[2:])}."
            )
        # floor(u (last + 1)) is uniform on 0 ... last, for another last on each axis
        drawn = torch.rand(len(x), len(size), generator=generator, dtype=torch.float64)
        starts = (drawn * (last + 1)).long().to(x.device)
        margins = (self.margin,) * len(size)
        return random_windows(x, masks, starts, size, margins, self.padding)

    def _size(self, x: Tensor) -> tuple[int, ...]:
        if self.size is None:
            return tuple(x.shape[2:])
        size = (self.size,) * (x.ndim - 2) if isinstance(self.size, int) else tuple(self.size)
        if len(size) != x.ndim - 2:
            raise UsageError(f"size of Crop has {len(size)} axes, the grid has {x.ndim - 2}.")
        return size
