"""U-Nets for images and volumes."""

from itertools import count, pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import (
    LINEAR,
    batch_norm,
    convolution,
    crop,
    crop_centre,
    max_pool,
    pad_to_multiple,
    transposed_convolution,
)
from ansatz.spec import Inputs

Up = Literal["transposed", "upsample"]
Doubling = Literal["after", "before"]
Norm = Literal["batch"]


class UNet(nn.Module):
    r"""The U-Net: a label for every pixel, from coarse features joined with fine ones.

    .. math:: h_0 = F_0(x), \quad h_l = F_l(\mathrm{pool}(h_{l-1})), \quad u_L = h_L, \quad
              u_l = G_l([h_l, \mathrm{up}(u_{l+1})]), \quad f(x) = A u_0

    F and G are blocks of two convolutions with kernel size 3, each with a ReLU; pool takes the
    largest of 2 pixels along each axis, up makes the grid twice as fine, [ , ] puts channels side
    by side (the skip connection concatenates; it is not a residual sum), and A is one map for all
    pixels. Level l = 0..L has :math:`2^l` times ``width`` channels: 64 to 1024 by default.

    ``padded=True``: the output has the size of x, whatever it is: convolutions are padded by zeros,
    and x is continued by zeros at its end to a multiple of :math:`2^L` and cropped again.
    ``padded=False`` is the network of the paper: each convolution takes 2 pixels off, skips are
    cropped to their centre, and 572 x 572 pixels in give 388 x 388 out.
    :func:`ansatz.networks.predict_tiles` then supplies the border.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P` per pixel.
        depth: :math:`L`, how often the grid is halved.
        width: channels of the first level.
        padded: whether the output has the size of x.
        norm: ``"batch"`` normalises each convolution before its ReLU; None as in the paper.
        up: ``"transposed"`` convolutions, or linear interpolation (``"upsample"``) and a map of
            each pixel, which leaves no checkerboard.
        doubling: whether channels double ``"after"`` pooling, or already ``"before"`` it, which
            avoids a bottleneck (3-D U-Net); then up keeps the channels, instead of halving them.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``; smaller if not padded: see ``output_size``.

    Example:
        >>> import torch
        >>> from ansatz.networks import UNet
        >>> from ansatz.spec import Inputs, InputSpec
        >>> UNet(InputSpec.grid(3, 30, 41), 2, depth=2, width=4)(torch.randn(1, 3, 30, 41)).shape
        torch.Size([1, 2, 30, 41])

    References:
        Ronneberger, Fischer and Brox (2015), U-Net: convolutional networks for biomedical image
        segmentation, figure 1. https://arxiv.org/abs/1505.04597
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x
    name = "unet"
    axes: tuple[int, ...] = (1, 2, 3)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        depth: int = 4,
        width: int = 64,
        padded: bool = True,
        norm: Norm | None = "batch",
        up: Up = "transposed",
        doubling: Doubling = "after",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._check(depth, width, norm, up, doubling)
        self.grid = grid = read_grid(self.name, inputs, dimensions=self.axes)
        self.depth, self.padded = depth, padded
        early = doubling == "before"
        d, levels = grid.dimensions, [width * 2 ** (i + early) for i in range(depth + 1)]

        def block(into: int, hidden: int, out: int) -> nn.Module:
            return double_convolution(
                d, into, hidden, out, padded=padded, norm=norm, generator=generator
            )

        before = [grid.channels, *levels[:-1]]
        self.down = nn.ModuleList(
            block(into, c // 2 if early else c, c) for into, c in zip(before, levels, strict=True)
        )
        self.pool = max_pool(d, 2)
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for fine, coarse in pairwise(levels):  # from fine to coarse; applied the other way round
            risen = coarse if early else fine
            self.up.append(_rise(d, coarse, risen, up, generator))
            self.merge.append(block(fine + risen, fine, fine))
        # Small weights, so that it starts near the constant model.
        self.output = convolution(
            d, levels[0], outputs, 1, init="lecun_normal", gain=0.1, generator=generator
        )

    def _check(self, depth: int, width: int, norm: object, up: object, doubling: object) -> None:
        require_whole(f"depth of {self.name}", depth, low=1, high=10)
        require_whole(f"width of {self.name}", width)
        if norm not in ("batch", None):
            raise UsageError(f"norm of {self.name} must be 'batch' or None, got {norm!r}.")
        for option, value, known in (("up", up, Up), ("doubling", doubling, Doubling)):
            if value not in get_args(known):
                words = " or ".join(repr(word) for word in get_args(known))
                raise UsageError(f"{option} of {self.name} must be {words}, got {value!r}.")

    @property
    def stride(self) -> int:
        """Pixels along each axis that are pooled into one of the coarsest level."""
        stride: int = 2**self.depth
        return stride

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: level by level down, up again, last map."""
        rise = zip(reversed(self.up), reversed(self.merge), strict=True)
        return [*([block] for block in self.down), *(list(pair) for pair in rise), [self.output]]

    def output_size(self, *size: int) -> tuple[int, ...]:
        """Pixels along each axis of the output for x of such a size."""
        return size if self.padded else tuple(_unpadded_size(n, self.depth) for n in size)

    def skip(self, level: int, fine: Tensor, coarse: Tensor) -> Tensor:
        """Gives what level ``level`` hands across: its features, as they are."""
        return fine

    def forward(self, x: Tensor) -> Tensor:
        require_grid(self.name, self.grid, x, network=self)
        size = x.shape[2:]
        h = pad_to_multiple(x, self.stride) if self.padded else self._fitting(x)
        features = [self.down[0](h)]
        for block in list(self.down)[1:]:
            features.append(block(self.pool(features[-1])))
        h = features.pop()
        for level in reversed(range(self.depth)):
            risen = self.up[level](h)
            fine = self.skip(level, crop_centre(features.pop(), risen.shape[2:]), h)
            h = self.merge[level](torch.cat([fine, risen], 1))
        y: Tensor = self.output(h)
        return crop(y, size) if self.padded else y

    def _fitting(self, x: Tensor) -> Tensor:
        """X itself, if every pooling meets an even number of pixels and something is left."""
        for n in x.shape[2:]:
            if _unpadded_size(n, self.depth) < 1:
                above = next(m for m in count(n) if _unpadded_size(m, self.depth) > 0)
                below = [m for m in range(n) if _unpadded_size(m, self.depth) > 0][-1:]
                raise UsageError(
                    f"{self.name} without padding cannot take {n} pixels along an axis, since each "
                    "pooling needs an even number and some must be left; "
                    f"take {' or '.join(map(str, [*below, above]))}."
                )
        return x


