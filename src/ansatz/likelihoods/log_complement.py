"""The logarithm of a probability whose complement is known, from either end."""

import math

import torch
from torch import Tensor


def log_complement(log_h: Tensor) -> Tensor:
    r"""log(1 - e^-h) of a cumulative hazard h > 0, given by its logarithm.

    .. math:: \log(1 - e^{-h}) = \log h + \log\frac{1 - e^{-h}}{h}

    The first form loses its digits where h is large, the second is exact where h is so small that
    1 - e^-h rounds to h, even where h itself underflows. Twice differentiable.

    References:
        Maechler (2012), Accurately computing log(1 - exp(-|a|)).
    """
    small = log_h < 0
    least = math.log(torch.finfo(log_h.dtype).tiny) / 2  # below, the ratio is 1 to all digits
    h = torch.where(small, log_h, 0.0).clamp(min=least).exp()
    below = log_h + (-torch.expm1(-h) / h).log()
    # e^-e^10 is 0 already; an infinite h would have no gradient
    above = torch.log1p(-(-torch.where(small, 0.0, log_h).clamp(max=10).exp()).exp())
    return torch.where(small, below, above)
