"""Occlusion: what an output loses when a window of the input is covered."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.attribution.target import Target, beside, check_examples, repeated, resolved, score
from ansatz.layers.mode import evaluation_mode


def occlusion(
    network: Callable[..., Any],
    x: Tensor,
    target: Target = None,
    *,
    window: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    fill: Tensor | float = 0.0,
    batch_size: int = 256,
) -> Tensor:
    r"""Measures how an output falls when a window is covered, averaged for each pixel.

    .. math:: d_w = s(x) - s(x \text{ with window } w \text{ filled}), \qquad
        a_i = \frac{1}{|\{w \ni i\}|} \sum_{w \ni i} d_w

    No gradient is needed, so anything that answers can be asked. Windows stand every ``stride``
    pixels, the last one flush with the edge, so that all pixels are covered. For a linear network
    and windows of one pixel it is :math:`\sum_c w_{c,i} (x_{c,i} - \text{fill})`, exactly.

    Args:
        network: any callable on ``x``; a module is in evaluation mode meanwhile.
        x: examples.
        target: see :func:`ansatz.attribution.score`; None: the output that is largest at x.
        window: pixels of a window along each axis; by default an eighth of the grid's.
        stride: pixels from one window to the next, at most a window; by default half of it.
        fill: what covers: a number, or a tensor that broadcasts to x.
        batch_size: covered examples per call of the network.

    Shapes:
        - x: ``(B, C, *size)`` with any number of spatial axes.
        - returns: ``(B, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.attribution import occlusion
        >>> x = torch.tensor([[[1.0, 2.0, 3.0]]])
        >>> occlusion(lambda x: x[:, 0, :2].sum(1), x, 0, window=1)
        tensor([[1., 2., 0.]])

    References:
        Zeiler and Fergus (2014), Visualizing and understanding convolutional networks, section 4.2.
        https://arxiv.org/abs/1311.2901
    """
    check_examples("occlusion", x, 3)
    size = tuple(x.shape[2:])
    windows = _per_axis("window", window, size, [-(-n // 8) for n in size])
    strides = _per_axis("stride", stride, size, [max(n // 2, 1) for n in windows])
    if any(step > window for step, window in zip(strides, windows, strict=True)):
        raise ValueError(
            f"stride of occlusion must be at most its window, {tuple(windows)}, got {stride}: "
            "pixels between the windows would never be covered."
        )
    covers = [_covers(*axis, x.device) for axis in zip(size, windows, strides, strict=True)]
    places, cover_with = [len(cover) for cover in covers], beside("fill of occlusion", fill, x)
    with evaluation_mode(network), torch.no_grad():
        output = network(x)
        at = resolved(output, target)
        whole = score(output, at)  # (B,)
        drops = torch.empty(len(x), math.prod(places), dtype=whole.dtype, device=x.device)
        together = max(batch_size // len(x), 1)
        for first in range(0, drops.shape[1], together):
            last = min(first + together, drops.shape[1])
            masks = _masks(covers, torch.arange(first, last, device=x.device))  # (T, *size)
            covered = torch.where(masks[None, :, None], cover_with.unsqueeze(1), x.unsqueeze(1))
            answers = score(network(covered.flatten(0, 1)), repeated(at, last - first))
            drops[:, first:last] = whole.unsqueeze(1) - answers.unflatten(0, (len(x), -1))
    return _per_pixel(drops.unflatten(1, places), covers)


def _per_axis(
    name: str, given: int | tuple[int, ...] | None, size: tuple[int, ...], default: list[int]
) -> list[int]:
    if given is None:
        return default
    found = [given] * len(size) if isinstance(given, int) else list(given)
    if len(found) != len(size) or not all(
        1 <= part <= n for part, n in zip(found, size, strict=True)
    ):
        raise ValueError(f"{name} of occlusion must be from 1 to {size} pixels, got {given}.")
    return found


def _covers(size: int, window: int, stride: int, device: torch.device) -> Tensor:
    """Which pixels of an axis each window covers, ``(windows, size)``."""
    starts = [*range(0, size - window, stride), size - window]
    start = torch.tensor(starts, device=device).unsqueeze(1)
    pixel = torch.arange(size, device=device)
    return (pixel >= start) & (pixel < start + window)


def _masks(covers: list[Tensor], flat: Tensor) -> Tensor:
    """Windows of the whole grid by their flat number, ``(T, *size)``."""
    chosen = torch.unravel_index(flat, [len(cover) for cover in covers])
    found = torch.ones(len(flat), *(1,) * len(covers), dtype=torch.bool, device=flat.device)
    for axis, (cover, index) in enumerate(zip(covers, chosen, strict=True)):
        shape = [1] * len(covers)
        shape[axis] = -1
        found = found & cover[index].reshape(len(flat), *shape)
    return found


def _per_pixel(drops: Tensor, covers: list[Tensor]) -> Tensor:
    """The mean fall over the windows on each pixel: one axis after the other."""
    for cover in covers:
        share = cover.to(drops) / cover.sum(0)  # (windows, size)
        drops = torch.tensordot(drops, share, dims=([1], [0]))  # the next axis comes to the front
    return drops
