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

    Example:
        >>> import torch
        >>> from ansatz.training.optimizer_layout import align_state
        >>> kernels = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
        >>> weight = torch.nn.Parameter(kernels)
        >>> optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        >>> optimizer.state[weight]["momentum_buffer"] = torch.zeros(2, 3, 4, 4)
        >>> align_state(optimizer)
        >>> optimizer.state[weight]["momentum_buffer"].stride() == weight.stride()
        True
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if (
                isinstance(value, Tensor)
                and value.shape == parameter.shape
                and value.stride() != parameter.stride()
            ):
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
