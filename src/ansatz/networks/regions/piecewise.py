"""A network read as affine maps with kinks between them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ansatz.errors import UsageError
from ansatz.networks.linear import Linear
from ansatz.networks.mlp import MLP

Array = NDArray[np.float64]


class Bend(NamedTuple):
    r"""An affine map, and the slopes of its units below zero.

    .. math:: h_j = \max(z_j, 0) + s_j \min(z_j, 0), \qquad z = W x + b

    The slope is 0 for ReLU and 1 where a unit does not bend at all.
    """

    weight: Array
    bias: Array
    slope: Array


def piecewise_affine(network: Any) -> list[Bend]:
    """The layers of a network that is affine between kinks; the last one does not bend.

    Args:
        network: a ``torch.nn.Sequential`` (of Linear, ReLU, LeakyReLU, PReLU, Identity, Dropout
            and Sequential), a plain ``MLP`` or ``Linear`` of this library with such an
            activation, or a fitted estimator with such a network.

    Returns:
        One ``Bend`` per hidden layer and one for the output, in float64.
    """
    module = getattr(getattr(network, "model_", None), "network", network)
    if not isinstance(module, nn.Module):
        raise UsageError(
            "linear regions need a torch module or a fitted estimator with one network, "
            f"got {type(network).__name__}."
        )
    found: list[Bend] = []
    for part in _parts(module):
        if isinstance(part, nn.Linear):
            bend = _affine(part)
            # Two maps without a kink between them are one.
            if found and (found[-1].slope == 1).all():
                bend = _compose(bend, found.pop())
            found.append(bend)
        else:
            found.append(_kink(part, found.pop() if found else None))
    if not found:
        raise UsageError("linear regions need a network with at least one Linear layer, got none.")
    if not (found[-1].slope == 1).all():  # ends with an activation: its output is the result
        width = len(found[-1].bias)
        found.append(Bend(np.eye(width), np.zeros(width), np.ones(width)))
    if not all(np.isfinite(bend.weight).all() and np.isfinite(bend.bias).all() for bend in found):
        raise UsageError("linear regions need finite weights; this network has infinite or nan.")
    return found


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """The modules in the order of the computation."""
    if isinstance(module, nn.Sequential):
        for child in module:
            yield from _parts(child)
    elif isinstance(module, MLP) and module.is_plain:
        for layer in module.hidden:
            yield layer
            yield from _parts(module.activation)
        yield module.output
    elif isinstance(module, Linear) and module.is_plain:
        yield module.output
    elif isinstance(module, nn.Linear | nn.ReLU | nn.LeakyReLU | nn.PReLU):
        yield module
    elif not isinstance(module, nn.Identity | nn.Dropout | nn.AlphaDropout):
        what = type(module).__name__
        if isinstance(module, MLP):
            what += " with norm, embeddings or a connection other than 'plain'"
        raise UsageError(
            "linear regions are counted for Linear, ReLU, LeakyReLU and PReLU layers in a row; "
            f"got {what}."
        )


def _affine(layer: nn.Linear) -> Bend:
    weight = _numpy(layer.weight)
    bias = np.zeros(len(weight)) if layer.bias is None else _numpy(layer.bias)
    return Bend(weight, bias, np.ones(len(weight)))


def _compose(after: Bend, before: Bend) -> Bend:
    return Bend(after.weight @ before.weight, after.weight @ before.bias + after.bias, after.slope)


def _kink(part: nn.Module, before: Bend | None) -> Bend:
    if before is None:
        raise UsageError(
            f"linear regions need a Linear layer first, got {type(part).__name__}: put "
            "nn.Linear(D, D) with the identity as its weight before it."
        )
    if isinstance(part, nn.PReLU):
        below = np.broadcast_to(_numpy(part.weight), before.bias.shape)
    else:
        below = np.full(before.bias.shape, getattr(part, "negative_slope", 0.0))
    if (before.slope == 1).all():
        return before._replace(slope=below.copy())
    if (before.slope >= 0).all():  # a second kink at the same place
        return before._replace(slope=before.slope * below)
    raise UsageError("linear regions need a Linear layer between a negative slope and a kink.")


def _numpy(tensor: torch.Tensor) -> Array:
    return tensor.detach().to("cpu", torch.float64).numpy().copy()
