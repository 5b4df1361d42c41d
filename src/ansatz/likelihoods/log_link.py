"""The log link without overflow."""

import torch
from torch import Tensor

LIMIT = 50.0  # e^50 = 5e21: beyond any mean, and its products stay far below float32's 3e38


def soft_cap(x: Tensor, limit: float = LIMIT) -> Tensor:
    r"""x up to ``limit``, and from there on a logarithm that joins it with slope 1.

    .. math:: c(x) = \min(x, L) + \log(1 + \max(x - L, 0))

    so that :math:`e^{c(x)}` is :math:`e^x` up to L and its tangent :math:`e^L (1 + x - L)` beyond:
    finite, and with a gradient that still pulls back, where a clamp would have none.
    """
    return x.clamp(max=limit) + torch.log1p(torch.relu(x - limit))


def soft_clamp(x: Tensor, limit: float = LIMIT) -> Tensor:
    """:func:`soft_cap` on both sides: x within +-``limit``, logarithmic growth beyond."""
    return -soft_cap(-soft_cap(x, limit), limit)
