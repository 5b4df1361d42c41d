"""The fully convolutional network: scores at several strides, interpolated and added."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import (
    convolution,
    crop,
    max_pool,
    pad_to_multiple,
    transposed_convolution,
)
from ansatz.networks.unet import Norm, double_convolution
from ansatz.spec import Inputs


class FCN(nn.Module):
    r"""The fully convolutional network: coarse scores of a classifier, interpolated and added.

    .. math:: s_L = A_L h_L, \qquad s_l = A_l h_l + \mathrm{up}_2(s_{l+1}), \qquad
              f(x) = \mathrm{up}_{2^{L-m}}(s_{L-m})

    :math:`h_l` are the features of a body like VGG's after l = 1..L stages of two
    convolutions with kernel size 3 and a pooling of 2 pixels, :math:`A_l` maps each pixel to P
    scores, and :math:`\mathrm{up}_f` is a transposed convolution that starts as linear
    interpolation and is learned on. m = ``skips`` finer stages are added: with L = 5, m = 0, 1, 2
    are the FCN-32s, FCN-16s and FCN-8s. The output has the size of x: x is continued by zeros at
    its end to a multiple of :math:`2^L`, and cropped again.

    Args:
        inputs: a signal, an image or a volume; a number of channels for images of any size.
        outputs: :math:`P` per pixel.
        depth: :math:`L`.
        width: channels of the first stage; they double, up to 8 times as many.
        skips: :math:`m < L`; 2, or fewer where the depth allows no more, when not given.
        norm: ``"batch"`` normalises each convolution before its ReLU; None for none.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import FCN
        >>> FCN(3, 2, depth=3, width=4)(torch.randn(1, 3, 20, 33)).shape
        torch.Size([1, 2, 20, 33])

    References:
        Long, Shelhamer and Darrell (2015), Fully convolutional networks for semantic segmentation,
        figure 3 (there on VGG16, with a last interpolation that is not learned).
        https://arxiv.org/abs/1411.4038
    """

    heads: tuple[str, ...] = ("scores", "up")  # the maps of the outcome, not of x

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        depth: int = 5,
        width: int = 32,
        skips: int | None = None,
        norm: Norm | None = "batch",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("depth of fcn", depth, low=1, high=10)
        require_whole("width of fcn", width)
        skips = min(2, depth - 1) if skips is None else skips
        require_whole("skips of fcn", skips, low=0, high=depth - 1)
        if norm not in ("batch", None):
            raise UsageError(f"norm of fcn must be 'batch' or None, got {norm!r}.")
        self.grid = grid = read_grid("fcn", inputs)
        d, self.depth = grid.dimensions, depth
        sizes = [grid.channels, *(width * min(2**i, 8) for i in range(depth))]
        self.body = nn.ModuleList(
            nn.Sequential(
                double_convolution(d, sizes[i], c, c, norm=norm, generator=generator),
                max_pool(d, 2),
            )
            for i, c in enumerate(sizes[1:])
        )
        # From the coarsest to the finest that is added; small weights: near the constant model.
        self.scores = nn.ModuleList(
            convolution(d, c, outputs, 1, init="lecun_normal", gain=0.1, generator=generator)
            for c in reversed(sizes[-1 - skips :])
        )
        factors = [*(2,) * skips, 2 ** (depth - skips)]
        self.up = nn.ModuleList(
            transposed_convolution(d, outputs, outputs, factor, init="linear") for factor in factors
        )

    @property
    def stride(self) -> int:
        """Pixels along each axis that are pooled into one of the coarsest level."""
        stride: int = 2**self.depth
        return stride

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: stage by stage, then scores and interpolations."""
        return [*([stage] for stage in self.body), [self.scores, self.up]]

    def forward(self, x: Tensor) -> Tensor:
        require_grid("fcn", self.grid, x, network=self)
        h = pad_to_multiple(x, self.stride)
        features = []
        for stage in self.body:
            h = stage(h)
            features.append(h)
        y = torch.zeros((), dtype=x.dtype, device=x.device)
        for score, up in zip(self.scores, self.up, strict=True):
            y = up(score(features.pop()) + y)
        return crop(y, x.shape[2:])
