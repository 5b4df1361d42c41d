"""Linear networks: of the columns of a table, of a whole grid, of each pixel."""

import math

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.embedding import CategoryEmbedding
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.link import LINKS
from ansatz.networks.grid_inputs import read_grid, require_grid, require_size
from ansatz.networks.grid_layers import adaptive_pool, convolution
from ansatz.networks.inputs import require_columns, require_vector
from ansatz.spec import Inputs, InputSpec


class Linear(nn.Module):
    r"""The linear predictor of a generalised linear model.

    .. math:: f(x) = W x + b + \sum_c E_c[\text{code}_c]

    A categorical column has one coefficient per level and output (the row of its table
    :math:`E_c`), as if its one-hot columns stood in x, so the model is linear in its parameters
    and its likelihood is as convex as the likelihood allows. All start at zero: the constant model.

    Args:
        inputs: the columns, or their number :math:`D`.
        outputs: :math:`P`.
        link: of the mean to the first output, where it is not the likelihood's own: the output is
            mapped to the likelihood's raw number.
        own_link: the likelihood's, which ``link`` takes the place of.
        generator: accepted like every network's; nothing is drawn.

    Attributes:
        hidden, activation, dropout, output: those of an ``MLP`` without hidden layers.

    Shapes:
        - x: ``(B, D)``.
        - codes: ``(B, C)``, only for inputs with cardinalities.
        - returns: ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Linear
        >>> Linear(3, 2)(torch.randn(1, 3))
        tensor([[0., 0.]], grad_fn=<AddmmBackward0>)

    References:
        McCullagh & Nelder (1989), Generalized linear models, section 2.2.
    """

    widths: tuple[int, ...] = ()

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        link: str | None = None,
        own_link: str | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        require_vector("linear", spec)
        if link is not None and link not in LINKS.get(str(own_link), {}):
            raise UsageError(f"linear: no link '{link}' in the place of '{own_link}'.")
        self.link, self.own_link = link, own_link
        self.features, self.outputs, self.dropout = spec.features, outputs, 0.0
        self.hidden, self.activation = nn.ModuleList(), nn.Identity()
        self.output = affine(spec.features, outputs, init="zeros", generator=generator)
        self.levels = None
        if spec.cardinalities:
            self.levels = CategoryEmbedding(spec.cardinalities, dim=outputs, init="zeros")

    @property
    def is_plain(self) -> bool:
        """True without categorical columns and links: then it is one ``torch.nn.Linear``."""
        return self.levels is None and self.link is None

    def forward(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        require_columns("linear", self.features, self.levels is not None, x, codes)
        predictor = self.output(x)
        if self.levels is not None and codes is not None:
            effects = self.levels(codes).unflatten(-1, (-1, self.outputs))  # (B, C, P)
            predictor = predictor + effects.sum(-2)
        if self.link is None:
            return predictor
        first = LINKS[str(self.own_link)][self.link].to_raw(predictor[:, :1])
        return torch.cat([first, predictor[:, 1:]], 1)


class LinearGrid(nn.Module):
    r"""One linear map of all pixels, after averaging neighbours where there are too many.

    .. math:: f(x) = W \operatorname{vec}(\bar{x}) + b

    with :math:`\bar{x}` the means over n / r blocks along an axis of n pixels, rounded up, and r
    the smallest number that leaves at most ``limit`` numbers. Where r divides n, blocks have r
    pixels; else they are nearly equal, and neighbours may share a pixel. W and b start at 0: the
    model begins as the constant one, and whatever a network does better than it, shape and place
    did.

    Args:
        inputs: a grid of known size.
        outputs: :math:`P`.
        limit: numbers that W may see of one example.
        generator: for the common signature; nothing is drawn.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, P)``.

    Example:
        >>> from ansatz.networks import LinearGrid
        >>> from ansatz.spec import Inputs, InputSpec
        >>> LinearGrid(InputSpec.grid(3, 224, 224), 10).pooled_size
        (32, 32)
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        limit: int = 4096,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("limit of linear_grid", limit)
        self.grid = read_grid("linear_grid", inputs, needs_size=True)
        self.pooled_size = _pooled(self.grid.channels, self.grid.size, limit)
        self.pool: nn.Module = (
            nn.Identity()
            if self.pooled_size == self.grid.size
            else adaptive_pool(self.grid.dimensions, self.pooled_size)
        )
        self.output = affine(
            self.grid.channels * math.prod(self.pooled_size),
            outputs,
            init="zeros",
            generator=generator,
        )

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its one layer."""
        return [[self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_size("linear_grid", self.grid, x, network=self)
        return self.output(self.pool(x).flatten(1))


def _pooled(channels: int, size: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """The grid after averaging; one pixel at least, whatever the channels."""
    for r in range(1, max(size) + 1):
        pixels = tuple(-(-length // r) for length in size)
        if channels * math.prod(pixels) <= limit:
            return pixels
    return (1,) * len(size)


class LinearPixels(nn.Module):
    r"""The linear predictor of each pixel from its neighbourhood: one convolution.

    .. math:: f(x)_i = b + \sum_{j \in N} W_j x_{i + j}

    with N the k pixels along each axis around pixel i, zeros beyond the border: a generalised
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

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
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

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its one layer."""
        return [[self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("linear_pixels", self.grid, x, network=self)
        y: Tensor = self.output(x)
        return y
