"""SciPy's special functions on tensors of any device and precision."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def elementwise(function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """A NumPy function of doubles, computed in double precision and given back as the tensors were.

    There is no gradient: callers that need one supply it, and detach first.
    """
    tensors = torch.broadcast_tensors(*tensors)
    first = tensors[0]
    if first.is_meta:
        return torch.empty_like(first)
    values = function(*(t.detach().cpu().double().numpy() for t in tensors))
    return torch.as_tensor(values).to(dtype=first.dtype, device=first.device)


def wide(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in double precision on the CPU, which not every device has; differentiable."""
    return tuple(t if t.is_meta else t.cpu().double() for t in tensors)


def refuse_second_derivative() -> None:
    """Called by the backward pass of a function whose derivative has no graph of its own.

    Without it a second derivative would silently leave out what this function adds to it.
    """
    if torch.is_grad_enabled():  # create_graph=True
        raise RuntimeError(
            "cdf, log_cdf and log_survival of this likelihood have first derivatives only; "
            "a second one (create_graph=True) is not available."
        )
