"""The inception module: four views of the same cells, side by side."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ansatz.networks.grid_layers import batch_norm, convolution, max_pool


class Branches(NamedTuple):
    """Channels of the four branches of an inception module, as table 1 of the paper lists them.

    Args:
        one: of the convolution of 1 cell.
        reduce3: of the 1-cell convolution before the one of 3.
        three: of the convolution of 3 cells.
        reduce5: of the 1-cell convolution before the one of 5.
        five: of the convolution of 5 cells.
        pool: of the 1-cell convolution after the pool.

    Example:
        >>> from ansatz.networks.inception import Branches
        >>> Branches(64, 96, 128, 16, 32, 32).outputs
        256
    """

    one: int
    reduce3: int
    three: int
    reduce5: int
    five: int
    pool: int

    @property
    def outputs(self) -> int:
        """Channels of the four branches together."""
        return self.one + self.three + self.five + self.pool


class ConvolutionUnit(nn.Module):
    """A convolution, its normalisation and ReLU.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of x.
        out_channels: channels of the result.
        kernel_size: cells along each axis.
        stride: cells from one output to the next.
        padding: zeros around the grid.
        normalized: batch normalisation in place of a bias, as in torchvision; the paper has a
            bias and no normalisation.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, out_channels, *size')``.
    """

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        normalized: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.conv = convolution(
            dimensions,
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            bias=not normalized,
            generator=generator,
        )
        self.bn = batch_norm(dimensions, out_channels, eps=0.001) if normalized else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    r"""Convolutions of 1, 3 and 5 cells and a pool, all of the same x, side by side.

    .. math:: y = [\,W_1 * x;\; W_3 * R_3 * x;\; W_5 * R_5 * x;\; W_p * \max x\,]

    each with ReLU. R are convolutions of 1 cell that reduce the channels first: the module 3a of
    GoogLeNet has 163,696 weights with and 387,296 without them. With ``original=False`` the
    third branch has 3 cells as well and batch normalisation stands for biases: torchvision's
    module, whose weights have such names.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of x.
        branches: channels of the branches.
        original: 5 cells and biases, as published.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, branches.outputs, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Branches, Inception
        >>> module = Inception(2, 192, Branches(64, 96, 128, 16, 32, 32), original=True)
        >>> sum(p.numel() for p in module.parameters())
        163696

    References:
        Szegedy et al. (2015), Going deeper with convolutions, figure 2.
        https://arxiv.org/abs/1409.4842
    """

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        branches: Branches,
        *,
        original: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()

        def unit(before: int, after: int, kernel: int) -> ConvolutionUnit:
            return ConvolutionUnit(
                dimensions,
                before,
                after,
                kernel,
                padding=kernel // 2,
                normalized=not original,
                generator=generator,
            )

        b = branches
        self.branch1 = unit(in_channels, b.one, 1)
        self.branch2 = nn.Sequential(unit(in_channels, b.reduce3, 1), unit(b.reduce3, b.three, 3))
        self.branch3 = nn.Sequential(
            unit(in_channels, b.reduce5, 1), unit(b.reduce5, b.five, 5 if original else 3)
        )
        self.branch4 = nn.Sequential(
            max_pool(dimensions, 3, stride=1, padding=1, ceil_mode=True),
            unit(in_channels, b.pool, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)
