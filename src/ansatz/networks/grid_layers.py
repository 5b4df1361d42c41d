"""Layers for grids of one, two or three axes: convolution, pooling, upsampling, cropping."""

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ansatz.layers.init import affine, initialize
from ansatz.layers.schemes import draw_normal


class StridedPoint(nn.Conv2d):
    r"""A linear map of every s-th pixel's channels.

    .. math:: y_{ij} = W x_{si, sj}

    Torch's own ``Conv2d(C, K, 1, stride=s)`` with its keys and its numbers, computed on the pixels
    that are left: its backward pass writes beyond its memory on some processors when channels lie
    last and C is below 16 (oneDNN issue 6035). From 16 channels on networks take torch's, whose
    roundings are those of anybody's who loads the same weights.

    Shapes:
        - x: ``(B, C, H, W)``.
        - returns: ``(B, K, ceil(H / s), ceil(W / s))``.
    """

    safe_channels = 16  # a block of channels of the widest processors

    def forward(self, x: Tensor) -> Tensor:
        down, across = cast(tuple[int, int], self.stride)
        return nn.functional.conv2d(x[..., ::down, ::across], self.weight, self.bias)


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Continues each axis of a grid by zeros, at its end, to a multiple of pixels.

    At the end alone, so that what is pooled with what does not depend on the size.
    """
    gaps = [-n % multiple for n in x.shape[2:]]
    return pad(x, [v for gap in reversed(gaps) for v in (0, gap)]) if any(gaps) else x


def crop(x: Tensor, size: Sequence[int]) -> Tensor:
    """The first pixels of each axis of a grid."""
    return _cut(x, [0] * len(size), size)


def crop_centre(x: Tensor, size: Sequence[int]) -> Tensor:
    """The pixels of a grid that are left when both ends of each axis lose equally many."""
    return _cut(x, [(n - m) // 2 for n, m in zip(x.shape[2:], size, strict=True)], size)


def _cut(x: Tensor, starts: Sequence[int], size: Sequence[int]) -> Tensor:
    for axis, (start, length) in enumerate(zip(starts, size, strict=True), 2):
        x = x.narrow(axis, start, length)
    return x


Axes = int | tuple[int, ...]
Module = TypeVar("Module", bound=nn.Module)

_BATCH_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
_MAX_POOL = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
_AVERAGE_POOL = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
_ADAPTIVE_POOL = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}


def convolution(
    dimensions: int,
    in_channels: int,
    out_channels: int,
    kernel_size: Axes,
    *,
    stride: Axes = 1,
    padding: Axes = 0,
    groups: int = 1,
    bias: bool = True,
    init: str = "he_normal",
    gain: float = 1.0,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Makes torch's ``Conv1d``, ``Conv2d`` or ``Conv3d``, drawn by name from ``generator``.

    Torch's own constructors draw from the global generator; this one leaves that as it was.

    Args:
        dimensions: number of axes of the grid.
        in_channels: :math:`C` before.
        out_channels: :math:`C` after.
        kernel_size: pixels that it looks at along each axis.
        stride: pixels from one output to the next.
        padding: zeros around the grid.
        groups: parts into which the channels fall that do not see each other.
        bias: whether it adds a constant, which starts at 0.
        init: the name of an initialisation.
        gain: its factor.
        generator: where the weights come from; torch's global one when not given.

    Example:
        >>> from ansatz.networks import convolution
        >>> convolution(1, 3, 8, 5)
        Conv1d(3, 8, kernel_size=(5,), stride=(1,))
    """
    blank, made = _CONVOLUTIONS[dimensions]
    layer: Any = blank(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        groups=groups,
        bias=bias,
    )
    layer.__class__ = made  # blank only until it is filled here
    point = made is nn.Conv2d and kernel_size == 1 and padding == 0 and groups == 1
    if point and stride != 1 and in_channels < StridedPoint.safe_channels:
        layer.__class__ = StridedPoint
    filled: nn.Module = initialize(layer, init, gain=gain, generator=generator)
    return filled


class _Blank:
    def reset_parameters(self) -> None:
        """Draws nothing."""


def _blank(*kinds: Any) -> dict[int, tuple[Any, Any]]:
    """Number of axes -> the layer without its first draw, and the layer."""
    return {n: (type("_Blank", (_Blank, kind), {}), kind) for n, kind in enumerate(kinds, 1)}


_CONVOLUTIONS = _blank(nn.Conv1d, nn.Conv2d, nn.Conv3d)