def double_convolution(
    dimensions: int,
    in_channels: int,
    hidden: int,
    out_channels: int,
    *,
    padded: bool = True,
    norm: Norm | None = "batch",
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Two convolutions with kernel size 3, each followed by a ReLU."""
    layers: list[nn.Module] = []
    for into, out in ((in_channels, hidden), (hidden, out_channels)):
        shift = norm is None  # batch norm has one of its own
        layers.append(
            convolution(
                dimensions, into, out, 3, padding=int(padded), bias=shift, generator=generator
            )
        )
        if norm == "batch":
            layers.append(batch_norm(dimensions, out))
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


def _rise(
    dimensions: int, coarse: int, fine: int, up: Up, generator: torch.Generator | None
) -> nn.Module:
    if up == "transposed":
        return transposed_convolution(dimensions, coarse, fine, 2, generator=generator)
    # A map of pixels and interpolation commute: first the map, on a quarter of the pixels.
    mix = convolution(dimensions, coarse, fine, 1, init="lecun_normal", generator=generator)
    return nn.Sequential(mix, nn.Upsample(scale_factor=2, mode=LINEAR[dimensions]))


def _unpadded_size(n: int, depth: int) -> int:
    """Pixels left of n; 0 where a pooling meets an odd number or nothing is left."""
    for _ in range(depth):
        n -= 4
        if n < 2 or n % 2:
            return 0
        n //= 2
    n -= 4
    for _ in range(depth):
        n = 2 * n - 4
    return max(n, 0)


class UNet3d(UNet):
    """The 3-D U-Net: a label for every voxel.

    The volume is halved three times, and channels double before pooling (32 to 64, then 64 to 128,
    ...), which avoids bottlenecks. Few annotated slices are enough: a voxel without a label has
    weight 0 and is in no loss.

    ``padded=False`` is the network of the paper: 132 x 132 x 116 voxels in, 44 x 44 x 28 out.

    Args:
        inputs: a volume, or a number of channels.
        outputs: :math:`P` per voxel.
        depth: how often the grid is halved.
        width: channels of the first convolution.
        padded: whether the output has the size of x.
        norm: ``"batch"`` normalises each convolution before its ReLU; None for none.
        up: ``"transposed"`` convolutions, or linear interpolation (``"upsample"``).
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, D, H, W)``.
        - returns: ``(B, P, D, H, W)``; smaller if not padded: see ``output_size``.

    Example:
        >>> import torch
        >>> from ansatz.networks import UNet3d
        >>> UNet3d(1, 2, depth=1, width=2)(torch.randn(1, 1, 4, 5, 6)).shape
        torch.Size([1, 2, 4, 5, 6])

    References:
        Çiçek et al. (2016), 3D U-Net: learning dense volumetric segmentation from sparse
        annotation, figure 2. https://arxiv.org/abs/1606.06650
    """

    name = "unet3d"
    axes = (3,)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        depth: int = 3,
        width: int = 32,
        padded: bool = True,
        norm: Norm | None = "batch",
        up: Up = "transposed",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs,
            outputs,
            depth=depth,
            width=width,
            padded=padded,
            norm=norm,
            up=up,
            doubling="before",
            generator=generator,
        )
