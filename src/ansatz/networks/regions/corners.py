"""Cells that are cut by their corners: intervals, polygons, polytopes."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


def shared_facets(
    middles: NDArray[np.float64], owners: NDArray[np.intp], radius: float
) -> NDArray[np.intp]:
    """Pairs ``(E, 2)`` of cells with a common facet, by the means ``(F, D)`` of facets' corners.

    The cells of a network meet face to face: whatever unit cuts a cell up to one of its facets
    cuts the cell behind it at the same place, for a network is continuous. So a facet of both has
    the same corners, and the same mean of them.
    """
    pairs = owners[cKDTree(middles).query_pairs(radius, output_type="ndarray")]
    return pairs[pairs[:, 0] != pairs[:, 1]]


class Segments:
    """The cells of [-1, 1], from left to right, all cut at once."""

    def __init__(self, low: Array, high: Array, tolerance: float) -> None:
        self.low, self.high, self.tolerance = low, high, tolerance

    @classmethod
    def box(cls, dimension: int, tolerance: float) -> Self:
        """The whole of [-1, 1]."""
        assert dimension == 1
        return cls(np.array([-1.0]), np.array([1.0]), tolerance)

    def __len__(self) -> int:
        return len(self.low)

    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, NDArray[np.bool_]]:
        """Cuts each cell where one of its M affine functions vanishes."""
        slope = weight[..., 0]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            root = -bias / slope  # (C, M)
        gap = self.tolerance
        inside = (root > self.low[:, None] + gap) & (root < self.high[:, None] - gap)
        cell = np.concatenate([np.arange(len(self)), np.nonzero(inside)[0]])
        start = np.concatenate([self.low, root[inside]])
        order = np.lexsort((start, cell))
        cell, start = cell[order], start[order]
        same = cell[1:] == cell[:-1]
        keep = np.append(True, ~(same & (np.diff(start) <= gap)))
        cell, start = cell[keep], start[keep]
        last = np.append(cell[1:] != cell[:-1], True)
        high = np.where(last, self.high[cell], np.append(start[1:], 0.0))
        middle = (start + high) / 2
        active = slope[cell] * middle[:, None] + bias[cell] > 0
        return type(self)(start, high, gap), cell, active

    def centers(self) -> Array:
        """A point inside each cell, ``(C, 1)``."""
        return ((self.low + self.high) / 2)[:, None]

    def vertices(self, cell: int) -> Array:
        """Both ends of a cell, ``(2, 1)``."""
        return np.array([[self.low[cell]], [self.high[cell]]])

    def neighbours(self, maps: Array, radius: float) -> Whole:
        """Pairs ``(E, 2)`` of cells that share an end."""
        index = np.arange(len(self) - 1)
        return np.stack([index, index + 1], -1)


class Polygons:
    """The cells of the square [-1, 1]².

    Args:
        corners: ``(C, V, 2)``, padded.
        edges: ``(C, V)`` which function vanishes on the edge from a corner to the next one,
            counted over all layers; -1 on the border of the box.
        count: ``(C,)`` corners of each.
        tolerance: corners that are no further from a line lie on it.
        cuts: functions that have cut so far.
    """

    def __init__(
        self, corners: Array, edges: Whole, count: Whole, tolerance: float, cuts: int = 0
    ) -> None:
        self.corners, self.edges, self.count = corners, edges, count
        self.tolerance, self.cuts = tolerance, cuts

    @classmethod
    def box(cls, dimension: int, tolerance: float) -> Self:
        """The whole square."""
        assert dimension == 2
        square = np.array([[[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]])
        return cls(square, np.full((1, 4), -1), np.array([4]), tolerance)

    def __len__(self) -> int:
        return len(self.count)

    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        """Cuts each cell along the lines where its M affine functions vanish."""
        cells, parent = self, np.arange(len(self))
        active = np.zeros((len(self), bias.shape[1]), dtype=bool)
        for unit in range(bias.shape[1]):
            cells, kept, above = cells._cut_once(weight[parent, unit], bias[parent, unit])
            parent, active = parent[kept], active[kept]
            active[:, unit] = above
        return cells, parent, active

    def _cut_once(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        steep = np.hypot(weight[:, 0], weight[:, 1])  # 0: constant on the cell
        value = (self.corners @ weight[:, :, None])[..., 0] + bias[:, None]  # (C, V)
        away = value / np.where(steep > 0, steep, 1)[:, None]
        real = np.arange(value.shape[1]) < self.count[:, None]
        away[(np.abs(away) <= self.tolerance) | ~real] = 0.0
        up, down = (away > 0).any(1), (away < 0).any(1)
        # A cell within the tolerance of the line goes where its middle lies.
        above = np.where(up | down, up, (value * real).sum(1) > 0)
        crossed = np.flatnonzero(up & down & (steep > 0))
        if not len(crossed):
            same = type(self)(self.corners, self.edges, self.count, self.tolerance, self.cuts + 1)
            return same, np.arange(len(self)), above
        others = np.setdiff1d(np.arange(len(self)), crossed, assume_unique=True)
        parts = [
            (self.corners[others], self.edges[others], self.count[others]),
            self._side(crossed, away[crossed]),
            self._side(crossed, -away[crossed]),
        ]
        width = max(corners.shape[1] for corners, _, _ in parts)
        made = type(self)(
            np.concatenate([_pad(corners, width) for corners, _, _ in parts]),
            np.concatenate([_pad(edges, width) for _, edges, _ in parts]),
            np.concatenate([count for _, _, count in parts]),
            self.tolerance,
            self.cuts + 1,
        )
        half = np.ones(len(crossed), dtype=bool)
        return (
            made,
            np.concatenate([others, crossed, crossed]),
            np.concatenate([above[others], half, ~half]),
        )

    def _side(self, cells: Whole, away: Array) -> tuple[Array, Whole, Whole]:
        """The part of each cell where ``away`` is positive."""
        corners, edges, count = self.corners[cells], self.edges[cells], self.count[cells]
        place = np.arange(away.shape[1])
        real = place < count[:, None]
        after = np.where(place + 1 < count[:, None], place + 1, 0)  # (C, V)
        beyond = np.take_along_axis(away, after, 1)
        there = np.take_along_axis(corners, after[..., None], 1)
        crosses = (away * beyond < 0) & real
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(crosses, away / (away - beyond), 0.0)
        between = corners + share[..., None] * (there - corners)
        leaves = beyond < 0  # what follows lies on the cut
        first = np.where((away == 0) & leaves, self.cuts, edges)
        second = np.where(leaves, self.cuts, edges)
        keep = np.stack([(away >= 0) & real, crosses], -1).reshape(len(cells), -1)  # (C, 2V)
        points = np.stack([corners, between], 2).reshape(len(cells), -1, 2)
        labels = np.stack([first, second], -1).reshape(len(cells), -1)
        order = np.argsort(~keep, axis=1, kind="stable")
        count = keep.sum(1)
        order = order[:, : int(count.max())]
        points = np.take_along_axis(points, order[..., None], 1)
        return points, np.take_along_axis(labels, order, 1), count

    def centers(self) -> Array:
        """The mean of each cell's corners, ``(C, 2)``."""
        real = np.arange(self.corners.shape[1]) < self.count[:, None]
        return (self.corners * real[..., None]).sum(1) / self.count[:, None]

    def vertices(self, cell: int) -> Array:
        """The corners of a cell, in their order round it."""
        return self.corners[cell, : self.count[cell]]

    def neighbours(self, maps: Array, radius: float) -> Whole:
        """Pairs ``(E, 2)`` of cells that share an edge."""
        place = np.arange(self.corners.shape[1])
        real = place < self.count[:, None]
        after = np.where(place + 1 < self.count[:, None], place + 1, 0)
        middle = (self.corners + np.take_along_axis(self.corners, after[..., None], 1)) / 2
        inner = real & (self.edges >= 0)
        return shared_facets(middle[inner], np.nonzero(inner)[0], 8 * self.tolerance)


