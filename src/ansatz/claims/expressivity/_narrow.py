"""A deep network of width n + 4 that adds up bumps, one after another.

Every layer holds x (n units), the sums of positive and of negative bumps so far, a running sum of
hinges, and one hinge: how far x lies beyond one side of the box of the present bump.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ansatz.claims.expressivity._sequential import sequential

Array = NDArray[np.float64]


def narrow_network(low: Array, high: Array, heights: Array, edge: float) -> nn.Module:
    """Σ c_k T_k, where T_k is 1 on a box and falls to 0 within ``edge`` of it.

    Args:
        low: ``(K, n)`` lower corners.
        high: ``(K, n)`` upper corners.
        heights: ``(K,)``.
        edge: over which a bump falls.
    """
    n = low.shape[1]
    start = low.min(0) - edge  # x is held as (x - start)₊: beyond it there is no bump
    low, high = low - start, high - start
    maps: list[tuple[Array, Array]] = []
    added = 0.0  # the height of the bump that has just been made
    for a, b, height in zip(low, high, heights, strict=True):
        for k in range(2 * n):
            weight, bias = _keep(n)
            i = k // 2
            if k == 0:
                weight[n, n + 2], weight[n + 1, n + 2] = max(added, 0.0), max(-added, 0.0)
            else:
                weight[n + 2, n + 2] = weight[n + 2, n + 3] = 1.0  # the hinges so far
            sign, side = (-1.0, a[i]) if k % 2 == 0 else (1.0, b[i])
            weight[n + 3, i], bias[n + 3] = sign / edge, -sign * side / edge
            maps.append((weight, bias))
        weight, bias = _keep(n)
        weight[n + 2, n + 2] = weight[n + 2, n + 3] = -1.0
        bias[n + 2] = 1.0  # T = (1 - hinges)₊
        maps.append((weight, bias))
        added = float(height)
    first, offset = maps[0]
    maps[0] = (first[:, :n], offset - first[:, :n] @ start)
    output = np.zeros((1, n + 4))
    output[0, n : n + 3] = 1.0, -1.0, added
    return sequential(*maps, (output, np.zeros(1)))


def _keep(n: int) -> tuple[Array, Array]:
    """Passes x and both sums on, and forgets the rest."""
    weight = np.zeros((n + 4, n + 4))
    weight[range(n + 2), range(n + 2)] = 1.0
    return weight, np.zeros(n + 4)


def width(network: nn.Module) -> int:
    """Units of the widest hidden layer."""
    layers = [each for each in network.modules() if isinstance(each, nn.Linear)]
    return max(layer.out_features for layer in layers[:-1])


def grid(n: int, parts: int, low: float = 0.0, high: float = 1.0) -> tuple[Array, Array, Array]:
    """Corners and middles of the ``parts``^n boxes of a cube."""
    side = np.linspace(low, high, parts + 1)
    index = np.indices((parts,) * n).reshape(n, -1).T
    return side[index], side[index + 1], (side[index] + side[index + 1]) / 2


def uniform(generator: torch.Generator, count: int, n: int, low: float, high: float) -> Array:
    """Random points of a cube."""
    found: Array = torch.rand(count, n, generator=generator, dtype=torch.float64).numpy()
    return low + (high - low) * found
