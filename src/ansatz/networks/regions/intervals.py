"""Cells of a network of one number: intervals between breakpoints."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.intp]


class Intervals:
    """The cells of [-1, 1], from left to right, all cut at once.

    Args:
        low: ``(C,)`` left ends.
        high: ``(C,)`` right ends.
        tolerance: breakpoints that are no further apart are one.
    """

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
        """Cuts each cell where one of its M affine functions vanishes.

        Args:
            weight: ``(C, M, 1)``.
            bias: ``(C, M)``.

        Returns:
            The new cells, the index of the old one that each lies in, and ``(C', M)`` whether
            each function is positive there.
        """
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
