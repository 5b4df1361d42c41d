"""The linear model of masks."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import convolution
from ansatz.spec import InputSpec


class LinearPixels(nn.Module):
    r"""The linear predictor of each pixel from its neighbourhood: one convolution.

    .. math:: f(x)_i = b + \sum_{j \in N} W_j x_{i + j}

    with N the k cells along each axis around pixel i, zeros beyond the border: a generalised
    linear model with the same coefficients at every place. All start at zero: the constant model.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P` per pixel.
        kernel: :math:`k`, odd.
        generator: accepted like every network's; nothing is drawn.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import LinearPixels
        >>> LinearPixels(3, 2)(torch.randn(1, 3, 8, 9)).shape
        torch.Size([1, 2, 8, 9])

    References:
        McCullagh & Nelder (1989), Generalized linear models, section 2.2.
    """

    def __init__(
        self,
        inputs: InputSpec | int,
        outputs: int,
        *,
        kernel: int = 5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("kernel of linear_pixels", kernel, high=101)
        if kernel % 2 == 0:
            raise UsageError(
                f"kernel of linear_pixels must be odd, so that it has a centre, got {kernel}."
            )
        self.grid = grid = read_grid("linear_pixels", inputs)
        self.output = convolution(
            grid.dimensions, grid.channels, outputs, kernel, padding=kernel // 2, init="zeros"
        )

    @property
    def heads(self) -> tuple[str, ...]:
        """The maps that belong to the outcome and not to x."""
        return ("output",)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its one layer."""
        return [[self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("linear_pixels", self.grid, x, network=self)
        y: Tensor = self.output(x)
        return y
