"""LeNet-5: convolutions and pools, then a small fully connected network."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.schemes import draw_normal
from ansatz.networks.grid_inputs import read_grid, require_size
from ansatz.networks.grid_layers import average_pool, convolution, max_pool, readout
from ansatz.spec import Inputs

# Which of the 6 maps of S2 each of the 16 maps of C3 sees: table I of the paper.
C3_TABLE = (
    (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5), (0, 4, 5), (0, 1, 5),
    (0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (0, 3, 4, 5), (0, 1, 4, 5), (0, 1, 2, 5),
    (0, 1, 3, 4), (1, 2, 4, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5),
)  # fmt: skip


_SIDE, _PADDING = 32, 2  # pixels a side that it was made for, and what MNIST's 28 lack on each


class LeNet5(nn.Module):
    r"""LeNet-5: two convolutions, two pools, three fully connected layers.

    Signals of 1 axis, images and volumes alike: kernel size 5 along each axis, 6 and 16 channels,
    pools of 2, then 120, 84 and P units. On 32 x 32 images, and on MNIST's of 28 x 28, which are
    padded to 32 x 32, it has 61,706 parameters (with P = 10).

    By default ReLU and max pooling. ``classic=True`` is the network of 1998: tanh scaled as
    :math:`1.7159 \tanh(2 z / 3)`, average pools with a trained factor and constant per channel,
    and maps of C3 that see only some of S2: 156, 12, 1,516, 32, 48,120 and 10,164 trained
    numbers, which the paper sums up to 60,000. Its last layer, Gaussian distances to fixed
    pictures of the digits, is left out: the output is a linear map here as well.

    Args:
        inputs: a grid of known size, at least 12 pixels along each axis (with the padding).
        outputs: :math:`P`.
        classic: the network of 1998.
        padding: zeros around x. None: 2 where an axis has fewer than 32 pixels, so that 28 are 32,
            and 0 for larger x, which come with their margin.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> from ansatz.networks import LeNet5
        >>> from ansatz.spec import Inputs, InputSpec
        >>> network = LeNet5(InputSpec.grid(1, 28, 28), 10)
        >>> sum(p.numel() for p in network.parameters())
        61706
        >>> sum(p.numel() for p in LeNet5(InputSpec.grid(1, 32, 32), 10).parameters())
        61706

    References:
        LeCun, Bottou, Bengio & Haffner (1998), Gradient-based learning applied to document
        recognition, section II.B.
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        classic: bool = False,
        padding: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if padding is not None:
            require_whole("padding of lenet5", padding, low=0, high=16)
        least = 16 - 2 * (_PADDING if padding is None else padding)
        grid = read_grid("lenet5", inputs, least=max(least, 1), needs_size=True)
        if padding is None:
            padding = _PADDING if min(grid.size) < _SIDE else 0
        if classic and grid.dimensions != 2:
            raise UsageError(f"classic lenet5 takes images, got {grid.dimensions} axes.")
        self.grid = grid
        size = tuple(((s + 2 * padding - 4) // 2 - 4) // 2 for s in grid.size)
        d = grid.dimensions
        # U[-1/sqrt(n), 1/sqrt(n)] of n inputs: a sixth of the variance of He's start, from which so
        # small a network learns worse in ten passes.
        start: dict[str, Any] = {"init": "lecun_uniform", "gain": 3**-0.5}
        if classic:
            start = {"init": "lecun_normal"}
        start["generator"] = generator
        self.c1 = convolution(d, grid.channels, 6, 5, padding=padding, **start)
        self.s2 = TrainedPool(6) if classic else max_pool(d, 2)
        self.c3 = SparseConvolution(generator) if classic else convolution(d, 6, 16, 5, **start)
        self.s4 = TrainedPool(16) if classic else max_pool(d, 2)
        self.c5 = affine(16 * math.prod(size), 120, **start)
        self.f6 = affine(120, 84, **start)
        self.output = readout(84, outputs, generator)
        self.activation: nn.Module = ScaledTanh() if classic else nn.ReLU()
        # The largest of rectified numbers is the rectified largest: a quarter of the work.
        self.before_pool: nn.Module = ScaledTanh() if classic else nn.Identity()

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome."""
        return [[self.c1, self.s2], [self.c3, self.s4], [self.c5, self.f6], [self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_size("lenet5", self.grid, x, network=self)
        h = self.activation(self.s2(self.before_pool(self.c1(x))))
        h = self.activation(self.s4(self.before_pool(self.c3(h))))
        h = self.activation(self.c5(h.flatten(1)))  # (B, 120)
        return self.output(self.activation(self.f6(h)))


class ScaledTanh(nn.Module):
    r"""The scaled hyperbolic tangent of LeNet-5.

    .. math:: \phi(z) = 1.7159 \tanh(2 z / 3)

    It maps 1 to 1 and -1 to -1, where its second derivative is largest.

    References:
        LeCun, Bottou, Bengio & Haffner (1998), appendix A.
    """

    def forward(self, z: Tensor) -> Tensor:
        return 1.7159 * torch.tanh(z * (2 / 3))


class TrainedPool(nn.Module):
    r"""Average pooling with a trained factor and constant per channel.

    .. math:: y_c = a_c \bar{x}_c + b_c, \qquad \bar{x}_c \text{ over } 2 \times 2 \text{ pixels}

    Shapes:
        - x: ``(B, C, H, W)``; returns ``(B, C, H // 2, W // 2)``.

    References:
        LeCun, Bottou, Bengio & Haffner (1998), section II.B, layer S2.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))  # a
        self.bias = nn.Parameter(torch.zeros(channels))  # b
        self.pool = average_pool(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x) * self.weight[:, None, None] + self.bias[:, None, None]


class SparseConvolution(nn.Module):
    """The layer C3: 16 maps of 5 x 5 kernels, each of which sees some of 6 maps.

    Shapes:
        - x: ``(B, 6, H, W)``; returns ``(B, 16, H - 4, W - 4)``.

    References:
        LeCun, Bottou, Bengio & Haffner (1998), table I.
    """

    connected: Tensor

    def __init__(self, generator: torch.Generator | None = None) -> None:
        super().__init__()
        pairs = [(k, c) for k, seen in enumerate(C3_TABLE) for c in seen]
        self.register_buffer("connected", torch.tensor([6 * k + c for k, c in pairs]))
        self.weight = nn.Parameter(torch.empty(len(pairs), 5, 5))  # one kernel per connection
        for kernel, (k, _) in zip(self.weight, pairs, strict=True):
            draw_normal(kernel, (25 * len(C3_TABLE[k])) ** -0.5, generator)
        self.bias = nn.Parameter(torch.zeros(len(C3_TABLE)))

    def forward(self, x: Tensor) -> Tensor:
        kernels = self.weight.new_zeros(96, 5, 5).index_copy(0, self.connected, self.weight)
        return conv2d(x, kernels.view(16, 6, 5, 5), self.bias)
