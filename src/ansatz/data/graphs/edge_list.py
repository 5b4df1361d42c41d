"""Edges as they are given, made plain: no loops, no duplicates, sorted, both directions."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import DataError


class EdgeList(NamedTuple):
    """Edges sorted by source and destination, each once.

    Args:
        edge_index: ``(2, E)`` positions of nodes; an undirected edge stands in both directions.
        rows: ``(E,)`` the given edge that each was made from.
        weights: ``(E,)``; None where none were given.
        loops: number of edges of a node with itself, which were left out.
        duplicates: number of edges that were merged with an equal one.
    """

    edge_index: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    loops: int
    duplicates: int


def plain_edges(
    edge_index: Any, nodes: int, *, weights: Any = None, directed: bool = False
) -> EdgeList:
    """Leaves out loops, merges duplicates, whose weights add up, and sorts.

    An undirected list may hold each edge once or in both directions.

    Example:
        >>> from ansatz.data.graphs.edge_list import plain_edges
        >>> plain_edges([[0, 0, 2], [1, 1, 2]], nodes=3).edge_index
        array([[0, 1],
               [1, 0]])
    """
    source, destination = _positions(edge_index, nodes)
    mass = None if weights is None else _weights(weights, len(source))
    rows = np.arange(len(source))
    proper = source != destination
    loops = int((~proper).sum())
    source, destination, rows = source[proper], destination[proper], rows[proper]
    code = source * nodes + destination
    if not directed:
        back = destination * nodes + source
        if _lists_both(code, back, None if mass is None else mass[rows]):
            lower = source < destination
            code, rows = code[lower], rows[lower]
        else:
            code = np.minimum(code, back)
    single, first, place = np.unique(code, return_index=True, return_inverse=True)
    duplicates = len(code) - len(single)
    total: NDArray[Any] | None = None
    if mass is not None:
        total = np.bincount(place, mass[rows], len(single))
    source, destination, rows = *np.divmod(single, max(nodes, 1)), rows[first]
    if not directed:
        order = np.lexsort((np.append(destination, source), np.append(source, destination)))
        source, destination = (
            np.append(source, destination)[order],
            np.append(destination, source)[order],
        )
        rows = np.append(rows, rows)[order]
        total = None if total is None else np.append(total, total)[order]
    return EdgeList(np.stack([source, destination]), rows, total, loops, duplicates)


def _lists_both(
    code: NDArray[np.int64], back: NDArray[np.int64], mass: NDArray[np.float64] | None
) -> bool:
    """Tests whether every edge is listed in both directions, as often and as heavy."""
    beside = np.zeros(len(code)) if mass is None else mass
    one, other = (np.lexsort((beside, each)) for each in (code, back))
    same = np.array_equal(code[one], back[other])
    return same and np.array_equal(beside[one], beside[other])


def _positions(edge_index: Any, nodes: int) -> NDArray[np.int64]:
    """``(2, E)`` whole numbers below the number of nodes."""
    given = np.asarray(edge_index)
    if given.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if given.ndim != 2 or given.shape[0] != 2:
        raise DataError(
            f"edge_index must have shape (2, E), got {given.shape}. Of pairs (E, 2) take the "
            "transpose."
        )
    if given.dtype.kind not in "iu":
        raise DataError(f"edge_index must hold whole numbers, got {given.dtype}.")
    found = given.astype(np.int64)
    bad = (found < 0) | (found >= nodes)
    if bad.any():
        edge = int(np.flatnonzero(bad.any(0))[0])
        raise DataError(
            f"edge {edge} joins nodes {found[0, edge]} and {found[1, edge]}, and there are "
            f"{nodes} nodes, 0 to {nodes - 1}."
        )
    return found


def _weights(weights: Any, count: int) -> NDArray[np.float64]:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (count,):
        raise DataError(f"edge weights must have shape ({count},), got {found.shape}.")
    bad = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if len(bad):
        raise DataError(f"edge {bad[0]} has the weight {found[bad[0]]}: expected a number >= 0.")
    return found


def count_words(count: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else many}"


def notes_on(edges: EdgeList) -> tuple[str, ...]:
    """Sentences about edges that were left out or merged."""
    notes = []
    if edges.duplicates:
        added = "" if edges.weights is None else "; their weights were added"
        what = count_words(edges.duplicates, "duplicate edge was", "duplicate edges were")
        notes.append(f"{what} merged{added}.")
    if edges.loops:
        what = count_words(edges.loops, "edge", "edges")
        notes.append(
            f"{what} of a node with itself {'was' if edges.loops == 1 else 'were'} left out."
        )
    return tuple(notes)
