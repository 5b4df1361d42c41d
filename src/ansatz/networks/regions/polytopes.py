"""Cells of a network of three or more numbers: convex polytopes, cut one after another.

D numbers, V corners, K planes. A corner knows the planes it lies on: that tells the edges.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ansatz.networks.regions.facets import shared_facets

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Bool = NDArray[np.bool_]


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
    """Both parts of a body that a plane crosses: where ``away`` is positive, and negative.

    Args:
        body: what is cut.
        away: ``(V,)`` signed distance of each corner from the plane; 0 on it.
    """
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
    """The cells of the cube [-1, 1]^D.

    Args:
        bodies: one polytope per cell.
        tolerance: corners that are no further from a plane lie on it.
    """

    def __init__(self, bodies: list[Polytope], tolerance: float) -> None:
        self.bodies, self.tolerance = bodies, tolerance

    @classmethod
    def box(cls, dimension: int, tolerance: float) -> Self:
        """The whole cube."""
        return cls([cube(dimension)], tolerance)

    def __len__(self) -> int:
        return len(self.bodies)

    def cut(self, weight: Array, bias: Array) -> tuple[Self, Whole, Bool]:
        """Cuts each cell along the planes where its M affine functions vanish.

        Args:
            weight: ``(C, M, D)``.
            bias: ``(C, M)``.

        Returns:
            The new cells, the index of the old one that each lies in, and ``(C', M)`` whether
            each function is positive there.
        """
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
