"""Grids read at places between their pixels."""

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

from ansatz.data.augmentation.augmentation import Interpolation, Padding, Pair
from ansatz.data.batch import UNLABELLED

_PADDINGS = {"reflect": "reflection", "border": "border", "zeros": "zeros"}  # torch's names


def affine_resample(
    x: Tensor,
    masks: Tensor | None,
    matrices: Tensor,
    *,
    padding: Padding = "reflect",
    interpolation: Interpolation = "linear",
) -> Pair:
    r"""Each grid read at an affine map of its places.

    .. math:: y(p) = x(A p + b)

    with places counted in pixels from the middle of the grid, in the order of its axes. Values
    between pixels are interpolated linearly; labels are those of the nearest pixel.

    Args:
        x: the grids.
        masks: labels of their pixels, or None.
        matrices: :math:`(A, b)` of each example.
        padding: what is read outside: ``"reflect"`` (mirrored at the edge of the outermost pixel),
            ``"border"`` (the outermost pixel), ``"zeros"``, whose labels are -1, unknown.
        interpolation: ``"linear"`` or ``"nearest"``, for x.

    Shapes:
        - x: ``(B, C, *size)`` floats with n axes; masks: ``(B, *size)`` whole numbers.
        - matrices: ``(B, n, n + 1)``.
        - returns: x and masks as they came.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import affine_resample
        >>> x, half = torch.arange(4.0).view(1, 1, 4), torch.tensor([[[1.0, 0.5]]])
        >>> affine_resample(x, None, half, padding="border")[0]
        tensor([[[0.5000, 1.5000, 2.5000, 3.0000]]])
    """
    wide = widened(x)
    places = affine_places(wide, matrices)
    y, moved = resample(wide, masks, places, padding=padding, interpolation=interpolation)
    return y.to(x.dtype), moved


def widened(x: Tensor) -> Tensor:
    """x in single precision at least: half of it does not tell the places of 256 pixels apart."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def affine_places(x: Tensor, matrices: Tensor) -> Tensor:
    """``(B, n, *size)``: where an affine map reads each pixel, for :func:`resample`."""
    size = tuple(x.shape[2:])
    pixels = torch.tensor(size, dtype=x.dtype, device=x.device)
    # A place u pixels from the middle is 2 u / N to torch, which wants the last axis first.
    rows = (matrices * (2 / pixels).unsqueeze(-1)).flip(1).to(x.dtype)  # (B, n, n + 1)
    at = rows.flatten(0, 1) @ _places(size, x.dtype, x.device)  # (B n, pixels)
    return at.view(len(x), len(size), *size)


def resample(
    x: Tensor,
    masks: Tensor | None,
    places: Tensor,
    *,
    padding: Padding = "reflect",
    interpolation: Interpolation = "linear",
) -> Pair:
    """Each grid read at the given places; masks at the nearest pixel.

    Args:
        x: the grids.
        masks: labels of their pixels, or None.
        places: where each pixel of the result is read: -1 and 1 are the edges of the frame; the
            last axis of the grid comes first, as in ``torch.nn.functional.grid_sample``.
        padding: what is read outside.
        interpolation: ``"linear"`` or ``"nearest"``, for x.

    Shapes:
        - x: ``(B, C, *size)`` floats with n axes; masks: ``(B, *size)``; places: ``(B, n, *size)``.
    """
    mode = "bilinear" if interpolation == "linear" else "nearest"
    y = _read(x, places, mode, padding)
    if masks is None:
        return y, None
    # Shifted so that the zeros outside the frame mean "unknown"; exact below 2^24.
    labels = masks.unsqueeze(1).to(x.dtype) - UNLABELLED
    moved = _read(labels, places, "nearest", padding).squeeze(1) + UNLABELLED
    return y, moved.to(masks.dtype)


def _read(x: Tensor, places: Tensor, mode: str, padding: Padding) -> Tensor:
    if x.ndim == 3:  # a signal is an image of height 1
        flat = torch.cat([places, torch.zeros_like(places)], dim=1).unsqueeze(2)
        return _read(x.unsqueeze(2), flat, mode, padding).squeeze(2)
    # The axis of coordinates moved last stays strided: torch reads each coordinate in one piece.
    return F.grid_sample(
        x, places.movedim(1, -1), mode=mode, padding_mode=_PADDINGS[padding], align_corners=False
    )


@functools.lru_cache(maxsize=8)
def _places(size: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """``(n + 1, pixels)``: each pixel's place from the middle along each axis, and ones."""
    grids = torch.meshgrid(*(_centred(n, dtype) for n in size), indexing="ij")
    rows = [grid.flatten() for grid in grids]
    return torch.stack([*rows, torch.ones_like(rows[0])]).to(device)


def _centred(count: int, dtype: torch.dtype) -> Tensor:
    return torch.arange(count, dtype=dtype) - (count - 1) / 2
