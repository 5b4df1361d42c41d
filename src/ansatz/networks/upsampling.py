"""Grids made finer: transposed convolutions and linear interpolation, by the number of axes."""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ansatz.layers.schemes import draw_normal

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
    r"""A transposed convolution that makes a grid ``factor`` times as fine.

    - ``"normal"``: a kernel of ``factor`` cells, so that the outputs of two cells do not overlap,
      with weights :math:`N(0, 1 / C)`: each output is the sum of C products.
    - ``"linear"``: a kernel of twice as many, which interpolates each channel linearly,

      .. math:: w_i = 1 - |i - (f - \tfrac12)| / f, \qquad i = 0, \dots, 2f - 1

      along each axis (f = ``factor``, even or 1), from channel c to channel c alone.

    Biases start at 0.

    Args:
        dimensions: number of axes of the grid.
        in_channels: :math:`C` before.
        out_channels: after.
        factor: :math:`f`, cells per cell along each axis.
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


class _Blank1d(nn.ConvTranspose1d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


class _Blank2d(nn.ConvTranspose2d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


class _Blank3d(nn.ConvTranspose3d):
    def reset_parameters(self) -> None:
        """Draws nothing."""


_LAYERS: dict[int, tuple[Any, Any]] = {
    1: (_Blank1d, nn.ConvTranspose1d),
    2: (_Blank2d, nn.ConvTranspose2d),
    3: (_Blank3d, nn.ConvTranspose3d),
}
