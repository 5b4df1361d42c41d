"""GoogLeNet and its Inception blocks."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_positive
from ansatz.layers.norm import LocalResponseNorm
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import (
    adaptive_pool,
    average_pool,
    batch_norm,
    convolution,
    max_pool,
    readout,
)
from ansatz.spec import Inputs


class Branches(NamedTuple):
    """Channels of the four branches of an inception module, as table 1 of the paper lists them.

    Args:
        one: of the convolution with kernel size 1.
        reduce3: of the pointwise convolution before the one of 3.
        three: of the convolution with kernel size 3.
        reduce5: of the pointwise convolution before the one of 5.
        five: of the convolution with kernel size 5.
        pool: of the pointwise convolution after the pool.

    Example:
        >>> from ansatz.networks.googlenet import Branches
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
    r"""Convolutions with kernel sizes 1, 3 and 5 and a pool, all of the same x, side by side.

    .. math:: y = [\,W_1 * x;\; W_3 * R_3 * x;\; W_5 * R_5 * x;\; W_p * \max x\,]

    each with ReLU. R are pointwise convolutions that reduce the channels first: the module 3a of
    GoogLeNet has 163,696 weights with and 387,296 without them. With ``original=False`` the
    third branch has kernel size 3 as well and batch normalisation stands for biases: torchvision's
    module, whose weights have such names.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of x.
        branches: channels of the branches.
        original: kernel size 5 and biases, as published.
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


MODULES = {  # table 1 of the paper
    "3a": Branches(64, 96, 128, 16, 32, 32),
    "3b": Branches(128, 128, 192, 32, 96, 64),
    "4a": Branches(192, 96, 208, 16, 48, 64),
    "4b": Branches(160, 112, 224, 24, 64, 64),
    "4c": Branches(128, 128, 256, 24, 64, 64),
    "4d": Branches(112, 144, 288, 32, 64, 64),
    "4e": Branches(256, 160, 320, 32, 128, 128),
    "5a": Branches(256, 160, 320, 32, 128, 128),
    "5b": Branches(384, 192, 384, 48, 128, 128),
}
MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours


class GoogLeNetOutputs(NamedTuple):
    """The outputs of GoogLeNet in training: its own, and those of the auxiliary heads.

    Args:
        logits: ``(B, P)``, of the whole network.
        aux_logits2: ``(B, P)``, of the head after module 4d.
        aux_logits1: ``(B, P)``, of the head after module 4a.

    Example:
        >>> import torch
        >>> from ansatz.networks import GoogLeNetOutputs
        >>> GoogLeNetOutputs(*torch.zeros(3, 2, 10)).logits.shape
        torch.Size([2, 10])
    """

    logits: Tensor
    aux_logits2: Tensor
    aux_logits1: Tensor


class GoogLeNet(nn.Module):
    """Inception modules in three groups of 2, 5 and 2, with a pool before each group.

    Maps of 28, 14 and 7 pixels along each axis for x of 224 x 224. The auxiliary heads hang on
    modules 4a and 4d, so that the gradient reaches the early layers; in evaluation mode they are
    not computed. By default torchvision's network, with its names and shapes of weights:
    13,004,888 parameters for 3 channels and 1,000 outputs, 6,624,904 without auxiliary heads.
    ``original=True`` is the paper's: convolutions with kernel size 5 where torchvision has 3,
    biases and two normalisations over neighbouring channels instead of batch normalisation.

    Args:
        inputs: a grid of at least 15 pixels along each axis; a number of channels for images of
            any such size. The original needs 31, or 79 for its auxiliary heads.
        outputs: :math:`P`.
        auxiliary: whether the auxiliary heads are there.
        original: the network of the paper.
        width: factor on the channels of every layer.
        dropout: probability that an averaged feature is dropped while training; 0.2, or 0.4 of
            the original, when not given.
        transform_input: x is standardised by ImageNet's means and deviations, and the network by
            halves, as the weights that torchvision publishes are: :math:`2 (m + s x) - 1` comes
            first. Three channels.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P)``; in training, with auxiliary heads, ``GoogLeNetOutputs``.

    Example:
        >>> import torch
        >>> from ansatz.networks import GoogLeNet
        >>> network = GoogLeNet(1, 10, width=0.1)
        >>> len(network(torch.randn(2, 1, 32, 32))), network.eval()(torch.randn(2, 1, 32, 32)).shape
        (3, torch.Size([2, 10]))

    References:
        Szegedy et al. (2015), Going deeper with convolutions, table 1 and section 5.
        https://arxiv.org/abs/1409.4842
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        auxiliary: bool = True,
        original: bool = False,
        width: float = 1.0,
        dropout: float | None = None,
        transform_input: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.least = (79 if auxiliary else 31) if original else 15  # else a pool finds too little
        self.grid = grid = read_grid("googlenet", inputs, least=self.least)
        if transform_input and grid.channels != len(MEANS):
            raise UsageError(
                f"transform_input of googlenet is for images of red, green and blue, got "
                f"{grid.channels} channel{'s' if grid.channels != 1 else ''}."
            )
        self.transform_input = transform_input
        self.auxiliary, d, common = auxiliary, grid.dimensions, not original
        factor = require_positive("width of googlenet", width)
        c1, c3 = _scaled(factor, 64, 192)
        self.conv1 = ConvolutionUnit(
            d,
            grid.channels,
            c1,
            7,
            stride=2,
            padding=3,
            normalized=common,
            generator=generator,
        )
        self.maxpool1 = max_pool(d, 3, stride=2, ceil_mode=True)
        self.conv2 = ConvolutionUnit(d, c1, c1, 1, normalized=common, generator=generator)
        self.conv3 = ConvolutionUnit(
            d, c1, c3, 3, padding=1, normalized=common, generator=generator
        )
        self.norm: nn.Module = LocalResponseNorm() if original else nn.Identity()
        self.maxpool2 = max_pool(d, 3, stride=2, ceil_mode=True)
        self.maxpool3 = max_pool(d, 3, stride=2, ceil_mode=True)
        self.maxpool4 = max_pool(d, 3 if original else 2, stride=2, ceil_mode=True)
        channels, after = c3, dict[str, int]()
        for name, published in MODULES.items():
            branches = Branches(*_scaled(factor, *published))
            module = Inception(d, channels, branches, original=original, generator=generator)
            setattr(self, f"inception{name}", module)
            channels = after[name] = branches.outputs
        inner = _scaled(factor, 128, 1024)
        for name, module_name in {"aux1": "4a", "aux2": "4d"}.items() if auxiliary else ():
            head = AuxiliaryHead(
                d, after[module_name], outputs, inner, original=original, generator=generator
            )
            setattr(self, name, head)
        self.avgpool = adaptive_pool(d, 1)
        self.dropout = nn.Dropout((0.4 if original else 0.2) if dropout is None else dropout)
        self.fc = readout(channels, outputs, generator)

    @property
    def heads(self) -> tuple[str, ...]:
        """The maps that belong to the outcome and not to x."""
        return ("aux1.fc2", "aux2.fc2", "fc") if self.auxiliary else ("fc",)

    @property
    def optional(self) -> tuple[str, ...]:
        """Parts that a file of weights may hold although this network is without them."""
        return () if self.auxiliary else ("aux1", "aux2")

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stem, three groups of modules, last maps."""
        groups: list[list[nn.Module]] = [[self.conv1, self.conv2, self.conv3]]
        for stage in "345":
            modules = [self._module(name) for name in MODULES if name[0] == stage]
            groups.append(modules)
        if self.auxiliary:
            for head in (self.get_submodule("aux1"), self.get_submodule("aux2")):
                groups[2] += [head.get_submodule("conv"), head.get_submodule("fc1")]
        return [*groups, [self.get_submodule(name) for name in self.heads]]

    def _module(self, name: str) -> nn.Module:
        return self.get_submodule(f"inception{name}")

    def forward(self, x: Tensor) -> Tensor | GoogLeNetOutputs:
        require_grid("googlenet", self.grid, x, least=self.least, network=self)
        training = self.training and self.auxiliary
        extra: list[Tensor] = []
        if self.transform_input:
            x = _by_halves(x)
        h = self.conv2(self.norm(self.maxpool1(self.conv1(x))))
        h = self.maxpool2(self.norm(self.conv3(h)))  # 28 x 28 for x of 224 x 224
        for name in MODULES:
            if name == "4a":
                h = self.maxpool3(h)  # 14 x 14
            elif name == "5a":
                h = self.maxpool4(h)  # 7 x 7
            h = self._module(name)(h)
            if training and name in ("4a", "4d"):
                extra.append(self.get_submodule("aux1" if name == "4a" else "aux2")(h))
        y = self.fc(self.dropout(self.avgpool(h).flatten(1)))
        return GoogLeNetOutputs(y, extra[1], extra[0]) if training else y


def _by_halves(x: Tensor) -> Tensor:
    each = (3, *[1] * (x.ndim - 2))
    factor = x.new_tensor([s / 0.5 for s in DEVIATIONS]).view(each)
    return x * factor + x.new_tensor([(m - 0.5) / 0.5 for m in MEANS]).view(each)


def _scaled(factor: float, *channels: int) -> tuple[int, ...]:
    return tuple(max(1, round(factor * each)) for each in channels)


class AuxiliaryHead(nn.Module):
    """A small classifier on inner maps: pool to 4 pixels along each axis, 128 channels, two maps.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of the maps.
        outputs: :math:`P`.
        widths: channels, and units of the map between.
        original: a pool of 5 pixels with stride 3, as published, and a bias; else any maps are
            pooled to 4 pixels, and normalised.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, P)``.

    References:
        Szegedy et al. (2015), Going deeper with convolutions, section 5.
    """

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        outputs: int,
        widths: tuple[int, ...] = (128, 1024),
        *,
        original: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d, (channels, units) = dimensions, widths
        # On the 14 pixels of x of 224 the published pool leaves 4, and the second does nothing.
        first = average_pool(d, 5, stride=3) if original else nn.Identity()
        self.pool = nn.Sequential(first, adaptive_pool(d, 4))
        self.conv = ConvolutionUnit(
            d, in_channels, channels, 1, normalized=not original, generator=generator
        )
        self.fc1 = affine(channels * 4**d, units, generator=generator)
        self.dropout = nn.Dropout(0.7)
        self.fc2 = readout(units, outputs, generator)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv(self.pool(x)).flatten(1)
        return self.fc2(self.dropout(torch.relu(self.fc1(h))))
