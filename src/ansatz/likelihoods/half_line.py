"""Functions of y > 0 and what they are at 0, below and at infinity, without spoiling gradients."""

import math

import torch
from torch import Tensor


def safe_log(y: Tensor) -> Tensor:
    """log y for 0 < y < infinity, 0 elsewhere: its gradient is finite everywhere; nan stays nan."""
    return torch.where((y <= 0) | (y == math.inf), 1.0, y).log()


def continued(value: Tensor, y: Tensor, below: float, above: float) -> Tensor:
    """``value`` for 0 < y < infinity, ``below`` for y <= 0 and ``above`` at infinity."""
    return torch.where(y <= 0, below, torch.where(y == math.inf, above, value))
