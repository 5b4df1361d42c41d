"""VGG networks: stacks of the smallest convolutions."""

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import adaptive_pool, batch_norm, convolution, max_pool, readout
from ansatz.spec import Inputs

_LEAST = 32  # five pools halve it


class VGG(nn.Module):
    """Five stacks of 3 x 3 convolutions, a pool after each, and three connected layers.

    Two convolutions of 3 x 3 pixels see 5 x 5 with :math:`18 C^2` weights instead of
    :math:`25 C^2`, three see 7 x 7 with :math:`27 C^2` instead of :math:`49 C^2`, with more
    kinks in between. Names and shapes of the weights are torchvision's; with
    ``batch_norm=True`` those of its variants with normalisation.

    References:
        Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
        recognition, table 1. https://arxiv.org/abs/1409.1556
    """

    heads: tuple[str, ...] = ("classifier.6",)  # the maps of the outcome, not of x
    name = "vgg"
    depths: tuple[int, ...] = (1, 1, 2, 2, 2)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        hidden: int = 4096,
        batch_norm: bool = False,
        dropout: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.grid = grid = read_grid(self.name, inputs, least=_LEAST)
        require_whole(f"width of {self.name}", width)
        require_whole(f"hidden of {self.name}", hidden)
        d, channels, layers = grid.dimensions, grid.channels, list[nn.Module]()
        for depth, times in zip(self.depths, (1, 2, 4, 8, 8), strict=True):
            for _ in range(depth):
                layers += _convolved(d, channels, times * width, batch_norm, generator)
                channels = times * width
            layers.append(max_pool(d, 2, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = adaptive_pool(d, 7)
        self.classifier = nn.Sequential(
            affine(channels * 7**d, hidden, generator=generator),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            affine(hidden, hidden, generator=generator),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            readout(hidden, outputs, generator),
        )

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: five stacks, the hidden layers, the last map."""
        groups: list[list[nn.Module]] = [[]]
        for module in self.features:
            if any(True for _ in module.parameters()):
                groups[-1].append(module)
            elif not isinstance(module, nn.ReLU):  # a pool ends its stack
                groups.append([])
        return [*groups[:-1], [self.classifier[0], self.classifier[3]], [self.classifier[6]]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid(self.name, self.grid, x, least=_LEAST, network=self)
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _convolved(
    d: int, before: int, after: int, normalized: bool, generator: torch.Generator | None
) -> list[nn.Module]:
    layers = [convolution(d, before, after, 3, padding=1, generator=generator)]
    return [*layers, *([batch_norm(d, after)] if normalized else []), nn.ReLU(inplace=True)]


class VGG11(VGG):
    r"""The VGG network of 11 layers with weights: 8 convolutions, three connected layers.

    .. math:: h_{l+1} = \mathrm{ReLU}(W_l * h_l + b_l)

    Column A of the paper's table, 132,863,336 parameters for 3 channels and 1,000 outputs.

    Args:
        inputs: a grid of at least 32 pixels along each axis; a number of channels for images of
            any such size.
        outputs: :math:`P`.
        width: channels of the first stack; the others have 2, 4, 8 and 8 times as many.
        hidden: units of the two fully connected layers.
        batch_norm: whether each convolution is followed by batch normalisation.
        dropout: probability that a unit of a hidden layer is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import VGG11
        >>> VGG11(1, 2, width=2, hidden=8)(torch.randn(3, 1, 40, 40)).shape
        torch.Size([3, 2])

    References:
        Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
        recognition, table 1. https://arxiv.org/abs/1409.1556
    """

    name, depths = "vgg11", (1, 1, 2, 2, 2)


class VGG13(VGG):
    """The VGG network of 13 layers with weights: 10 convolutions, three connected layers.

    Column B of the paper's table, 133,047,848 parameters for 3 channels and 1,000 outputs.
    Its arguments are those of :class:`VGG11`.

    Example:
        >>> import torch
        >>> from ansatz.networks import VGG13
        >>> VGG13(1, 2, width=2, hidden=8)(torch.randn(3, 1, 40, 40)).shape
        torch.Size([3, 2])

    References:
        Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
        recognition, table 1. https://arxiv.org/abs/1409.1556
    """

    name, depths = "vgg13", (2, 2, 2, 2, 2)


class VGG16(VGG):
    """The VGG network of 16 layers with weights: 13 convolutions, three connected layers.

    Column D of the paper's table, 138,357,544 parameters for 3 channels and 1,000 outputs.
    Its arguments are those of :class:`VGG11`.

    Example:
        >>> import torch
        >>> from ansatz.networks import VGG16
        >>> VGG16(1, 2, width=2, hidden=8)(torch.randn(3, 1, 40, 40)).shape
        torch.Size([3, 2])

    References:
        Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
        recognition, table 1. https://arxiv.org/abs/1409.1556
    """

    name, depths = "vgg16", (2, 2, 3, 3, 3)


class VGG19(VGG):
    """The VGG network of 19 layers with weights: 16 convolutions, three connected layers.

    Column E of the paper's table, 143,667,240 parameters for 3 channels and 1,000 outputs.
    Its arguments are those of :class:`VGG11`.

    Example:
        >>> import torch
        >>> from ansatz.networks import VGG19
        >>> VGG19(1, 2, width=2, hidden=8)(torch.randn(3, 1, 40, 40)).shape
        torch.Size([3, 2])

    References:
        Simonyan & Zisserman (2015), Very deep convolutional networks for large-scale image
        recognition, table 1. https://arxiv.org/abs/1409.1556
    """

    name, depths = "vgg19", (2, 2, 4, 4, 4)
