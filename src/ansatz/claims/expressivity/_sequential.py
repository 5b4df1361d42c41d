"""Networks with weights written by hand."""

import copy

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.nn.utils import skip_init

Array = NDArray[np.float64]


def sequential(
    *maps: tuple[ArrayLike, ArrayLike], activation: nn.Module | None = None
) -> nn.Module:
    """Affine maps (weight, bias) with an activation between them, ReLU by default."""
    layers: list[nn.Module] = []
    blank: dict[torch.Size, nn.Linear] = {}  # making one is slower than copying it
    for weight, bias in maps:
        W = torch.as_tensor(np.atleast_2d(np.asarray(weight, dtype=np.float64)))
        if W.shape not in blank:
            # Without its usual random weights, which would come from torch's global generator.
            blank[W.shape] = skip_init(nn.Linear, W.shape[1], W.shape[0], dtype=torch.float64)
        layer = copy.deepcopy(blank[W.shape])
        with torch.no_grad():
            layer.weight.copy_(W)
            layer.bias.copy_(torch.as_tensor(np.asarray(bias, dtype=np.float64)))
        layers += [layer, activation or nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def values(network: nn.Module, x: ArrayLike) -> Array:
    """The network's only output at the rows of x, or at each number of a vector."""
    points = torch.as_tensor(np.asarray(x, dtype=np.float64))
    with torch.no_grad():
        found: Array = network(points[:, None] if points.ndim == 1 else points)[:, 0].numpy()
    return found


def lebesgue(nodes: Array, heights: Array) -> nn.Module:
    """One hidden layer that joins (nodes, heights) by straight lines: one unit per piece."""
    slopes = np.diff(heights) / np.diff(nodes)
    bends = np.diff(slopes, prepend=0.0)  # c_i; the first unit carries the first slope
    inside = (np.ones((len(slopes), 1)), -nodes[:-1])
    return sequential(inside, (bends[None], heights[:1]))
