"""Highway networks on grids: gates between what a layer makes and what it was given."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_number, require_whole
from ansatz.layers.residual import Highway
from ansatz.networks.grid_inputs import read_grid, require_grid, require_size
from ansatz.networks.grid_layers import adaptive_pool, convolution, max_pool, readout
from ansatz.networks.inputs import MAX_DEPTH
from ansatz.spec import Inputs

Kind = Literal["convolutional", "dense"]


class HighwayConvolution(nn.Module):
    r"""A convolution with a learned gate between its result and what came in.

    .. math:: y = T \odot \mathrm{ReLU}(W * x + b) + (1 - T) \odot x, \qquad
              T = \sigma(V * x + c)

    T = 0 is the identity, T = 1 the plain layer; c starts below 0, so that it mostly carries.

    Args:
        dimensions: number of axes of the grid.
        channels: of x and of y.
        gate_bias: the value that c starts at.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, channels, *size)``; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.networks import HighwayConvolution
        >>> HighwayConvolution(1, 2, gate_bias=-100.0)(torch.tensor([[[3.0], [-1.0]]])).flatten()
        tensor([ 3., -1.], grad_fn=<ViewBackward0>)

    References:
        Srivastava, Greff & Schmidhuber (2015), Training very deep networks, section 3.
        https://arxiv.org/abs/1507.06228
    """

    def __init__(
        self,
        dimensions: int,
        channels: int,
        *,
        gate_bias: float = -1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.branch = convolution(dimensions, channels, channels, 3, padding=1, generator=generator)
        self.gate = convolution(
            dimensions,
            channels,
            channels,
            3,
            padding=1,
            init="lecun_normal",
            generator=generator,
        )
        nn.init.constant_(self.gate.get_parameter("bias"), gate_bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.lerp(x, torch.relu(self.branch(x)), torch.sigmoid(self.gate(x)))


class HighwayNetwork(nn.Module):
    r"""A deep network of highway layers: convolutional with pools, or fully connected.

    .. math:: h_{l+1} = T_l \odot H_l(h_l) + (1 - T_l) \odot h_l

    ``"convolutional"``: a convolution to ``width`` channels, then ``depth`` highway convolutions
    in three parts with a pool between them, averaged over all pixels in the end; any size of x.
    ``"dense"``: all pixels as one vector, a map to ``width`` units, ``depth`` highway layers.

    Args:
        inputs: a signal, an image or a volume of at least 4 pixels along each axis; of known size
            if dense.
        outputs: :math:`P`.
        kind: ``"convolutional"`` or ``"dense"``.
        depth: highway layers.
        width: channels or units.
        gate_bias: the value that gates start at before the sigmoid.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import HighwayNetwork
        >>> HighwayNetwork(1, 10, depth=6, width=8)(torch.randn(2, 1, 28, 28)).shape
        torch.Size([2, 10])

    References:
        Srivastava, Greff & Schmidhuber (2015), Training very deep networks, sections 3 and 4.
        https://arxiv.org/abs/1507.06228
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        kind: Kind = "convolutional",
        depth: int = 9,
        width: int = 32,
        gate_bias: float = -1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kind not in get_args(Kind):
            raise UsageError(f"kind of highway must be convolutional or dense, got {kind!r}.")
        require_whole("depth of highway", depth, low=3, high=MAX_DEPTH)
        require_whole("width of highway", width)
        require_number("gate_bias of highway", gate_bias)
        self.kind, dense = kind, kind == "dense"
        self.grid = grid = read_grid("highway", inputs, least=1 if dense else 4, needs_size=dense)
        d = grid.dimensions
        self.stem: nn.Module = (
            affine(grid.channels * grid.pixels, width, generator=generator)
            if dense
            else convolution(d, grid.channels, width, 3, padding=1, generator=generator)
        )
        parts = [range(i * depth // 3, (i + 1) * depth // 3) for i in range(3)]
        self.parts = nn.ModuleList(
            nn.Sequential(
                *(
                    Highway(width, activation="relu", gate_bias=gate_bias, generator=generator)
                    if dense
                    else HighwayConvolution(d, width, gate_bias=gate_bias, generator=generator)
                    for _ in part
                )
            )
            for part in parts
        )
        self.pool = nn.Identity() if dense else max_pool(d, 2)
        self.average = nn.Identity() if dense else adaptive_pool(d, 1)
        self.output = readout(width, outputs, generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stem, three parts, last map."""
        return [[self.stem], *([part] for part in self.parts), [self.output]]

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "dense":
            require_size("highway", self.grid, x, network=self)
            x = x.flatten(1)
        else:
            require_grid("highway", self.grid, x, least=4, network=self)
        h = torch.relu(self.stem(x))
        for number, part in enumerate(self.parts):
            h = part(h if number == 0 else self.pool(h))
        return self.output(self.average(h).flatten(1))
