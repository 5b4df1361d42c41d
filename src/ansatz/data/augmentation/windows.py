"""Windows of grids, each at a place of its own: what shifts and crops are made of."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.data.augmentation.limits import Padding
from ansatz.data.unlabelled import UNLABELLED


def padded_index(count: int, margin: int, padding: Padding) -> Tensor:
    """Which pixel of an axis stands at the places -margin ... count + margin - 1.

    ``reflect`` mirrors at the edge of the outermost pixel (b a | a b c | c b), as often as needed.

    Args:
        count: pixels of the axis.
        margin: pixels before and after.
        padding: ``"reflect"``; else the outermost pixel is repeated.
    """
    places = torch.arange(-margin, count + margin)
    if padding == "reflect":
        places = places.remainder(2 * count)
        return torch.minimum(places, 2 * count - 1 - places)
    return places.clamp(0, count - 1)


def padded(x: Tensor, margins: Sequence[int], padding: Padding, fill: int = 0) -> Tensor:
    """x with so many more pixels before and after each of its last axes."""
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
) -> tuple[Tensor, Tensor | None]:
    """The windows of padded grids and of their masks, which are unknown outside the frame."""
    y = take_windows(padded(x, margins, padding), starts, size)
    if masks is None:
        return y, None
    wide = padded(masks.unsqueeze(1), margins, padding, fill=UNLABELLED)
    return y, take_windows(wide, starts, size).squeeze(1)
