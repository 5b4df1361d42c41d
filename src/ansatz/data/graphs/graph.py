"""One graph: nodes, the edges between them, and what is known of both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.graphs.edge_list import notes_on, plain_edges
from ansatz.data.graphs.features import Features, read_features, take
from ansatz.errors import DataError

if TYPE_CHECKING:
    from ansatz.data.graphs.rows import NodeRows, PairRows


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes and edges with their features; :meth:`of` makes one.

    Args:
        x: features of the nodes: a frame, an array ``(N, D)`` or a sparse matrix.
        edge_index: ``(2, E)`` positions of nodes, sorted by source and destination; an undirected
            edge stands in both directions.
        edges: features of the edges, a row for each; None where there are none.
        weights: ``(E,)`` numbers >= 0; None where all are 1.
        ids: ``(N,)`` names of the nodes; None where positions name them.
        directed: whether an edge has one direction.
        notes: sentences about edges that were merged or left out.

    Example:
        >>> from ansatz.data import Graph
        >>> triangle = Graph.of([[0, 1, 2], [1, 2, 0]], x=[[1.0], [2.0], [3.0]])
        >>> triangle
        Graph: 3 nodes, 3 edges, 1 feature of a node
        >>> triangle.degrees
        array([2, 2, 2])
    """

    x: Features
    edge_index: NDArray[np.int64]
    edges: Features | None = None
    weights: NDArray[np.float64] | None = None
    ids: NDArray[Any] | None = None
    directed: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        edge_index: Any,
        x: Any = None,
        *,
        edges: Any = None,
        weights: Any = None,
        ids: Any = None,
        num_nodes: int | None = None,
        directed: bool = False,
    ) -> "Graph":
        """Makes a graph: duplicates merge (weights add up), edges of a node with itself go.

        Args:
            edge_index: ``(2, E)`` positions of nodes.
            x: features of the nodes.
            edges: features of the edges as they are given; of duplicates the first has them.
            weights: of the edges.
            ids: names of the nodes.
            num_nodes: where neither features nor names show it; else the largest position.
            directed: False gives every edge both directions.
        """
        names = None if ids is None else _names(ids)
        count = _count(edge_index, x, names, num_nodes)
        found = plain_edges(edge_index, count, weights=weights, directed=directed)
        beside = None
        if edges is not None:
            given = np.asarray(edge_index)
            total = given.shape[1] if given.ndim == 2 else 0
            beside = take(read_features(edges, total, "edge"), found.rows)
        return cls(
            read_features(x, count, "node"),
            found.edge_index,
            beside,
            found.weights,
            names,
            directed,
            notes_on(found),
        )

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def __repr__(self) -> str:
        nodes, edges = len(self), len(self.pair_rows)
        words = [f"{nodes:,} node{'s' * (nodes != 1)}", f"{edges:,} edge{'s' * (edges != 1)}"]
        for what, x in (("a node", self.x), ("an edge", self.edges)):
            if x is not None and x.shape[1]:
                words.append(f"{x.shape[1]:,} feature{'s' * (x.shape[1] != 1)} of {what}")
        return f"{'Directed graph' if self.directed else 'Graph'}: {', '.join(words)}"

    @property
    def names(self) -> NDArray[Any]:
        """The names of the nodes, or their positions."""
        return np.arange(len(self)) if self.ids is None else self.ids

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of edges that leave each node."""
        return np.bincount(self.edge_index[0], minlength=len(self))

    @property
    def pair_rows(self) -> NDArray[np.int64]:
        """The columns of ``edge_index`` in which each edge stands once."""
        if self.directed:
            return np.arange(self.edge_index.shape[1])
        return np.flatnonzero(self.edge_index[0] < self.edge_index[1])

    @property
    def pair_index(self) -> NDArray[np.int64]:
        """``(2, M)`` each edge once; undirected ones from the lower position."""
        return self.edge_index[:, self.pair_rows]

    def positions(self, ids: Any) -> NDArray[np.int64]:
        """The positions of the nodes of these names; an absent one is an error.

        Example:
            >>> from ansatz.data import Graph
            >>> Graph.of([[0], [1]], ids=["a", "b"]).positions(["b"])
            array([1])
        """
        import pandas as pd

        given = np.asarray(ids)
        if self.ids is None:
            if given.size and given.dtype.kind not in "iu":
                raise DataError(f"nodes are named by positions, whole numbers; got {given.dtype}.")
            found = np.where((given >= 0) & (given < len(self)), given, -1)
        else:
            own = _alike(self.ids, given)
            found = pd.Index(own).get_indexer(given.astype(own.dtype).ravel()).reshape(given.shape)
        absent = np.flatnonzero(found.ravel() < 0)
        if len(absent):
            raise DataError(
                f"row {absent[0] + 1}: the graph has no node {given.ravel()[absent[0]]!s}."
            )
        return found.astype(np.int64)

    def nodes(self, ids: Any = None) -> "NodeRows":
        """Nodes as rows: what an estimator's ``fit`` and ``predict`` take; all by default.

        Example:
            >>> from ansatz.data import Graph
            >>> len(Graph.of([[0, 1], [1, 2]]).nodes([0, 2]))
            2
        """
        from ansatz.data.graphs.rows import NodeRows

        return NodeRows(self, np.arange(len(self)) if ids is None else self.positions(ids))

    def pairs(self, ids: Any = None, x: Any = None) -> "PairRows":
        """Pairs of nodes as rows, ``(N, 2)`` names; by default the edges, each once.

        Args:
            ids: names of both nodes of each pair.
            x: features of the pairs; by default those of edges that are there.

        Example:
            >>> from ansatz.data import Graph
            >>> len(Graph.of([[0, 1], [1, 2]]).pairs())
            2
        """
        from ansatz.data.graphs.rows import PairRows

        if ids is None:
            own = None if self.edges is None else take(self.edges, self.pair_rows)
            return PairRows(self, self.pair_index.T, own if x is None else x)
        return PairRows(self, self.positions(np.asarray(ids).reshape(-1, 2)), x)

    def induced(self, nodes: NDArray[np.int64]) -> "Graph":
        """The graph of some nodes, in order of position, and of the edges between them."""
        inside = np.zeros(len(self), dtype=bool)
        inside[nodes] = True
        kept = np.flatnonzero(inside[self.edge_index].all(0))
        place = np.cumsum(inside) - 1
        return replace(
            self,
            x=take(self.x, np.flatnonzero(inside)),
            edge_index=place[self.edge_index[:, kept]],
            edges=None if self.edges is None else take(self.edges, kept),
            weights=None if self.weights is None else self.weights[kept],
            ids=self.names[inside],
            notes=(),
        )


def _names(ids: Any) -> NDArray[Any]:
    """Names of nodes, each once."""
    import pandas as pd

    names = np.asarray(ids)
    if names.dtype.kind not in "iu":
        missing = np.flatnonzero(pd.isna(names.astype(object)))
        if len(missing):
            raise DataError(f"row {missing[0] + 1}: a node without an id.")
        names = names.astype(str)
    twice = pd.Index(names).duplicated()
    if twice.any():
        raise DataError(
            f"the id {names[twice][0]} names two nodes: row {int(np.flatnonzero(twice)[0]) + 1}."
        )
    return names


def _alike(names: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Names as text where the given ones are text."""
    return names if given.dtype.kind in "iu" and names.dtype.kind in "iu" else names.astype(str)


def _count(edge_index: Any, x: Any, names: Any, count: int | None) -> int:
    """The number of nodes."""
    if count is not None:
        return count
    if x is not None:
        return int(x.shape[0]) if hasattr(x, "shape") else len(x)
    if names is not None:
        return len(names)
    given: Sequence[Any] | NDArray[Any] = np.asarray(edge_index)
    return int(np.max(given)) + 1 if np.size(given) else 0
