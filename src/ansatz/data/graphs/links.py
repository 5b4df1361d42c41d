"""Links of a graph: its edges, and as many pairs without an edge, as rows with an outcome."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import Batch
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.rows import PairRows
from ansatz.errors import DataError
from ansatz.layers.graph_batch import GraphBatch
from ansatz.seeds import derive, generator

HIDDEN = 5  # one of so many edges is predicted in an epoch, and hidden from the messages


class LinkRows(PairRows):
    """Pairs of nodes, some of which are edges.

    Args:
        graph: that messages pass along.
        pairs: ``(N, 2)`` positions.
        exists: ``(N,)`` whether each is an edge.
        known: all edges of the data, by which ranks are filtered; None for those of the graph.

    Example:
        >>> from ansatz.data import Graph
        >>> from ansatz.data.graphs.links import LinkRows
        >>> rows = LinkRows.of(Graph.of([[0, 1, 2, 3], [1, 2, 3, 4]]))
        >>> len(rows), int(rows.exists.sum())
        (8, 4)
    """

    def __init__(
        self,
        graph: Graph,
        pairs: NDArray[np.int64],
        exists: NDArray[np.bool_],
        known: Graph | None = None,
    ) -> None:
        super().__init__(graph, pairs)
        self.exists, self.known = np.asarray(exists, dtype=bool), known

    @classmethod
    def of(cls, graph: Graph) -> "LinkRows":
        """All edges once, and as many pairs without one, which depend on the graph alone."""
        edges = graph.pair_index.T
        if len(edges) < 2 or len(graph) < 3:
            raise DataError("links are predicted in a graph of three nodes and two edges or more.")
        seed = derive(0, "negatives", len(graph), len(edges))
        others = absent_pairs(graph, len(edges), np.random.default_rng(seed))
        exists = np.arange(len(edges) + len(others)) < len(edges)
        return cls(graph, np.concatenate([edges, others]), exists)

    def __getitem__(self, index: Any) -> "LinkRows":
        rows = index if isinstance(index, slice) else np.asarray(index)
        return LinkRows(self.graph, self.pairs[rows], self.exists[rows], self.known)

    def beside(self, graph: Graph) -> "LinkRows":
        """The same pairs, in a graph of fewer edges; all edges stay known."""
        return LinkRows(graph, self.pairs, self.exists, self.known or self.graph)

    def only(self) -> Graph:
        """The graph of the edges among these rows."""
        return with_edges(self.graph, self.pairs[self.exists])


def with_edges(graph: Graph, pairs: NDArray[np.int64]) -> Graph:
    """The nodes of a graph with some of its edges."""
    code = pair_codes(graph, graph.edge_index.T)
    kept = np.isin(code, pair_codes(graph, pairs))
    return replace(
        graph,
        edge_index=graph.edge_index[:, kept],
        edges=None if graph.edges is None else graph.edges[kept],
        weights=None if graph.weights is None else graph.weights[kept],
        notes=(),
    )


def pair_codes(graph: Graph, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each pair, ``(N,)``: both directions share it where edges have none."""
    first, second = pairs[:, 0], pairs[:, 1]
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    found: NDArray[np.int64] = first * len(graph) + second
    return found


def absent_pairs(graph: Graph, count: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Different pairs of two nodes without an edge, ``(M, 2)``; as many as asked for, or all."""
    nodes, known = len(graph), np.unique(pair_codes(graph, graph.pair_index.T))
    total = nodes * (nodes - 1) // (1 if graph.directed else 2) - len(known)
    count = min(count, total)
    if nodes <= 1_000:
        first, second = np.nonzero(~np.eye(nodes, dtype=bool))
        codes = np.unique(pair_codes(graph, np.stack([first, second], 1)))
        codes = np.sort(draw.choice(np.setdiff1d(codes, known), count, replace=False))
    else:
        codes = np.empty(0, dtype=np.int64)
        while len(codes) < count:
            pairs = draw.integers(0, nodes, (2 * count, 2))
            more = pair_codes(graph, pairs[pairs[:, 0] != pairs[:, 1]])
            codes = np.unique(np.concatenate([codes, more[~np.isin(more, known)]]))
        codes = np.sort(draw.permutation(codes)[:count])
    return np.stack([codes // nodes, codes % nodes], 1)


class LinkSource:
    """A batch in each epoch: a fifth of the training edges, hidden from the messages.

    Beside them stand as many pairs that are not training edges, drawn anew.

    Args:
        batch: the graph with all training edges.
        graph: the same, as numpy has it.
        weight: the type of the weights.
        seed: what is hidden in epoch e is a function of (seed, e).
    """

    def __init__(self, batch: GraphBatch, graph: Graph, weight: torch.dtype, seed: int) -> None:
        self.batch, self.graph, self.dtype, self.seed = batch, graph, weight, seed
        edges = batch.edges.edge_index.numpy()
        self._codes = torch.from_numpy(pair_codes(graph, edges.T))
        self._pairs = torch.from_numpy(graph.pair_index.T.copy())
        self._own = torch.from_numpy(pair_codes(graph, graph.pair_index.T))

    def __len__(self) -> int:
        return 1

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batch of ``epoch``."""
        if start:
            return
        count = max(1, len(self._pairs) // HIDDEN)
        order = torch.randperm(len(self._pairs), generator=generator(self.seed, "hidden", epoch))
        hidden = order[:count].sort().values
        kept = ~torch.isin(self._codes, self._own[hidden])
        draw = np.random.default_rng(derive(self.seed, "absent", epoch))
        absent = torch.from_numpy(absent_pairs(self.graph, count, draw))
        pairs = torch.cat([self._pairs[hidden], absent])
        yield pairs_batch(kept_edges(self.batch, kept), pairs, count, self.dtype)


def kept_edges(batch: GraphBatch, kept: Tensor) -> GraphBatch:
    """A graph with some of its edges."""
    features = None if batch.edge_features is None else batch.edge_features[kept]
    return batch._replace(edges=batch.edges.keep(kept), edge_features=features)


def pairs_batch(batch: GraphBatch, pairs: Tensor, edges: int, dtype: torch.dtype) -> Batch:
    """Pairs to predict, the first of which are edges."""
    outcome = (torch.arange(len(pairs)) < edges).to(dtype)
    return Batch.of((batch._replace(targets=pairs),), outcome, torch.ones(len(pairs), dtype=dtype))
