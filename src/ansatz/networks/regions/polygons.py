"""Cells of a network of two numbers: convex polygons, all cut at once.

C cells, V corners of the largest, M functions. Corners run round each polygon; shorter lists are
padded at the end.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ansatz.networks.regions.facets import shared_facets

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


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
        """Cuts each cell along the lines where its M affine functions vanish.

        Args:
            weight: ``(C, M, 2)``.
            bias: ``(C, M)``.

        Returns:
            The new cells, the index of the old one that each lies in, and ``(C', M)`` whether
            each function is positive there.
        """
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
