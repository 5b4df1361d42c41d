"""Cells of a network of many numbers: activation patterns that linear programs can reach."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection, cKDTree

from ansatz.errors import NumericalError

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


class Cell(NamedTuple):
    """The constraints of one pattern, ``planes @ (x, 1) >= 0``, and a point where they hold."""

    planes: Array  # (K, D + 1), each of a unit normal
    center: Array  # (D,)


def largest_ball(planes: Array, on: Array | None = None) -> tuple[float, Array]:
    r"""The radius and the middle of the largest ball in a polytope.

    .. math:: \max_{x, r} r \quad \text{with} \quad a_k^\top x + b_k \ge r \lVert a_k \rVert

    Args:
        planes: ``(K, D + 1)``: a_k and b_k.
        on: ``(D + 1,)``, a plane in which the ball lies, one dimension lower.

    Returns:
        A radius of -inf if there is no point at all.
    """
    normals = planes[:, :-1]
    size = np.linalg.norm(normals, axis=1)
    equal, level = None, None
    if on is not None:
        along = normals @ on[:-1]
        size = np.sqrt(np.maximum(size**2 - along**2, 0))  # within the plane
        size[size < 1e-7] = 0.0  # the plane itself, and the root of its rounding
        equal, level = np.append(on[:-1], 0.0)[None], [-on[-1]]
    dimension = normals.shape[1]
    answer = linprog(
        np.append(np.zeros(dimension), -1.0),
        A_ub=np.column_stack([-normals, size]),
        b_ub=planes[:, -1],
        A_eq=equal,
        b_eq=level,
        bounds=[(None, None)] * dimension + [(None, 4.0)],
        method="highs",
    )
    if answer.status == 2:  # infeasible
        return -np.inf, np.zeros(dimension)
    if answer.status != 0:
        raise NumericalError(f"a linear program for linear regions failed: {answer.message}")
    return float(answer.x[-1]), answer.x[:-1]


class Programs:
    """The cells of the cube [-1, 1]^D, each with one linear program per unit that may cut it.

    Args:
        cells: their constraints.
        tolerance: a cell without a ball of this radius is none. A linear program is solved to
            about 1e-9, so smaller ones mean little.
    """

    def __init__(self, cells: list[Cell], tolerance: float) -> None:
        self.cells, self.tolerance = cells, tolerance

    @classmethod
    def box(cls, dimension: int, tolerance: float) -> Self:
        """The whole cube."""
        sides = np.concatenate([np.eye(dimension), -np.eye(dimension)])
        cell = Cell(np.column_stack([sides, np.ones(2 * dimension)]), np.zeros(dimension))
        return cls([cell], max(tolerance, 1e-7))

    def __len__(self) -> int:
        return len(self.cells)

    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        """Cuts each cell along the planes where its M affine functions vanish."""
        steep = np.linalg.norm(weight, axis=-1)
        scale = np.where(steep > 0, steep, 1)
        planes = np.concatenate([weight, bias[..., None]], -1) / scale[..., None]
        # On the box the function is at most this far from its value in the middle.
        reach = np.abs(planes[..., :-1]).sum(-1)
        may = np.abs(planes[..., -1]) < reach
        cells: list[Cell] = []
        parent: list[int] = []
        active: list[Bool] = []
        for index, cell in enumerate(self.cells):
            pieces = [(cell, planes[index, :, -1] > 0)]
            for unit in np.flatnonzero(may[index]).tolist():
                plane = planes[index, unit]
                pieces = [half for piece in pieces for half in self._halves(*piece, unit, plane)]
            cells += [piece for piece, _ in pieces]
            active += [signs for _, signs in pieces]
            parent += [index] * len(pieces)
        return type(self)(cells, self.tolerance), np.array(parent), np.array(active)

    def _halves(self, cell: Cell, signs: Bool, unit: int, plane: Array) -> list[tuple[Cell, Bool]]:
        found: list[tuple[Cell, Bool]] = []
        away = float(plane[:-1] @ cell.center + plane[-1])
        for sign in (True, False):
            signed = plane if sign else -plane
            planes = np.concatenate([cell.planes, signed[None]])
            middle, radius = cell.center, away if sign else -away
            if radius <= self.tolerance:  # the old middle does not show this side to be there
                radius, middle = largest_ball(planes)
            if radius > self.tolerance:
                changed = signs.copy()
                changed[unit] = sign
                found.append((Cell(planes, middle), changed))
        if len(found) == 1:  # the plane does not cut: it need not be kept
            found = [(cell, found[0][1])]
        return found

    def centers(self) -> Array:
        """A point inside each cell, ``(C, D)``."""
        return np.stack([cell.center for cell in self.cells])

    def vertices(self, cell: int) -> Array:
        """The corners of a cell, in no particular order."""
        planes = self.cells[cell].planes
        if planes.shape[1] == 2:  # one input: a x + b >= 0 with a = 1 or -1
            ends = -planes[:, 1] / planes[:, 0]
            return np.array([[ends[planes[:, 0] > 0].max()], [ends[planes[:, 0] < 0].min()]])
        _, middle = largest_ball(planes)
        return HalfspaceIntersection(-planes, middle).intersections

    def neighbours(self, maps: Array, radius: float) -> Whole:
        """Pairs ``(E, 2)`` of cells of the same map that hang together."""
        alike = cKDTree(maps).query_pairs(radius, output_type="ndarray")
        group = np.arange(len(self))
        found: list[Whole] = []
        for i, j in alike:
            if group[i] != group[j] and self._touch(self.cells[i], self.cells[j]):
                found.append(np.array([i, j]))
                group[group == group[j]] = group[i]
        return np.array(found, dtype=np.intp).reshape(-1, 2)

    def _touch(self, one: Cell, other: Cell) -> bool:
        """Tests whether they share a facet: a ball of one dimension less lies in both."""
        planes = np.concatenate([one.planes, other.planes])
        for plane in one.planes:
            opposite = np.abs(other.planes + plane).max(1) <= self.tolerance
            if opposite.any() and largest_ball(planes, plane)[0] > self.tolerance:
                return True
        return False
