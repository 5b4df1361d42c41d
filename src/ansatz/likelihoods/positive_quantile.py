"""Quantiles of positive likelihoods by Newton's method on the logarithm of the smaller tail."""

from collections.abc import Callable

import torch
from torch import Tensor

Tail = Callable[[Tensor, Tensor], Tensor]


def positive_quantile(
    tail: Tail, log_density: Callable[[Tensor], Tensor], below: Tensor, above: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Solves P(Y <= e^x) = below, or P(Y > e^x) = above where that is the smaller one.

    Logarithms of tails are nearly concave in x = log y, so that Newton's method converges from
    afar; a step is at most 3.

    Args:
        tail: (x, low) -> log P(Y <= e^x) where ``low`` holds, log P(Y > e^x) elsewhere.
        log_density: x -> log(y p(y)) at y = e^x.
        below: the probability below, ``(...)``.
        above: the probability above, known by itself so that it keeps its digits.
        x: where to start.

    Returns:
        x, and True where it is no solution.
    """
    low = below < above
    target = torch.where(low, below, above).log()
    for _ in range(30):
        value = tail(x, low)
        step = (target - value) * (value - log_density(x)).exp()
        step = torch.where(low, step, -step).clamp(-3, 3)
        x = x + torch.where(step.isnan(), 0.0, step)
        if bool((step.abs() < 1e-8).all()):  # the next step would be its square
            break
    gap = (tail(x, low) - target).abs()
    return x, ~(gap < 1e-10 * (1 - target))
