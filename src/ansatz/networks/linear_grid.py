"""The linear model of a grid: a weight per cell."""

import math

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_size
from ansatz.networks.grid_layers import adaptive_pool
from ansatz.spec import InputSpec


class LinearGrid(nn.Module):
    r"""One linear map of all cells, after averaging neighbours where there are too many.

    .. math:: f(x) = W \operatorname{vec}(\bar{x}) + b

    with :math:`\bar{x}` the means over n / r blocks along an axis of n cells, rounded up, and r the
    smallest number that leaves at most ``limit`` numbers. Where r divides n, blocks have r cells;
    else they are nearly equal, and neighbours may share a cell. W and b start at 0: the model
    begins as the constant one, and whatever a network does better than it, shape and place did.

    Args:
        inputs: a grid of known size.
        outputs: :math:`P`.
        limit: numbers that W may see of one example.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> from ansatz.networks import LinearGrid
        >>> from ansatz.spec import InputSpec
        >>> LinearGrid(InputSpec.grid(3, 224, 224), 10).cells
        (32, 32)
    """

    def __init__(
        self,
        inputs: InputSpec | int,
        outputs: int,
        *,
        limit: int = 4096,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("limit of linear_grid", limit)
        self.grid = read_grid("linear_grid", inputs, needs_size=True)
        self.cells = _pooled(self.grid.channels, self.grid.size, limit)
        self.pool: nn.Module = (
            nn.Identity()
            if self.cells == self.grid.size
            else adaptive_pool(self.grid.dimensions, self.cells)
        )
        self.output = affine(
            self.grid.channels * math.prod(self.cells), outputs, init="zeros", generator=generator
        )

    @property
    def heads(self) -> tuple[str, ...]:
        """The maps that belong to the outcome and not to x."""
        return ("output",)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its one layer."""
        return [[self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_size("linear_grid", self.grid, x, network=self)
        return self.output(self.pool(x).flatten(1))


def _pooled(channels: int, size: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """The grid after averaging; one cell at least, whatever the channels."""
    for r in range(1, max(size) + 1):
        cells = tuple(-(-length // r) for length in size)
        if channels * math.prod(cells) <= limit:
            return cells
    return (1,) * len(size)