def batch_norm(dimensions: int, channels: int, **options: Any) -> nn.Module:
    """Torch's ``BatchNorm1d``, ``BatchNorm2d`` or ``BatchNorm3d``."""
    return _BATCH_NORM[dimensions](channels, **options)


def max_pool(dimensions: int, kernel_size: int, **options: Any) -> nn.Module:
    """Torch's ``MaxPool1d``, ``MaxPool2d`` or ``MaxPool3d``."""
    pool: nn.Module = _MAX_POOL[dimensions](kernel_size, **options)
    return pool


def average_pool(dimensions: int, kernel_size: int, **options: Any) -> nn.Module:
    """Torch's ``AvgPool1d``, ``AvgPool2d`` or ``AvgPool3d``."""
    pool: nn.Module = _AVERAGE_POOL[dimensions](kernel_size, **options)
    return pool


def adaptive_pool(dimensions: int, size: int | tuple[int, ...]) -> nn.Module:
    """Torch's average pooling of any grid to ``size`` pixels along each axis."""
    size = (size,) * dimensions if isinstance(size, int) else size
    return _ADAPTIVE_POOL[dimensions](size)


def readout(in_features: int, outputs: int, generator: torch.Generator | None = None) -> nn.Linear:
    """The last map of a network: small weights, so that it starts near the constant model."""
    return affine(in_features, outputs, init="lecun_normal", gain=0.1, generator=generator)


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}  # what torch calls linear interpolation


def transposed_convolution(
    dimensions: int,
    in_channels: int,
    out_channels: int,
    factor: int,
    *,
    init: Literal["normal", "linear"] = "normal",
    generator: torch.Generator | None = None,
) -> nn.Module:
    r"""Makes a transposed convolution that enlarges a grid by ``factor``.

    - ``"normal"``: a kernel of ``factor`` pixels, so that the outputs of two pixels do not overlap,
      with weights :math:`N(0, 1 / C)`: each output is the sum of C products.
    - ``"linear"``: a kernel of twice as many, which interpolates each channel linearly,

      .. math:: w_i = 1 - |i - (f - \tfrac12)| / f, \qquad i = 0, \dots, 2f - 1

      along each axis (f = ``factor``, even or 1), from channel c to channel c alone.

    Biases start at 0.

    Args:
        dimensions: number of axes of the grid.
        in_channels: :math:`C` before.
        out_channels: after.
        factor: :math:`f`, output pixels per input pixel along each axis.
        init: how the weights start.
        generator: where they are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``.
        - returns: ``(B, out_channels, *[f * n for n in size])``.

    Example:
        >>> import torch
        >>> from ansatz.networks import transposed_convolution
        >>> with torch.no_grad():
        ...     transposed_convolution(1, 1, 1, 2, init="linear")(torch.tensor([[[0.0, 4.0, 8.0]]]))
        tensor([[[0., 1., 3., 5., 7., 6.]]])

    References:
        Long, Shelhamer and Darrell (2015), Fully convolutional networks for semantic segmentation,
        section 3.3. https://arxiv.org/abs/1411.4038
    """
    blank, made = _LAYERS[dimensions]
    if init == "normal":
        kernel, padding = factor, 0
    elif factor % 2 == 0 or factor == 1:
        kernel, padding = (2 * factor, factor // 2) if factor > 1 else (1, 0)
    else:
        raise ValueError(f"linear interpolation needs an even factor or 1, got {factor}.")
    layer: Any = blank(in_channels, out_channels, kernel, stride=factor, padding=padding)
    layer.__class__ = made  # blank only until it is filled here
    if not layer.weight.is_meta:
        nn.init.zeros_(layer.bias)
        if init == "normal":
            draw_normal(layer.weight, 1 / math.sqrt(in_channels), generator)
        else:
            _interpolate(layer.weight, factor)
    filled: nn.Module = layer
    return filled


def _interpolate(weight: Tensor, factor: int) -> None:
    """Fills ``(C, C', *kernel)`` with linear interpolation from each channel to its own."""
    size = weight.shape[2]
    place = torch.arange(size, dtype=weight.dtype, device=weight.device)
    ramp = 1 - (place - (size - 1) / 2).abs() / factor
    kernel = torch.ones((), dtype=weight.dtype, device=weight.device)
    for _ in range(weight.ndim - 2):
        kernel = kernel.unsqueeze(-1) * ramp
    with torch.no_grad():
        weight.zero_()
        for c in range(min(weight.shape[:2])):
            weight[c, c] = kernel


_LAYERS = _blank(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
