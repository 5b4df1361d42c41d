"""Gauss rules as tensors."""

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor


def gauss(rule: Literal["legendre", "laguerre"], count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights, ``(count,)`` each, in the dtype and on the device of ``like``.

    ``"legendre"`` integrates over [0, 1], ``"laguerre"`` against e^-u over u > 0.
    """
    nodes, weights = _rule(rule, count)
    return torch.as_tensor(nodes).to(like), torch.as_tensor(weights).to(like)


@lru_cache(maxsize=16)
def _rule(rule: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    if rule == "laguerre":
        return np.polynomial.laguerre.laggauss(count)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2
