"""Residual networks for large images: ResNet-18 to ResNet-152."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import adaptive_pool, batch_norm, convolution, max_pool, readout
from ansatz.networks.resnet_blocks import BasicBlock, Bottleneck, zero_last_norms
from ansatz.spec import Inputs

Stem = Literal["imagenet", "small"]


class ResNet(nn.Module):
    r"""Four stages of residual blocks, each with half the pixels and twice the channels.

    .. math:: x_{l+1} = \mathrm{ReLU}(x_l + F_l(x_l))

    so that a block that learns nothing does no harm, and depth is free. The stem is a convolution
    of 7 pixels with stride 2 and a pool; ``stem="small"``, for images of 32 x 32 and thereabouts,
    is a convolution with kernel size 3 and nothing more. The last maps are averaged over all
    pixels, so x may be of any size. Names and shapes of the weights are torchvision's.

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    heads: tuple[str, ...] = ("fc",)  # the maps of the outcome, not of x
    name = "resnet"
    block: type[BasicBlock] | type[Bottleneck] = BasicBlock
    depths: tuple[int, ...] = (2, 2, 2, 2)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        stem: Stem = "imagenet",
        width: int = 64,
        zero_init_last: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if stem not in get_args(Stem):
            raise UsageError(f"stem of {self.name} must be imagenet or small, got {stem!r}.")
        require_whole(f"width of {self.name}", width)
        self.grid = grid = read_grid(self.name, inputs)
        d, small = grid.dimensions, stem == "small"
        self.conv1 = convolution(
            d,
            grid.channels,
            width,
            3 if small else 7,
            stride=1 if small else 2,
            padding=1 if small else 3,
            bias=False,
            generator=generator,
        )
        self.bn1 = batch_norm(d, width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else max_pool(d, 3, stride=2, padding=1)
        channels = width
        for number, depth in enumerate(self.depths):
            stage, channels = self._stage(d, channels, width * 2**number, depth, number, generator)
            setattr(self, f"layer{number + 1}", stage)
        self.avgpool = adaptive_pool(d, 1)
        self.fc = readout(channels, outputs, generator)
        if zero_init_last:
            zero_last_norms(self)

    def _stage(
        self,
        d: int,
        before: int,
        channels: int,
        depth: int,
        number: int,
        generator: torch.Generator | None,
    ) -> tuple[nn.Sequential, int]:
        """``depth`` blocks, the first of which changes the sizes; and the channels after them."""
        stride, after = (1 if number == 0 else 2), channels * self.block.expansion
        downsample = None
        if stride != 1 or before != after:
            downsample = nn.Sequential(
                convolution(d, before, after, 1, stride=stride, bias=False, generator=generator),
                batch_norm(d, after),
            )
        blocks = [self.block(d, before, channels, stride, downsample, generator=generator)]
        blocks += [self.block(d, after, channels, generator=generator) for _ in range(depth - 1)]
        return nn.Sequential(*blocks), after

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stem, four stages, last map."""
        stages = [[self.get_submodule(f"layer{n + 1}")] for n in range(len(self.depths))]
        return [[self.conv1, self.bn1], *stages, [self.fc]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid(self.name, self.grid, x, network=self)
        h = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(len(self.depths)):
            h = self.get_submodule(f"layer{number + 1}")(h)
        return self.fc(self.avgpool(h).flatten(1))


class ResNet18(ResNet):
    r"""The residual network of 18 layers: 8 blocks of two convolutions each.

    .. math:: x_{l+1} = \mathrm{ReLU}(x_l + F_l(x_l))

    It has 11,689,512 parameters for 3 channels and 1,000 outputs.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P`.
        stem: ``"imagenet"`` or ``"small"``.
        width: channels of the first stage.
        zero_init_last: let each block start as ReLU of what comes in.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import ResNet18
        >>> ResNet18(1, 10, width=4)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    name, block, depths = "resnet18", BasicBlock, (2, 2, 2, 2)


class ResNet34(ResNet):
    """The residual network of 34 layers: 16 blocks of two convolutions each.

    It has 21,797,672 parameters for 3 channels and 1,000 outputs. Its
    arguments are those of :class:`ResNet18`.

    Example:
        >>> import torch
        >>> from ansatz.networks import ResNet34
        >>> ResNet34(1, 10, width=4)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    name, block, depths = "resnet34", BasicBlock, (3, 4, 6, 3)


class ResNet50(ResNet):
    """The residual network of 50 layers: 16 blocks of three convolutions each.

    It has 25,557,032 parameters for 3 channels and 1,000 outputs. Its
    arguments are those of :class:`ResNet18`.

    Example:
        >>> import torch
        >>> from ansatz.networks import ResNet50
        >>> ResNet50(1, 10, width=4)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    name, block, depths = "resnet50", Bottleneck, (3, 4, 6, 3)


class ResNet101(ResNet):
    """The residual network of 101 layers: 33 blocks of three convolutions each.

    It has 44,549,160 parameters for 3 channels and 1,000 outputs. Its
    arguments are those of :class:`ResNet18`.

    Example:
        >>> import torch
        >>> from ansatz.networks import ResNet101
        >>> ResNet101(1, 10, width=4)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    name, block, depths = "resnet101", Bottleneck, (3, 4, 23, 3)


class ResNet152(ResNet):
    """The residual network of 152 layers: 50 blocks of three convolutions each.

    It has 60,192,808 parameters for 3 channels and 1,000 outputs. Its
    arguments are those of :class:`ResNet18`.

    Example:
        >>> import torch
        >>> from ansatz.networks import ResNet152
        >>> ResNet152(1, 10, width=4)(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al. (2016), Deep residual learning for image recognition, table 1.
        https://arxiv.org/abs/1512.03385
    """

    name, block, depths = "resnet152", Bottleneck, (3, 8, 36, 3)
