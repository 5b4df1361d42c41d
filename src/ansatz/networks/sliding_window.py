"""A classifier of the pixel in the centre of a window, at every place at once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.convolution import mirror_pad
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import convolution, max_pool
from ansatz.networks.inputs import check_widths
from ansatz.spec import Inputs

_CONVOLVE = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_POOL = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}


class SlidingWindow(nn.Module):
    r"""A convolutional network that labels the centre of a window, slid over the image.

    .. math:: f(x)_i = c(x_{i - r}, \dots, x_{i + r}), \qquad 2 r + 1 = \text{window}

    The classifier c has stages of a convolution with kernel size ``kernel``, a ReLU and max pooling
    of 2 pixels, then a hidden layer on the ``last`` pixels that are left, and the output. Stage s
    of S thus asks for 2 m + kernel - 1 pixels where the next asks for m; the ``window`` follows,
    and must be odd to have a centre: 45 pixels by default.

    Run patch by patch (``classify``) neighbours repeat almost all their work. ``forward`` does it
    once: pooling with stride 1 instead of 2, and after s poolings pixels that are :math:`2^s` apart
    in place of neighbours (convolutions "à trous"), give *the same numbers* at every pixel. The
    image is mirrored at its border.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P` per pixel.
        widths: channels of each stage.
        kernel: kernel size of their convolutions along each axis.
        last: pixels along each axis that the hidden layer sees.
        hidden: its units.
        generator: where weights are drawn from; torch's global one when not given.

    Attributes:
        window: pixels along each axis that one answer depends on.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import SlidingWindow
        >>> network = SlidingWindow(1, 2, widths=(4, 4), hidden=8)
        >>> network.window, network(torch.randn(1, 1, 10, 12)).shape
        (21, torch.Size([1, 2, 10, 12]))
        >>> network.classify(torch.randn(5, 1, 21, 21)).shape
        torch.Size([5, 2])

    References:
        Ciresan et al. (2012), Deep neural networks segment neuronal membranes in electron
        microscopy images; Farabet et al. (2013), Learning hierarchical features for scene labeling.
        https://doi.org/10.1109/TPAMI.2012.231; the fast form: Giusti et al. (2013), Fast image
        scanning with deep max-pooling convolutional neural networks.
        https://arxiv.org/abs/1302.1700
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: Sequence[int] = (48, 48, 48),
        kernel: int = 4,
        last: int = 3,
        hidden: int = 200,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = check_widths("sliding_window", widths)
        for option, value in (("kernel", kernel), ("last", last), ("hidden", hidden)):
            require_whole(f"{option} of sliding_window", value)
        self.window = last
        for _ in sizes:
            self.window = 2 * self.window + kernel - 1
        if self.window % 2 == 0:
            raise UsageError(
                f"the window of sliding_window would have {self.window} pixels and no centre; "
                "take an even kernel, and an odd last where there is no stage."
            )
        self.grid = grid = read_grid("sliding_window", inputs)
        d, channels = grid.dimensions, (grid.channels, *sizes)
        self.convolutions, self.pools = nn.ModuleList(), nn.ModuleList()
        for stage, (into, out) in enumerate(zip(channels[:-1], sizes, strict=True)):
            made = convolution(d, into, out, kernel, generator=generator)
            self.convolutions.append(_apart(made, 2**stage))
            self.pools.append(max_pool(d, 2, stride=1, dilation=2**stage))
        made = convolution(d, channels[-1], hidden, last, generator=generator)
        self.hidden = _apart(made, 2 ** len(sizes))
        self.activation = nn.ReLU()
        # Small weights, so that it starts near the constant model.
        self.output = convolution(
            d, hidden, outputs, 1, init="lecun_normal", gain=0.1, generator=generator
        )

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome."""
        return [*([layer] for layer in self.convolutions), [self.hidden], [self.output]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("sliding_window", self.grid, x, network=self)
        reach = self.window // 2
        h = mirror_pad(x, ((reach, reach),) * self.grid.dimensions)
        for convolve, pool in zip(self.convolutions, self.pools, strict=True):
            h = self.activation(pool(convolve(h)))
        y: Tensor = self.output(self.activation(self.hidden(h)))
        return y

    def classify(self, patches: Tensor) -> Tensor:
        """The answers for the centres of windows ``(N, C, window, ...)``, ``(N, P)``, one by one.

        With plain neighbours and strides, as the classifier is defined.
        """
        d = self.grid.dimensions
        require_grid("sliding_window", self.grid, patches, network=self)
        if any(n != self.window for n in patches.shape[2:]):
            raise UsageError(
                f"sliding_window classifies windows of {self.window} pixels along each axis, "
                f"got {tuple(patches.shape)}."
            )
        h = patches
        for layer in self.convolutions:
            h = self.activation(_POOL[d](_of_neighbours(layer, h), 2))
        y: Tensor = self.output(self.activation(_of_neighbours(self.hidden, h)))
        return y.flatten(1)


def _apart(layer: Any, gap: int) -> nn.Module:
    """The same convolution of pixels that are ``gap`` apart."""
    layer.dilation = (gap,) * len(layer.kernel_size)
    made: nn.Module = layer
    return made


def _of_neighbours(layer: Any, x: Tensor) -> Tensor:
    """The same convolution of pixels that are neighbours."""
    return _CONVOLVE[x.ndim - 2](x, layer.weight, layer.bias)
