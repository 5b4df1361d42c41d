"""DenseNet: every layer of a block sees the outputs of all before it."""

import re
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.layers.limits import require_whole
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


class DenseLayer(nn.Module):
    r"""Normalise, rectify, convolve, twice; the result is new channels for those after it.

    .. math:: y = W_2 * \phi(W_1 * \phi([x_0, x_1, \dots])), \qquad
              \phi = \mathrm{ReLU} \circ N

    :math:`W_1` has kernel size 1 and reduces to four times ``growth`` channels, :math:`W_2` has 3.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of all that came before.
        growth: channels that it adds, :math:`k`.
        dropout: probability that a number of the result is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, growth, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DenseLayer
        >>> DenseLayer(2, 6, 4)(torch.randn(2, 6, 5, 5)).shape
        torch.Size([2, 4, 5, 5])

    References:
        Huang et al. (2017), Densely connected convolutional networks, section 3 (DenseNet-B).
        https://arxiv.org/abs/1608.06993
    """

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        growth: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d, inner = dimensions, 4 * growth
        self.norm1 = batch_norm(d, in_channels)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = convolution(d, in_channels, inner, 1, bias=False, generator=generator)
        self.norm2 = batch_norm(d, inner)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = convolution(d, inner, growth, 3, padding=1, bias=False, generator=generator)
        self.dropout = drop(dropout)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(self.relu1(self.norm1(x)))
        return self.dropout(self.conv2(self.relu2(self.norm2(inner))))


class _Block(nn.ModuleDict):
    """Layers ``denselayer1``, ``denselayer2``, ...; returns x and all they add, side by side."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.values():
            x = torch.cat([x, layer(x)], 1)
        return x


class DenseNet121(nn.Module):
    """Four dense blocks of 6, 12, 24 and 16 layers: 121 layers with those between and around.

    Within a block each layer sees the outputs of all before it and adds ``growth`` channels; a
    convolution with kernel size 1 and a pool between blocks halve channels and pixels. Names and
    shapes of the weights are torchvision's; 7,978,856 parameters for 3 channels and 1,000 outputs.

    Args:
        inputs: a grid of at least 29 pixels along each axis (stem small: 8); a number of channels
            for images of any such size.
        outputs: :math:`P`.
        stem: ``"imagenet"``, a convolution with kernel size 7 and stride 2 and a pool, or
            ``"small"``, a convolution with kernel size 3 and nothing more.
        growth: channels that a layer adds; the stem has twice as many.
        blocks: layers of each block.
        dropout: probability that a number of a layer's result is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DenseNet121
        >>> network = DenseNet121(3, 10, stem="small", growth=4, blocks=(2, 2, 2, 2))
        >>> network(torch.randn(2, 3, 16, 16)).shape
        torch.Size([2, 10])

    References:
        Huang et al. (2017), Densely connected convolutional networks, table 1.
        https://arxiv.org/abs/1608.06993
    """

    heads: tuple[str, ...] = ("classifier",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        stem: Literal["imagenet", "small"] = "imagenet",
        growth: int = 32,
        blocks: tuple[int, ...] = (6, 12, 24, 16),
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if stem not in ("imagenet", "small"):
            raise UsageError(f"stem of densenet121 must be imagenet or small, got {stem!r}.")
        require_whole("growth of densenet121", growth)
        if not isinstance(blocks, Sequence) or not blocks:
            raise UsageError(
                f"blocks of densenet121 must be a list such as [6, 12, 24, 16], got {blocks!r:.40}."
            )
        depths = [require_whole("blocks of densenet121", depth, high=1000) for depth in blocks]
        halvings = 2 ** (len(depths) - 1)
        # The two strides of the large stem round up: a quarter of the pixels and a bit more.
        self.least = halvings if stem == "small" else 4 * halvings - 3
        self.grid = grid = read_grid("densenet121", inputs, least=self.least)
        d, channels = grid.dimensions, 2 * growth
        self.features = _stem(d, grid.channels, channels, stem == "small", generator)
        for number, depth in enumerate(depths, 1):
            block = _Block()
            for place in range(1, depth + 1):
                block[f"denselayer{place}"] = DenseLayer(
                    d, channels, growth, dropout=dropout, generator=generator
                )
                channels += growth
            self.features.add_module(f"denseblock{number}", block)
            if number < len(depths):
                self.features.add_module(f"transition{number}", _halve(d, channels, generator))
                channels //= 2
        self.features.add_module("norm5", batch_norm(d, channels))
        self.relu = nn.ReLU()  # a layer, so that the activated maps can be looked at
        self.avgpool = adaptive_pool(d, 1)
        self.classifier = readout(channels, outputs, generator)

    @staticmethod
    def checkpoint_name(key: str) -> str:
        """The name of a tensor whose file is of torchvision's first years: norm.1 for norm1."""
        return re.sub(r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2.", key)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stem, blocks with what follows them, last map."""
        groups: list[list[nn.Module]] = [[]]
        for name, module in self.features.named_children():
            if name.startswith("denseblock"):
                groups.append([])
            if any(True for _ in module.parameters()):
                groups[-1].append(module)
        return [*groups, [self.classifier]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("densenet121", self.grid, x, least=self.least, network=self)
        h = self.relu(self.features(x))
        return self.classifier(self.avgpool(h).flatten(1))


def _stem(
    d: int, before: int, after: int, small: bool, generator: torch.Generator | None
) -> nn.Sequential:
    kernel, stride, padding = (3, 1, 1) if small else (7, 2, 3)
    layers = nn.Sequential()
    layers.add_module(
        "conv0",
        convolution(
            d,
            before,
            after,
            kernel,
            stride=stride,
            padding=padding,
            bias=False,
            generator=generator,
        ),
    )
    layers.add_module("norm0", batch_norm(d, after))
    layers.add_module("relu0", nn.ReLU(inplace=True))
    if not small:
        layers.add_module("pool0", max_pool(d, 3, stride=2, padding=1))
    return layers


def _halve(d: int, channels: int, generator: torch.Generator | None) -> nn.Sequential:
    layers = nn.Sequential()
    layers.add_module("norm", batch_norm(d, channels))
    layers.add_module("relu", nn.ReLU(inplace=True))
    layers.add_module(
        "conv", convolution(d, channels, channels // 2, 1, bias=False, generator=generator)
    )
    layers.add_module("pool", average_pool(d, 2, stride=2))
    return layers
