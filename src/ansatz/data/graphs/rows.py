"""Nodes and pairs of nodes as rows, which stay with their graph."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ansatz.data.graphs.features import Features, names_of, read_features, stack, take
from ansatz.data.keys import cell_keys, mix
from ansatz.seeds import derive
from ansatz.spec import InputSpec

if TYPE_CHECKING:
    from ansatz.data.graphs.graph import Graph


def spec_of(graph: "Graph", rows: Literal["graphs", "nodes", "pairs"]) -> InputSpec:
    """The numbers of features of nodes and edges, as they are given."""
    edges = 0 if graph.edges is None else int(graph.edges.shape[1])
    return InputSpec.graph(int(graph.x.shape[1]), edges, rows=rows)


def _chosen(index: Any) -> Any:
    return index if isinstance(index, slice) else np.asarray(index)


class NodeRows:
    """Nodes of one graph.

    Args:
        graph: that messages pass along.
        positions: ``(N,)`` of the nodes.
        whole: the graph that a model keeps, where training sees less of it; None for the same.
        inductive: whether nodes for the test are to be absent from training.

    Example:
        >>> from ansatz.data import Graph
        >>> Graph.of([[0, 1], [1, 2]]).nodes()[1:].names.tolist()
        [1, 2]
    """

    has_features = True

    def __init__(
        self,
        graph: "Graph",
        positions: NDArray[np.int64],
        whole: "Graph | None" = None,
        *,
        inductive: bool = False,
    ) -> None:
        self.graph, self.positions, self.whole = graph, positions, whole
        self.inductive = inductive

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: Any) -> "NodeRows":
        chosen = self.positions[_chosen(index)]
        return NodeRows(self.graph, chosen, self.whole, inductive=self.inductive)

    @property
    def spec(self) -> InputSpec:
        """The features before their columns are coded."""
        return spec_of(self.graph, "nodes")

    @property
    def names(self) -> NDArray[Any]:
        """The names of the nodes."""
        return self.graph.names[self.positions]

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each node's name: nodes with equal features are not duplicates."""
        names = self.names if self.names.dtype.kind in "iu" else self.names.astype(object)
        return mix(cell_keys(names.reshape(-1, 1), derive(seed, "node")))

    def followed_by(self, other: "NodeRows") -> "NodeRows":
        """These rows and others of the same graph."""
        if getattr(other, "graph", None) is not self.graph:
            raise TypeError("they are nodes of another graph")
        positions = np.concatenate([self.positions, other.positions])
        return NodeRows(self.graph, positions, self.whole, inductive=self.inductive)

    def describe(self) -> dict[str, Any]:
        """The columns of the nodes."""
        x = self.graph.x
        return {"names": names_of(x), "count": int(x.shape[1]), "columns": None}

    def without(self, hidden: NDArray[np.int64]) -> "NodeRows":
        """The rows in a graph that lacks some other nodes and their edges."""
        seen = np.setdiff1d(np.arange(len(self.graph)), hidden)
        place = np.full(len(self.graph), -1)
        place[seen] = np.arange(len(seen))
        return NodeRows(self.graph.induced(seen), place[self.positions], self.whole or self.graph)


class PairRows:
    """Pairs of nodes of one graph, with or without an edge between them.

    Args:
        graph: that messages pass along.
        pairs: ``(N, 2)`` positions.
        x: features of each pair; None where there are none.
        whole: the graph that a model keeps, where training sees less of it; None for the same.

    Example:
        >>> from ansatz.data import Graph
        >>> Graph.of([[0, 1], [1, 2]]).pairs().names.tolist()
        [[0, 1], [1, 2]]
    """

    has_features = True

    def __init__(
        self,
        graph: "Graph",
        pairs: NDArray[np.int64],
        x: Features | None = None,
        whole: "Graph | None" = None,
    ) -> None:
        self.graph, self.pairs, self.whole = graph, np.asarray(pairs).reshape(-1, 2), whole
        self.x = read_features(x, len(self.pairs), "pair")

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> "PairRows":
        rows = _chosen(index)
        return PairRows(self.graph, self.pairs[rows], take(self.x, rows), self.whole)

    @property
    def spec(self) -> InputSpec:
        """The features before their columns are coded."""
        return spec_of(self.graph, "pairs")

    @property
    def names(self) -> NDArray[Any]:
        """The names of both nodes of each pair, ``(N, 2)``."""
        return self.graph.names[self.pairs]

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of both names; the directions of an undirected pair share it."""
        names = self.names if self.names.dtype.kind in "iu" else self.names.astype(object)
        if not len(names):
            return np.zeros(0, dtype=np.uint64)
        first, second = (
            mix(cell_keys(names[:, k].reshape(-1, 1), derive(seed, "pair"))) for k in (0, 1)
        )
        return mix(first + (mix(second) if self.graph.directed else second))

    def followed_by(self, other: "PairRows") -> "PairRows":
        """These rows and others of the same graph."""
        if getattr(other, "graph", None) is not self.graph:
            raise TypeError("they are pairs of another graph")
        pairs = np.concatenate([self.pairs, other.pairs])
        return PairRows(self.graph, pairs, stack([self.x, other.x], "pair"), self.whole)

    def describe(self) -> dict[str, Any]:
        """The columns of the nodes and of the pairs."""
        count = int(self.graph.x.shape[1] + self.x.shape[1])
        return {"names": None, "count": count, "columns": None}
