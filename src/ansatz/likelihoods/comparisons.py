"""Who finished ahead of whom: what rankings can and cannot say about their items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

Codes = NDArray[np.int64]


class Comparisons(NamedTuple):
    """The strongly connected groups of the graph with an edge from each item to those it beat.

    Inside a group every item has beaten every other, if only by way of others; then the group has
    finite maximum-likelihood scores, and only then (Ford 1957; Hunter 2004, assumption 1).

    Args:
        group: ``(K,)`` the group of each item.
        level: ``(G,)`` of each group: 0 for the main one, the largest; -1 for those whose items
            only ever lost against it or its inferiors, -2 below these, and 1, 2, ... above.
        linked: ``(G,)`` False for groups without a way to or from the main one.
        compared: ``(K,)`` False for items that were never compared with any other.

    References:
        Ford (1957), Solution of a ranking problem from binary comparisons. American Mathematical
        Monthly 64, 28-33.
    """

    group: Codes
    level: Codes
    linked: NDArray[np.bool_]
    compared: NDArray[np.bool_]

    def apart(self) -> list[Codes]:
        """The items of each group that rankings do not link with the main one."""
        members = [np.flatnonzero(self.group == g) for g in np.flatnonzero(~self.linked)]
        return [items for items in members if self.compared[items].all()]

    def members(self, level: int) -> list[Codes]:
        """The items of each linked group at this level."""
        groups = np.flatnonzero(self.linked & (self.level == level))
        return [np.flatnonzero(self.group == g) for g in groups]

    @property
    def connected(self) -> bool:
        """Whether all items form one group."""
        return len(self.level) == 1


def compare(order: Codes, items: int, unranked: str = "last") -> Comparisons:
    """Groups and levels of the items of rankings.

    Args:
        order: ``(N, L)`` item codes, best first, -1 behind the last.
        items: K.
        unranked: ``"last"``: the ranked items beat all others; ``"absent"``: they met none.
    """
    winner, loser = _edges(order, items, unranked)
    edges = coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(items, items))
    count, group = connected_components(edges, directed=True, connection="strong")
    compared = np.isin(np.arange(items), np.concatenate([winner, loser]))
    upper, lower = group[winner], group[loser]
    across = np.unique(np.stack([upper, lower], 1)[upper != lower], axis=0)
    main = _main(group, count, across)
    below = _longest(across, count, main)
    above = _longest(across[:, ::-1], count, main)
    linked = (below >= 0) | (above >= 0)
    level = np.where(above > 0, above, np.where(below > 0, -below, 0))
    return Comparisons(group.astype(np.int64), level, linked, compared)


def _edges(order: Codes, items: int, unranked: str) -> tuple[Codes, Codes]:
    """Each ranked item beats the next one; the others follow by way of it."""
    follows = order[:, 1:] >= 0
    winner, loser = order[:, :-1][follows], order[:, 1:][follows]
    if unranked == "last":
        out = np.ones((len(order), items + 1), dtype=bool)
        np.put_along_axis(out, np.where(order >= 0, order, items), False, axis=1)
        row, left = np.nonzero(out[:, :items])
        last = order[np.arange(len(order)), np.maximum((order >= 0).sum(1) - 1, 0)]
        row, left = row[last[row] >= 0], left[last[row] >= 0]  # an empty order says nothing
        winner, loser = np.concatenate([winner, last[row]]), np.concatenate([loser, left])
    return winner, loser


def _main(group: Codes, count: int, across: Codes) -> int:
    """The largest group; among equals the one that met most others, then the first item's."""
    size = np.bincount(group, minlength=count)
    met = np.bincount(across.ravel(), minlength=count)
    first = np.array([np.flatnonzero(group == g)[0] for g in range(count)])
    return int(np.lexsort((first, -met, -size))[0])


def _longest(edges: Codes, count: int, start: int) -> Codes:
    """The length of the longest way from ``start`` in a graph without cycles; -1 for no way."""
    length = np.full(count, -1)
    length[start] = 0
    while len(edges):
        known = length[edges[:, 0]] >= 0
        longer = length.copy()
        np.maximum.at(longer, edges[known, 1], length[edges[known, 0]] + 1)
        if np.array_equal(longer, length):
            break
        length = longer
    return length
