"""Torch's layers on grids, by the number of axes, their weights drawn from a generator."""

from typing import Any, TypeVar

import torch
from torch import nn

from ansatz.layers.init import affine, initialize
from ansatz.networks.strided_point import StridedPoint

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
    """Torch's ``Conv1d``, ``Conv2d`` or ``Conv3d``, drawn by name from ``generator`` alone.

    Torch's own constructors draw from the global generator; this one leaves that as it was.

    Args:
        dimensions: number of axes of the grid.
        in_channels: :math:`C` before.
        out_channels: :math:`C` after.
        kernel_size: cells that it looks at along each axis.
        stride: cells from one output to the next.
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


class _Blank1d(nn.Conv1d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


class _Blank2d(nn.Conv2d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


class _Blank3d(nn.Conv3d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


_CONVOLUTIONS: dict[int, tuple[Any, Any]] = {
    1: (_Blank1d, nn.Conv1d),
    2: (_Blank2d, nn.Conv2d),
    3: (_Blank3d, nn.Conv3d),
}


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
    """Torch's average pooling of any grid to ``size`` cells along each axis."""
    cells = (size,) * dimensions if isinstance(size, int) else size
    return _ADAPTIVE_POOL[dimensions](cells)


def readout(in_features: int, outputs: int, generator: torch.Generator | None = None) -> nn.Linear:
    """The last map of a network: small weights, so that it starts near the constant model."""
    return affine(in_features, outputs, init="lecun_normal", gain=0.1, generator=generator)
