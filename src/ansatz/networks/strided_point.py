"""A 1 x 1 convolution with a stride: the cells that it looks at, and nothing else."""

from typing import cast

from torch import Tensor, nn


class StridedPoint(nn.Conv2d):
    r"""A linear map of every s-th cell's channels.

    .. math:: y_{ij} = W x_{si, sj}

    Torch's own ``Conv2d(C, K, 1, stride=s)`` with its keys and its numbers, computed on the cells
    that are left: its backward pass writes beyond its memory on some processors when channels lie
    last and C is below 16 (oneDNN issue 6035). From 16 channels on networks take torch's, whose
    roundings are those of anybody's who loads the same weights.

    Shapes:
        - x: ``(B, C, H, W)``.
        - returns: ``(B, K, ceil(H / s), ceil(W / s))``.
    """

    safe_channels = 16  # a block of channels of the widest processors

    def forward(self, x: Tensor) -> Tensor:
        down, across = cast(tuple[int, int], self.stride)
        return nn.functional.conv2d(x[..., ::down, ::across], self.weight, self.bias)
