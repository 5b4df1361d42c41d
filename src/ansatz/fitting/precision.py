"""Which arithmetic the outcomes need."""

import torch
from torch import Tensor

RANGE = 1e15  # its square and the inverse of its square are far inside float32
BLUR = 1e-4  # of sd(y): below the least scale that a law may claim


def needs_double(y: Tensor) -> bool:
    """Whether float32 would blur the outcomes, or overflow at their scale.

    A y around 1e9 with an sd of 1 has no digits left in float32, and the square of 1e30 no value.

    Args:
        y: ``(N,)`` or ``(N, K)`` in float64; class codes never need it. Infinite entries, the
            open ends of censored outcomes, count as absent.
    """
    if not y.is_floating_point():
        return False
    seen = y.isfinite()
    count = seen.sum(0).clamp(min=1)
    y = torch.where(seen, y, 0.0)
    largest, mean = y.abs().amax(0), y.sum(0) / count
    sd = (torch.where(seen, (y - mean) ** 2, 0.0).sum(0) / count).sqrt()
    varies = sd > 0
    blurred = largest * torch.finfo(torch.float32).eps > BLUR * sd
    out_of_range = (largest > RANGE) | (sd < 1 / RANGE)
    return bool((varies & (blurred | out_of_range)).any() or (largest > RANGE).any())
