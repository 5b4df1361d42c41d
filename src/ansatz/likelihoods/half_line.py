"""Functions of y > 0 and what they are at 0, below and at infinity, without spoiling gradients."""

import math

import torch
from torch import Tensor


def safe_log(y: Tensor) -> Tensor:
    """log y for 0 < y < infinity, 0 elsewhere: its gradient is finite everywhere; nan stays nan.

    Example:
        >>> import torch
        >>> safe_log(torch.tensor([-1.0, 0.0, 1.0, torch.inf]))
        tensor([0., 0., 0., 0.])
    """
    return torch.where((y <= 0) | (y == math.inf), 1.0, y).log()


def continued(value: Tensor, y: Tensor, below: float, above: float) -> Tensor:
    """``value`` for 0 < y < infinity, ``below`` for y <= 0 and ``above`` at infinity.

    Example:
        >>> import torch
        >>> y = torch.tensor([-1.0, 2.0, torch.inf])
        >>> continued(0.1 * y, y, 0.0, 1.0)
        tensor([0.0000, 0.2000, 1.0000])
    """
    return torch.where(y <= 0, below, torch.where(y == math.inf, above, value))
