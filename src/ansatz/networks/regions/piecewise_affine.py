"""A network read as affine maps with kinks, its cells cut layer by layer, and how they join.

C cells, M units of a layer, U of all, D inputs.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import nn

from ansatz.errors import ResourceError, UsageError
from ansatz.networks.linear import Linear
from ansatz.networks.mlp import MLP
from ansatz.networks.regions.corners import Polygons, Polytopes, Segments
from ansatz.networks.regions.programs import Programs

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


class PiecewiseLayer(NamedTuple):
    r"""An affine map, and the slopes of its units below zero.

    .. math:: h_j = \max(z_j, 0) + s_j \min(z_j, 0), \qquad z = W x + b

    The slope is 0 for ReLU and 1 where a unit does not bend at all.
    """

    weight: Array
    bias: Array
    slope: Array


def piecewise_affine(network: Any) -> list[PiecewiseLayer]:
    """The layers of a network that is affine between kinks; the last one does not bend.

    Args:
        network: a ``torch.nn.Sequential`` (of Linear, ReLU, LeakyReLU, PReLU, Identity, Dropout
            and Sequential), a plain ``MLP`` or ``Linear`` of this library with such an
            activation, or a fitted estimator with such a network.

    Returns:
        One ``PiecewiseLayer`` per hidden layer and one for the output, in float64.
    """
    module = getattr(getattr(network, "model_", None), "network", network)
    if not isinstance(module, nn.Module):
        raise UsageError(
            "linear regions need a torch module or a fitted estimator with one network, "
            f"got {type(network).__name__}."
        )
    found: list[PiecewiseLayer] = []
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
        found.append(PiecewiseLayer(np.eye(width), np.zeros(width), np.ones(width)))
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


def _affine(layer: nn.Linear) -> PiecewiseLayer:
    weight = _numpy(layer.weight)
    bias = np.zeros(len(weight)) if layer.bias is None else _numpy(layer.bias)
    return PiecewiseLayer(weight, bias, np.ones(len(weight)))


def _compose(after: PiecewiseLayer, before: PiecewiseLayer) -> PiecewiseLayer:
    return PiecewiseLayer(
        after.weight @ before.weight, after.weight @ before.bias + after.bias, after.slope
    )


def _kink(part: nn.Module, before: PiecewiseLayer | None) -> PiecewiseLayer:
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


Method = Literal["auto", "cut", "lp"]
CUT_UP_TO = 7  # inputs; the corners of a box double with each, and programs win from 8 on


class Cells(Protocol):
    """A partition of the cube [-1, 1]^D that functions cut."""

    def __len__(self) -> int: ...
    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        """Cuts each cell where one of its M affine functions, ``(C, M, D)`` and ``(C, M)``, is 0.

        Returns the new cells, the index of the old one that each lies in, and ``(C', M)`` whether
        each function is positive there.
        """
        ...

    def centers(self) -> Array: ...
    def vertices(self, cell: int) -> Array: ...
    def neighbours(self, maps: Array, radius: float) -> Whole: ...


def whole_box(method: Method, inputs: int, tolerance: float) -> Cells:
    """The cube as one cell, of the kind that suits its dimension."""
    if method not in ("auto", "cut", "lp"):
        raise UsageError(f"method of linear regions must be auto, cut or lp, got {method!r}.")
    if method == "lp" or (method == "auto" and inputs > CUT_UP_TO):
        return Programs.box(inputs, tolerance)
    kinds: dict[int, type[Segments] | type[Polygons]] = {1: Segments, 2: Polygons}
    return kinds.get(inputs, Polytopes).box(inputs, tolerance)


def on_cube(layer: PiecewiseLayer, low: Array, high: Array) -> PiecewiseLayer:
    """The layer as a function of u in [-1, 1]^D, x = (low + high)/2 + u (high - low)/2."""
    bias = layer.weight @ ((low + high) / 2) + layer.bias
    return PiecewiseLayer(layer.weight * ((high - low) / 2), bias, layer.slope)


def cut_by_layers(layers: Sequence[PiecewiseLayer], cells: Cells, limit: int) -> tuple[Cells, Bool]:
    """Cuts every cell by every layer that bends; also gives the activation patterns ``(C, U)``."""
    inputs = layers[0].weight.shape[1]
    A, a = np.eye(inputs)[None], np.zeros((1, inputs))  # h = A u + a on each cell
    patterns = np.zeros((1, 0), dtype=bool)
    for layer in layers[:-1]:
        size = np.abs(A).max(-1) @ np.abs(layer.weight).T  # (C, M)
        A, a = layer.weight @ A, a @ layer.weight.T + layer.bias  # (C, M, D), (C, M)
        # What rounding leaves of a sum that vanishes is not a slope.
        noise = 8 * np.finfo(float).eps * layer.weight.shape[1] * size
        A = np.where(np.abs(A).max(-1, keepdims=True) <= noise[..., None], 0.0, A)
        bends = np.flatnonzero(layer.slope != 1)
        cells, parent, above = cells.cut(A[:, bends], a[:, bends])
        if len(cells) > limit:
            raise ResourceError(
                f"more than {limit:,} linear regions: take a smaller box or raise the limit."
            )
        active = np.ones((len(cells), len(layer.slope)), dtype=bool)
        active[:, bends] = above
        gate = np.where(active, 1.0, layer.slope)
        A, a = A[parent] * gate[..., None], a[parent] * gate
        patterns = np.concatenate([patterns[parent], active], 1)
    return cells, patterns


def affine_maps(layers: Sequence[PiecewiseLayer], patterns: Bool) -> tuple[Array, Array]:
    """The affine map of each pattern: weights ``(C, P, D)`` and biases ``(C, P)``."""
    inputs, start = layers[0].weight.shape[1], 0
    A = np.tile(np.eye(inputs), (len(patterns), 1, 1))
    a = np.zeros((len(patterns), inputs))
    for depth, layer in enumerate(layers):
        A, a = layer.weight @ A, a @ layer.weight.T + layer.bias
        if depth < len(layers) - 1:
            active = patterns[:, start : start + len(layer.slope)]
            start += len(layer.slope)
            gate = np.where(active, 1.0, layer.slope)
            A, a = A * gate[..., None], a * gate
    return A, a


def join_cells(cells: Cells, layers: Sequence[PiecewiseLayer], patterns: Bool) -> Whole:
    """The maximal affine region of each cell, ``(C,)``: neighbours with the same map are one."""
    A, a = affine_maps(layers, patterns)
    flat = np.concatenate([A.reshape(len(A), -1), a], 1)
    bound = 1.0 + np.abs(layers[0].bias).max()  # of the sums of products, were nothing cancelled
    for layer in layers:
        below = np.maximum(np.abs(layer.slope), 1).max()
        bound = below * (np.abs(layer.weight).sum(1).max() * bound + np.abs(layer.bias).max())
    width = sum(layer.weight.shape[1] for layer in layers)
    radius = 4 * np.finfo(float).eps * width * float(bound)
    pairs = cells.neighbours(flat, radius)
    same = pairs[np.abs(flat[pairs[:, 0]] - flat[pairs[:, 1]]).max(1, initial=0) <= radius]
    graph = coo_array((np.ones(len(same)), (same[:, 0], same[:, 1])), shape=(len(A), len(A)))
    pieces: Whole = connected_components(graph, directed=False)[1]
    return pieces
