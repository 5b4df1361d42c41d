"""AlexNet: five convolutions and three fully connected layers."""

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.norm import LocalResponseNorm
from ansatz.networks.grid_inputs import GridInputs, read_grid, require_grid
from ansatz.networks.grid_layers import adaptive_pool, convolution, max_pool, readout
from ansatz.spec import Inputs


class AlexNet(nn.Module):
    """The network that won ImageNet in 2012, as torchvision builds it or as it was published.

    By default torchvision's, with its names and shapes of weights: 64, 192, 384, 256 and 256
    channels (the later one-machine version), 61,100,840 parameters for 3 channels and 1,000
    outputs. ``original=True`` is the one of the paper: two towers, which meet in the third
    convolution and in the fully connected layers, of 96, 256, 384, 384 and 256 channels
    together, normalised over neighbouring channels after the first two: 60,965,224 parameters,
    and 55, 27, 13, 13, 13 pixels along each axis for x of 227 x 227, which pools bring to 6.

    Args:
        inputs: a grid of at least 63 pixels along each axis (original: 67); a number of channels
            for images of any such size.
        outputs: :math:`P`.
        original: the network of the paper.
        width: channels of the first convolution; the others follow in proportion. 64, or 96 of
            the original, when not given.
        hidden: units of the two fully connected layers.
        dropout: probability that a unit before them is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import AlexNet
        >>> AlexNet(3, 10, width=4, hidden=16)(torch.randn(2, 3, 64, 64)).shape
        torch.Size([2, 10])

    References:
        Krizhevsky, Sutskever & Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 3.5. Krizhevsky (2014), One weird trick for parallelizing
        convolutional neural networks. https://arxiv.org/abs/1404.5997
    """

    heads: tuple[str, ...] = ("classifier.6",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        original: bool = False,
        width: int | None = None,
        hidden: int = 4096,
        dropout: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.least = 67 if original else 63  # fewer leave nothing after the third pool
        self.grid = grid = read_grid("alexnet", inputs, least=self.least)
        width = require_whole("width of alexnet", width or (96 if original else 64), low=2)
        require_whole("hidden of alexnet", hidden)
        build = _original if original else _single
        self.features, channels = build(grid, width, generator)
        self.avgpool = adaptive_pool(grid.dimensions, 6)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            affine(channels * 6**grid.dimensions, hidden, generator=generator),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            affine(hidden, hidden, generator=generator),
            nn.ReLU(inplace=True),
            readout(hidden, outputs, generator),
        )

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: each convolution, the hidden layers, the last map."""
        layers = [[m] for m in self.features if any(True for _ in m.parameters())]
        return [*layers, [self.classifier[1], self.classifier[4]], [self.classifier[6]]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("alexnet", self.grid, x, least=self.least, network=self)
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _single(
    grid: GridInputs, width: int, generator: torch.Generator | None
) -> tuple[nn.Sequential, int]:
    d, (c1, c2, c3, c4) = grid.dimensions, (width, 3 * width, 6 * width, 4 * width)
    layers = nn.Sequential(
        convolution(d, grid.channels, c1, 11, stride=4, padding=2, generator=generator),
        nn.ReLU(inplace=True),
        max_pool(d, 3, stride=2),
        convolution(d, c1, c2, 5, padding=2, generator=generator),
        nn.ReLU(inplace=True),
        max_pool(d, 3, stride=2),
        convolution(d, c2, c3, 3, padding=1, generator=generator),
        nn.ReLU(inplace=True),
        convolution(d, c3, c4, 3, padding=1, generator=generator),
        nn.ReLU(inplace=True),
        convolution(d, c4, c4, 3, padding=1, generator=generator),
        nn.ReLU(inplace=True),
        max_pool(d, 3, stride=2),
    )
    return layers, c4


def _original(
    grid: GridInputs, width: int, generator: torch.Generator | None
) -> tuple[nn.Sequential, int]:
    """Towers are groups of channels; their number must be even."""
    d = grid.dimensions
    c1, c2, c3 = (2 * round(width * part / 2) for part in (1, 8 / 3, 4))
    layers = nn.Sequential(
        convolution(d, grid.channels, c1, 11, stride=4, generator=generator),
        nn.ReLU(inplace=True),
        LocalResponseNorm(),
        max_pool(d, 3, stride=2),
        convolution(d, c1, c2, 5, padding=2, groups=2, generator=generator),
        nn.ReLU(inplace=True),
        LocalResponseNorm(),
        max_pool(d, 3, stride=2),
        convolution(d, c2, c3, 3, padding=1, generator=generator),
        nn.ReLU(inplace=True),
        convolution(d, c3, c3, 3, padding=1, groups=2, generator=generator),
        nn.ReLU(inplace=True),
        convolution(d, c3, c2, 3, padding=1, groups=2, generator=generator),
        nn.ReLU(inplace=True),
        max_pool(d, 3, stride=2),
    )
    return layers, c2
