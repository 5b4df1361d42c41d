"""The residual network for small images, signals and volumes."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import adaptive_pool, batch_norm, convolution, readout
from ansatz.networks.resnet_blocks import BasicBlock, zero_last_norms
from ansatz.spec import Inputs


class SmallResNet(nn.Module):
    r"""A residual network of 6n + 2 layers: three stages of n blocks of two convolutions.

    .. math:: x_{l+1} = \mathrm{ReLU}(S x_l + F_l(x_l))

    The stages have w, 2w and 4w channels, on all pixels, half and a quarter of them along each
    axis. S is the identity; between stages it takes every other pixel and appends channels of
    zeros, so no weight is spent on it (option A of the paper). ``residual=False`` leaves S out:
    the plain network, which trains worse the deeper it is. The last maps are averaged over all
    pixels, so x may be of any size.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P`.
        depth: :math:`6n + 2`: 8, 14, 20, 32, 44, 56, 110.
        width: :math:`w`.
        residual: whether S is there.
        zero_init_last: let each block start as ReLU of S x.
        dropout: probability that an averaged feature is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import SmallResNet
        >>> from ansatz.spec import Inputs, InputSpec
        >>> SmallResNet(InputSpec.grid(1, 50), 2, depth=8)(torch.randn(3, 1, 50)).shape
        torch.Size([3, 2])

    References:
        He et al. (2016), Deep residual learning for image recognition, section 4.2.
        https://arxiv.org/abs/1512.03385
    """

    heads: tuple[str, ...] = ("fc",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        depth: int = 20,
        width: int = 16,
        residual: bool = True,
        zero_init_last: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("depth of small_resnet", depth, low=8, high=1_202)
        if depth % 6 != 2:
            raise UsageError(
                f"depth of small_resnet must be 6 n + 2 (8, 14, 20, ...), got {depth}."
            )
        if zero_init_last and not residual:
            raise UsageError("zero_init_last of small_resnet needs residual=True: else all is 0.")
        require_whole("width of small_resnet", width)
        self.grid = grid = read_grid("small_resnet", inputs)
        d, n = grid.dimensions, depth // 6
        self.conv1 = convolution(
            d, grid.channels, width, 3, padding=1, bias=False, generator=generator
        )
        self.bn1 = batch_norm(d, width)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = _stage(d, width, width, n, residual, generator)
        self.layer2 = _stage(d, width, 2 * width, n, residual, generator)
        self.layer3 = _stage(d, 2 * width, 4 * width, n, residual, generator)
        self.avgpool = adaptive_pool(d, 1)
        self.dropout = drop(dropout)
        self.fc = readout(4 * width, outputs, generator)
        if zero_init_last:
            zero_last_norms(self)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stem, three stages, last map."""
        return [[self.conv1, self.bn1], [self.layer1], [self.layer2], [self.layer3], [self.fc]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("small_resnet", self.grid, x, network=self)
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.layer3(self.layer2(self.layer1(h)))
        return self.fc(self.dropout(self.avgpool(h).flatten(1)))


class PaddedShortcut(nn.Module):
    """The shortcut without weights: every ``stride``-th pixel, and channels of zeros.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, C + channels, *size')``.

    References:
        He et al. (2016), Deep residual learning for image recognition, section 3.3 (A).
    """

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.channels, self.stride = channels, stride

    def forward(self, x: Tensor) -> Tensor:
        for axis in range(2, x.ndim):
            x = x[(slice(None),) * axis + (slice(None, None, self.stride),)]
        return pad(x, (0, 0) * (x.ndim - 2) + (0, self.channels))


class PlainBlock(BasicBlock):
    """Two convolutions with kernel size 3, each normalised and rectified; nothing is added.

    References:
        He et al. (2016), Deep residual learning for image recognition, section 3.3.
    """

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)))


def _stage(
    d: int,
    before: int,
    channels: int,
    depth: int,
    residual: bool,
    generator: torch.Generator | None,
) -> nn.Sequential:
    block = BasicBlock if residual else PlainBlock
    changes = before != channels
    shortcut = PaddedShortcut(channels - before, 2) if changes and residual else None
    blocks = [block(d, before, channels, 2 if changes else 1, shortcut, generator=generator)]
    blocks += [block(d, channels, channels, generator=generator) for _ in range(depth - 1)]
    return nn.Sequential(*blocks)
