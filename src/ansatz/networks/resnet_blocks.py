"""The two residual blocks of residual networks on grids."""

import torch
from torch import Tensor, nn

from ansatz.networks.grid_layers import batch_norm, convolution


class BasicBlock(nn.Module):
    r"""Two convolutions with kernel size 3 whose result is added to what came in.

    .. math:: y = \mathrm{ReLU}(N_2(W_2 * \mathrm{ReLU}(N_1(W_1 * x))) + S x)

    N are batch normalisations; S is the identity, or ``downsample`` where sizes differ. A zero
    factor in :math:`N_2` makes y = ReLU(x).

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of x.
        channels: channels of y.
        stride: of the first convolution.
        downsample: S; None for the identity.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, channels, *size')``, a pixel per stride.

    Example:
        >>> import torch
        >>> from ansatz.networks import BasicBlock
        >>> BasicBlock(2, 8, 8)(torch.randn(2, 8, 5, 5)).shape
        torch.Size([2, 8, 5, 5])

    References:
        He et al. (2016), Deep residual learning for image recognition, figure 5, left.
        https://arxiv.org/abs/1512.03385
    """

    expansion = 1

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        channels: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.conv1 = convolution(
            dimensions,
            in_channels,
            channels,
            3,
            stride=stride,
            padding=1,
            bias=False,
            generator=generator,
        )
        self.bn1 = batch_norm(dimensions, channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = convolution(
            dimensions, channels, channels, 3, padding=1, bias=False, generator=generator
        )
        self.bn2 = batch_norm(dimensions, channels)
        self.downsample = downsample

    @property
    def last_norm(self) -> nn.Module:
        """The normalisation before the sum."""
        return self.bn2

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    r"""Three convolutions with kernel sizes 1, 3 and 1, whose result is added to what came in.

    .. math:: y = \mathrm{ReLU}(N_3(W_3 * \phi(W_2 * \phi(W_1 * x))) + S x), \qquad
              \phi(W * x) = \mathrm{ReLU}(N(W * x))

    The first narrows to ``channels`` and the last widens to four times as many. The stride is that
    of the middle one, as in torchvision ("version 1.5"); in the paper it is that of the first.

    Args:
        dimensions: number of axes of the grid.
        in_channels: channels of x.
        channels: channels inside; y has four times as many.
        stride: of the middle convolution.
        downsample: S; None for the identity.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, in_channels, *size)``; returns ``(B, 4 * channels, *size')``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Bottleneck
        >>> Bottleneck(1, 16, 4)(torch.randn(2, 16, 9)).shape
        torch.Size([2, 16, 9])

    References:
        He et al. (2016), Deep residual learning for image recognition, figure 5, right.
        https://arxiv.org/abs/1512.03385
    """

    expansion = 4

    def __init__(
        self,
        dimensions: int,
        in_channels: int,
        channels: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d, wide = dimensions, channels * self.expansion
        self.conv1 = convolution(d, in_channels, channels, 1, bias=False, generator=generator)
        self.bn1 = batch_norm(d, channels)
        self.conv2 = convolution(
            d, channels, channels, 3, stride=stride, padding=1, bias=False, generator=generator
        )
        self.bn2 = batch_norm(d, channels)
        self.conv3 = convolution(d, channels, wide, 1, bias=False, generator=generator)
        self.bn3 = batch_norm(d, wide)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    @property
    def last_norm(self) -> nn.Module:
        """The normalisation before the sum."""
        return self.bn3

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


def zero_last_norms(network: nn.Module) -> None:
    """Lets every residual block start as ReLU of what comes in: zero factors before the sum.

    References:
        Goyal et al. (2017), Accurate, large minibatch SGD, section 5.1.
        https://arxiv.org/abs/1706.02677
    """
    for block in network.modules():
        if isinstance(block, BasicBlock | Bottleneck):
            nn.init.zeros_(block.last_norm.get_parameter("weight"))
