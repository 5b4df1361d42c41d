"""The regions on which a network of rectified units is affine: one, and all of them.

C cells, D inputs, P outputs, U hidden units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from ansatz.errors import UsageError
from ansatz.networks.regions.piecewise_affine import (
    Cells,
    Method,
    PiecewiseLayer,
    affine_maps,
    cut_by_layers,
    join_cells,
    on_cube,
    piecewise_affine,
    whole_box,
)

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


class Region(NamedTuple):
    r"""A cell of a network: where one pattern of units is active.

    .. math:: X_\kappa = \{x : \mathbf{1}\{z(x) > 0\} = \kappa\}, \qquad
              f(x) = A_\kappa x + a_\kappa \quad (x \in X_\kappa)

    Args:
        pattern: :math:`\kappa`, ``(U,)`` whether each hidden unit is active, layer after layer.
        weight: :math:`A_\kappa`, ``(P, D)``.
        bias: :math:`a_\kappa`, ``(P,)``.
        vertices: its corners ``(V, D)``; of a polygon in the order round it.
        center: a point inside, ``(D,)``.
        piece: the maximal affine region it belongs to, from 0.

    Example:
        >>> import torch
        >>> from ansatz.networks import linear_regions
        >>> absolute = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU())
        >>> _ = absolute[0].weight.data.copy_(torch.tensor([[1.0], [-1.0]]))
        >>> _ = absolute[0].bias.data.zero_()
        >>> right = linear_regions(absolute, (-1, 3))[1]
        >>> right.pattern.tolist(), right.vertices.ravel().tolist(), right.volume
        ([True, False], [0.0, 3.0], 3.0)
    """

    pattern: Bool
    weight: Array
    bias: Array
    vertices: Array
    center: Array
    piece: int

    @property
    def volume(self) -> float:
        """Its length, area or volume."""
        if self.vertices.shape[1] == 1:
            return float(np.ptp(self.vertices))
        return float(ConvexHull(self.vertices).volume)


@dataclass(frozen=True, eq=False, repr=False)
class LinearRegions(Sequence[Region]):
    """The cells of a network in a box, by activation pattern, and how they join.

    Made by :func:`linear_regions`; a sequence of :class:`Region`.

    Args:
        patterns: ``(C, U)`` which hidden units are active.
        weights: ``(C, P, D)`` of the affine map on each cell.
        biases: ``(C, P)``.
        centers: ``(C, D)`` a point inside each.
        pieces: ``(C,)`` the maximal affine region of each, from 0.
        layers: the network.
        box: ``(D, 2)``.
        cells: their geometry, on the box scaled to [-1, 1]^D.

    Example:
        >>> import torch
        >>> from ansatz.networks import linear_regions
        >>> found = linear_regions(torch.nn.Linear(2, 1), (-1, 1))
        >>> len(found), found.num_pieces
        (1, 1)
        >>> found
        LinearRegions(1 cell in 1 piece, 2 inputs)
    """

    patterns: Bool
    weights: Array
    biases: Array
    centers: Array
    pieces: Whole
    layers: Sequence[PiecewiseLayer]
    box: Array
    cells: Cells

    @property
    def num_pieces(self) -> int:
        """Maximal affine regions: cells side by side with the same map count once."""
        return int(self.pieces.max()) + 1

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        cells = f"{len(self):,} cell{'s' * (len(self) > 1)}"
        pieces = f"{self.num_pieces:,} piece{'s' * (self.num_pieces > 1)}"
        return f"LinearRegions({cells} in {pieces}, {len(self.box)} inputs)"

    @overload
    def __getitem__(self, index: int) -> Region: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Region]: ...
    def __getitem__(self, index: int | slice) -> Region | Sequence[Region]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        low, high = self.box.T
        vertices = (low + high) / 2 + (high - low) / 2 * self.cells.vertices(i)
        return Region(
            self.patterns[i],
            self.weights[i],
            self.biases[i],
            vertices,
            self.centers[i],
            int(self.pieces[i]),
        )

    def constraints(self, index: int) -> Array:
        """``(U + 2D, D + 1)`` rows (a, b) with a·x + b >= 0 exactly on the cell.

        One row per hidden unit, then both sides of the box; many are implied by the others.
        """
        low, high = self.box.T
        rows, start = [], 0
        weight, bias = np.eye(len(low)), np.zeros(len(low))
        for layer in self.layers[:-1]:
            weight, bias = layer.weight @ weight, layer.weight @ bias + layer.bias
            active = self.patterns[index, start : start + len(bias)]
            start += len(bias)
            sign = np.where(active, 1, -1) * (layer.slope != 1)
            rows.append(np.column_stack([weight, bias]) * sign[:, None])
            gate = np.where(active, 1.0, layer.slope)
            weight, bias = weight * gate[:, None], bias * gate
        sides = np.eye(len(low))
        rows += [np.column_stack([sides, -low]), np.column_stack([-sides, high])]
        return np.concatenate(rows)


LIMIT = 1_000_000  # cells


def linear_regions(
    network: Any,
    box: ArrayLike,
    *,
    method: Method = "auto",
    tolerance: float = 1e-9,
    limit: int = LIMIT,
) -> LinearRegions:
    r"""Finds all regions of a box on which a network of rectified units is affine.

    Layer by layer, each cell of the layers before is cut by the hyperplanes on which the units of
    the next layer vanish: there they are affine functions of x. Nothing is sampled.

    A *cell* is where one activation pattern holds; cells that share a facet and have the same
    affine map form one *maximal affine region* (a dead unit bends nothing, but has a pattern).
    Both are found: ``len(regions)`` cells and ``regions.num_pieces`` maximal regions.

    Args:
        network: Linear, ReLU, LeakyReLU and PReLU layers in a row: a ``torch.nn.Sequential``, a
            plain ``MLP``, or a fitted estimator with such a network (whose inputs are the
            standardised columns).
        box: (low, high) of all inputs, or such a pair for each, ``(D, 2)``.
        method: ``"cut"``: breakpoints of an interval, polygons, polytopes by their corners.
            ``"lp"``: linear programs on activation patterns, for many inputs. ``"auto"`` cuts up
            to 7 inputs.
        tolerance: a point that is closer to a hyperplane lies on it, so a cell that is not
            twice as wide may go unseen; in half-widths of the box. ``"lp"`` uses at least 1e-7,
            the accuracy of its solver.
        limit: more cells than this are refused.

    Returns:
        The cells with their patterns, maps and corners.

    Example:
        >>> import torch
        >>> from ansatz.networks import linear_regions
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> _ = network[0].weight.data.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 1]]))
        >>> _ = network[0].bias.data.copy_(torch.tensor([0, 0, 0.5]))
        >>> regions = linear_regions(network, (-1, 1))
        >>> len(regions), round(sum(region.volume for region in regions), 6)
        (7, 4.0)

    References:
        Montúfar, Pascanu, Cho & Bengio (2014), On the number of linear regions of deep neural
        networks. https://arxiv.org/abs/1402.1869
        Hanin & Rolnick (2019), Deep ReLU networks have surprisingly few activation patterns.
        https://arxiv.org/abs/1906.00904
    """
    layers = piecewise_affine(network)
    sides = _check_box(box, layers[0].weight.shape[1])
    if not 0 < tolerance < 1e-2:
        raise UsageError(f"tolerance of linear regions must be in (0, 0.01), got {tolerance}.")
    low, high = sides.T
    scaled = [on_cube(layers[0], low, high), *layers[1:]]
    cells, patterns = cut_by_layers(scaled, whole_box(method, len(sides), tolerance), limit)
    pieces = join_cells(cells, scaled, patterns)
    weights, biases = affine_maps(layers, patterns)
    centers = (low + high) / 2 + (high - low) / 2 * cells.centers()
    return LinearRegions(patterns, weights, biases, centers, pieces, layers, sides, cells)


def count_linear_regions(
    network: Any,
    box: ArrayLike,
    *,
    by: Literal["map", "pattern"] = "map",
    method: Method = "auto",
    tolerance: float = 1e-9,
    limit: int = LIMIT,
) -> int:
    r"""Counts the regions of a box on which a network of rectified units is affine.

    One layer of m units in general position has at most Zaslavsky's number of them,

    .. math:: \sum_{i=0}^{\min(m, D)} \binom{m}{i},

    and a box that holds all crossings has exactly as many.

    Args:
        network: as for :func:`linear_regions`.
        box: (low, high) of all inputs, or such a pair for each, ``(D, 2)``.
        by: ``"map"`` counts maximal affine regions: connected sets with one affine map.
            ``"pattern"`` counts activation patterns, which are as many or more.
        method: as for :func:`linear_regions`.
        tolerance: as for :func:`linear_regions`.
        limit: as for :func:`linear_regions`.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.networks import count_linear_regions
        >>> tent = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> _ = tent[0].weight.data.fill_(1.0), tent[0].bias.data.copy_(torch.tensor([0, -0.5]))
        >>> count_linear_regions(tent, (0, 1)), count_linear_regions(tent, (-1, 1))
        (2, 3)

    References:
        Zaslavsky (1975), Facing up to arrangements. Memoirs of the AMS 154.
    """
    if by not in ("map", "pattern"):
        raise UsageError(f"linear regions are counted by 'map' or 'pattern', got {by!r}.")
    found = linear_regions(network, box, method=method, tolerance=tolerance, limit=limit)
    return found.num_pieces if by == "map" else len(found)


def _check_box(box: ArrayLike, inputs: int) -> NDArray[np.float64]:
    try:
        sides = np.asarray(box, dtype=np.float64)
    except (TypeError, ValueError):
        sides = np.empty(0)
    if sides.shape == (2,):
        sides = np.tile(sides, (inputs, 1))
    if sides.shape != (inputs, 2) or not np.isfinite(sides).all():
        raise UsageError(
            f"the box of linear regions must be (low, high), or {inputs} such pairs of numbers, "
            f"one per input of the network; got {box!r}."
        )
    for i, (low, high) in enumerate(sides):
        if not low < high:
            raise UsageError(f"side {i} of the box must have low < high, got ({low}, {high}).")
    return sides