def _pad(values: NDArray[Any], width: int) -> NDArray[Any]:
    if values.shape[1] == width:
        return values
    padded = np.zeros((len(values), width, *values.shape[2:]), dtype=values.dtype)
    padded[:, : values.shape[1]] = values
    return padded


class Polytope(NamedTuple):
    """A convex body by its corners.

    Args:
        corners: ``(V, D)``.
        tight: ``(V, K)`` whether a corner lies on a plane.
        inner: ``(K,)`` whether a plane is a cut, not the border of the box.
    """

    corners: Array
    tight: Bool
    inner: Bool


def cube(dimension: int) -> Polytope:
    """The cube [-1, 1]^D."""
    signs = np.indices((2,) * dimension).reshape(dimension, -1).T  # (2^D, D)
    tight = np.concatenate([signs == 0, signs == 1], 1)
    return Polytope(2.0 * signs.astype(np.float64) - 1, tight, np.zeros(2 * dimension, dtype=bool))


def split(body: Polytope, away: Array) -> tuple[Polytope, Polytope]:
    """Both parts of a body that a plane crosses: where ``away`` is positive, and negative."""
    above, below = np.flatnonzero(away > 0), np.flatnonzero(away < 0)
    common = (body.tight[above][:, None] & body.tight[below]).reshape(-1, body.tight.shape[1])
    size = common.sum(1)
    # Two corners span an edge if no third corner lies on all the planes that both lie on.
    near = np.flatnonzero(size >= body.corners.shape[1] - 1)
    holds = common[near].astype(np.float32) @ body.tight.T.astype(np.float32)  # (Q, V)
    near = near[(holds == size[near, None]).sum(1) == 2]
    i, j = above[near // len(below)], below[near % len(below)]
    share = (away[i] / (away[i] - away[j]))[:, None]
    made = body.corners[i] + share * (body.corners[j] - body.corners[i])
    corners = np.concatenate([body.corners, made])
    on = np.concatenate([away == 0, np.ones(len(made), dtype=bool)])
    tight = np.column_stack([np.concatenate([body.tight, common[near]]), on])
    inner = np.append(body.inner, True)
    away = np.concatenate([away, np.zeros(len(made))])
    return _part(corners, tight, inner, away >= 0), _part(corners, tight, inner, away <= 0)


def _part(corners: Array, tight: Bool, inner: Bool, keep: Bool) -> Polytope:
    tight = tight[keep]
    facets = tight.sum(0) >= corners.shape[1]  # a facet has at least D corners
    return Polytope(corners[keep], tight[:, facets], inner[facets])


class Polytopes:
    """The cells of the cube [-1, 1]^D."""

    def __init__(self, bodies: list[Polytope], tolerance: float) -> None:
        self.bodies, self.tolerance = bodies, tolerance

    @classmethod
    def box(cls, dimension: int, tolerance: float) -> Self:
        """The whole cube."""
        return cls([cube(dimension)], tolerance)

    def __len__(self) -> int:
        return len(self.bodies)

    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        """Cuts each cell along the planes where its M affine functions vanish."""
        steep = np.linalg.norm(weight, axis=-1)  # (C, M)
        scale = np.where(steep > 0, steep, 1)
        weight, bias = weight / scale[..., None], bias / scale
        bodies: list[Polytope] = []
        parent: list[int] = []
        active: list[Bool] = []
        for cell, body in enumerate(self.bodies):
            pieces = self._cut_cell(body, weight[cell], bias[cell])
            bodies += [piece for piece, _ in pieces]
            active += [signs for _, signs in pieces]
            parent += [cell] * len(pieces)
        return type(self)(bodies, self.tolerance), np.array(parent), np.array(active)

    def _cut_cell(self, body: Polytope, weight: Array, bias: Array) -> list[tuple[Polytope, Bool]]:
        value = body.corners @ weight.T + bias  # (V, M)
        crossed = (value > self.tolerance).any(0) & (value < -self.tolerance).any(0)
        pieces = [(body, value.mean(0) > 0)]
        for unit in np.flatnonzero(crossed):
            done: list[tuple[Polytope, Bool]] = []
            for piece, signs in pieces:
                away = piece.corners @ weight[unit] + bias[unit]
                middle = away.mean()
                away[np.abs(away) <= self.tolerance] = 0.0
                if (away > 0).any() and (away < 0).any():
                    halves: tuple[Polytope | None, ...] = split(piece, away)
                else:
                    halves = (piece,) if middle > 0 else (None, piece)
                for half, sign in zip(halves, (True, False), strict=False):
                    if half is not None:
                        changed = signs.copy()
                        changed[unit] = sign
                        done.append((half, changed))
            pieces = done
        return pieces

    def centers(self) -> Array:
        """The mean of each cell's corners, ``(C, D)``."""
        return np.stack([body.corners.mean(0) for body in self.bodies])

    def vertices(self, cell: int) -> Array:
        """The corners of a cell, in no particular order."""
        return self.bodies[cell].corners

    def neighbours(self, maps: Array, radius: float) -> Whole:
        """Pairs ``(E, 2)`` of cells that share a facet."""
        middles: list[Array] = []
        owners: list[Whole] = []
        for cell, body in enumerate(self.bodies):
            tight = body.tight.T.astype(np.float64)  # (K, V)
            # A plane that only touches holds fewer of the corners than a facet around them.
            held, size = tight @ tight.T, tight.sum(1)
            smaller = (held == size[:, None]) & (size[:, None] < size)
            facets = body.inner & ~smaller.any(1)
            middles.append((tight @ body.corners / size[:, None])[facets])
            owners.append(np.full(int(facets.sum()), cell))
        return shared_facets(np.concatenate(middles), np.concatenate(owners), 8 * self.tolerance)
