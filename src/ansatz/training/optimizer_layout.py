"""The state of an optimizer, in memory as its parameters are."""

import torch
from torch import Tensor


def align_state(optimizer: torch.optim.Optimizer) -> None:
    """Gives moments and averages that were read from a file the strides of their parameters.

    Files hold numbers row by row. A parameter may lie otherwise (channels last), and torch's fused
    rules walk through parameter, gradient and moments by their place in memory: with unlike
    strides each weight would be moved by the moments of another.

    Args:
        optimizer: its state was just loaded; changed in place.
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if (
                isinstance(value, Tensor)
                and value.shape == parameter.shape
                and value.stride() != parameter.stride()
            ):
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
