"""The inverse of a monotone function, many at once."""

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[..., tuple[Tensor, Tensor]]


def find_root(
    function: Function,
    low: Tensor,
    high: Tensor,
    start: Tensor,
    *parameters: Tensor,
    tolerance: float = 1e-10,
) -> Tensor:
    """The zero of an increasing function between ``low`` and ``high``, by bracketed Newton steps.

    A step that leaves the bracket, or does not halve it often enough, becomes a bisection; a point
    that has converged is left alone, so that the cost is that of the points still moving.

    Args:
        function: ``(x, *parameters) -> (value, slope)`` elementwise, for any selection of points.
        low: where the value is <= 0.
        high: where it is >= 0.
        start: a guess.
        parameters: tensors whose first axis is that of x.
        tolerance: once the value is this small, a last Newton step squares it.

    Shapes:
        - low, high, start: ``(N,)``.
    """
    low, high = low.clone(), high.clone()
    x = start.clamp(low, high)
    found = x.clone()
    where = torch.arange(len(x), device=x.device)
    eps = torch.finfo(x.dtype).eps
    for step in range(200):
        value, slope = function(x, *parameters)
        low, high = torch.where(value <= 0, x, low), torch.where(value >= 0, x, high)
        newton = x - value / slope
        close = value.abs() <= tolerance
        inside = (newton >= low) & (newton <= high) & (close | (step % 8 != 7))
        fresh = torch.where(inside, newton, low + (high - low) / 2)
        # nan is a point that cannot be solved for: it stays nan and stops
        done = ~((fresh - x).abs() > 2 * eps * x.abs()) | close
        stay = close & ~inside  # a bisection would only lead away
        found[where[done]] = torch.where(stay, x, fresh)[done]
        moving = ~done
        if not bool(moving.any()):
            return found
        where, x, low, high = (t[moving] for t in (where, fresh, low, high))
        parameters = tuple(p[moving] for p in parameters)
    found[where] = x
    return found
