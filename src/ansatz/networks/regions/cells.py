"""The cells of a network, cut layer by layer, and how they join.

C cells, M units of a layer, U of all, D inputs.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ansatz.errors import ResourceError, UsageError
from ansatz.networks.regions.intervals import Intervals
from ansatz.networks.regions.piecewise import Bend
from ansatz.networks.regions.polygons import Polygons
from ansatz.networks.regions.polytopes import Polytopes
from ansatz.networks.regions.programs import Programs

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]
Method = Literal["auto", "cut", "lp"]
CUT_UP_TO = 7  # inputs; the corners of a box double with each, and programs win from 8 on


class Cells(Protocol):
    """A partition of the cube [-1, 1]^D that functions cut."""

    def __len__(self) -> int: ...
    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]: ...
    def centers(self) -> Array: ...
    def vertices(self, cell: int) -> Array: ...
    def neighbours(self, maps: Array, radius: float) -> Whole: ...


def whole_box(method: Method, inputs: int, tolerance: float) -> Cells:
    """The cube as one cell, of the kind that suits its dimension."""
    if method not in ("auto", "cut", "lp"):
        raise UsageError(f"method of linear regions must be auto, cut or lp, got {method!r}.")
    if method == "lp" or (method == "auto" and inputs > CUT_UP_TO):
        return Programs.box(inputs, tolerance)
    kinds: dict[int, type[Intervals] | type[Polygons]] = {1: Intervals, 2: Polygons}
    return kinds.get(inputs, Polytopes).box(inputs, tolerance)


def on_cube(layer: Bend, low: Array, high: Array) -> Bend:
    """The layer as a function of u in [-1, 1]^D, x = (low + high)/2 + u (high - low)/2."""
    bias = layer.weight @ ((low + high) / 2) + layer.bias
    return Bend(layer.weight * ((high - low) / 2), bias, layer.slope)


def cut_by_layers(layers: Sequence[Bend], cells: Cells, limit: int) -> tuple[Cells, Bool]:
    """Cuts every cell by every layer that bends.

    Returns:
        The cells, and their activation patterns ``(C, U)``.
    """
    inputs = layers[0].weight.shape[1]
    A, a = np.eye(inputs)[None], np.zeros((1, inputs))  # h = A u + a on each cell
    patterns = np.zeros((1, 0), dtype=bool)
    for layer in layers[:-1]:
        size = np.abs(A).max(-1) @ np.abs(layer.weight).T  # (C, M)
        A, a = layer.weight @ A, a @ layer.weight.T + layer.bias  # (C, M, D), (C, M)
        # What rounding leaves of a sum that vanishes is no slope.
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


def affine_maps(layers: Sequence[Bend], patterns: Bool) -> tuple[Array, Array]:
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


def join_cells(cells: Cells, layers: Sequence[Bend], patterns: Bool) -> Whole:
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
