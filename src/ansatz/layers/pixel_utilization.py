"""How often a convolution looks at each pixel."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.layers.output_size import PerAxis, output_size, per_axis, whole_numbers


def pixel_utilization(
    size: int | Sequence[int],
    kernel: PerAxis,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    r"""The number of windows that each pixel lies in.

    .. math:: U = A^\top \mathbf{1}

    for the matrix A of a convolution whose weights are all 1. Without padding a corner of an image
    enters one window and a pixel in the middle :math:`k^2`; a stride that is larger than the kernel
    leaves pixels that nothing looks at. The count is a product of one count per axis.

    Args:
        size: pixels along each axis.
        kernel: :math:`k`; a number holds for all axes, as for those that follow.
        stride: the step from window to window.
        padding: zeros on each side; they are not counted.
        dilation: the step within a window.

    Shapes:
        - returns: ``size``, whole numbers.

    Example:
        >>> from ansatz.layers import pixel_utilization
        >>> pixel_utilization((3, 3), kernel=2)
        tensor([[1, 2, 1],
                [2, 4, 2],
                [1, 2, 1]])

    References:
        Dumoulin & Visin (2016), section 2.2. https://arxiv.org/abs/1603.07285
    """
    sizes = whole_numbers("size", size)
    counts = torch.ones((), dtype=torch.long)
    options = (("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation))
    columns = [per_axis(name, option, len(sizes)) for name, option in options]
    for n, k, s, p, d in zip(sizes, *columns, strict=True):
        begins = s * torch.arange(output_size(n, k, s, p, d))[:, None]
        places = (begins + d * torch.arange(k)).flatten()  # of the padded line
        line = torch.bincount(places, minlength=n + 2 * p)[p : p + n]
        counts = counts.unsqueeze(-1) * line
    return counts
