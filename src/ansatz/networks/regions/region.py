"""A region of a network, and all of them.

C cells, D inputs, P outputs, U hidden units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from ansatz.networks.regions.cells import Cells
from ansatz.networks.regions.piecewise import Bend

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
    layers: Sequence[Bend]
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
