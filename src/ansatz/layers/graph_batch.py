"""Graphs as the input of a network: features, edges, and the rows that are answered."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.layers.edges import Edges
from ansatz.layers.ragged import places, rows_of


class SparseRows(NamedTuple):
    """Sparse features: the numbers of each row that are not 0.

    A sparse matrix is a bipartite graph from its D columns to its N rows, weighted by its values.

    Args:
        entries: from columns to rows.

    Example:
        >>> import torch
        >>> from ansatz.layers import SparseRows
        >>> x = SparseRows.of(torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
        >>> x @ torch.eye(3)
        tensor([[0., 2., 0.],
                [1., 0., 3.]])
    """

    entries: Edges

    @classmethod
    def of(cls, matrix: Tensor) -> "SparseRows":
        """Takes a matrix of torch, CSR, COO or dense."""
        matrix = (matrix if matrix.is_sparse else matrix.to_sparse()).coalesce()
        return cls.from_csr(
            matrix.values(),
            matrix.indices()[1],
            torch.nn.functional.pad(
                torch.bincount(matrix.indices()[0], minlength=len(matrix)).cumsum(0), (1, 0)
            ),
            matrix.shape[1],
        )

    @classmethod
    def from_csr(
        cls, values: Tensor, columns: Tensor, offsets: Tensor, features: int
    ) -> "SparseRows":
        """Takes the three arrays of scipy's CSR; ``offsets`` begins with 0, one more than rows."""
        counts = (len(offsets) - 1, features)
        columns, offsets = columns.long(), offsets.long()
        return cls(Edges.sorted(columns, rows_of(offsets), counts, values))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, (N, D)."""
        return self.entries.nodes, self.entries.sources

    @property
    def values(self) -> Tensor:
        """The numbers that are stored."""
        assert self.entries.weight is not None
        return self.entries.weight

    def __matmul__(self, other: Tensor) -> Tensor:
        """The product with a matrix, ``(D, K)`` to ``(N, K)``."""
        return self.entries.sum(other)

    def count_rows(self) -> int:
        """The number of rows, N."""
        return self.entries.nodes

    def take_rows(self, rows: slice | Tensor) -> "SparseRows":
        """Some of the rows; all columns stay."""
        place, offsets = places(self.entries.offsets, rows)
        return SparseRows.from_csr(
            self.values[place], self.entries.source[place], offsets, self.entries.sources
        )

    def with_values(self, values: Tensor) -> "SparseRows":
        """Other numbers at the same places."""
        return SparseRows(self.entries._replace(weight=values))

    def dense(self) -> Tensor:
        """The matrix with its zeros, ``(N, D)``."""
        return self.entries.dense()


class GraphBatch(NamedTuple):
    """Graphs side by side; a row is a graph, or a node or a pair of nodes that is answered.

    Graph b has the nodes ``offsets[b]:offsets[b + 1]``; no edge joins two graphs. A network gives
    one answer per row: ``network(batch)`` is ``(B, P)``.

    Args:
        x: features of the nodes, ``(N, D)``, or :class:`SparseRows`.
        edges: sorted edges of all graphs.
        edge_features: ``(E, F)`` in the order of ``edges``, or None.
        offsets: ``(G + 1,)``, the first node of each graph.
        graph_features: ``(G, U)``, or None.
        relations: ``(E,)`` codes of the kind of each edge, or None.
        targets: ``(B,)`` nodes or ``(B, 2)`` pairs that are answered; None where graphs are.

    Example:
        >>> import torch
        >>> from ansatz.layers import GraphBatch
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> graph = GraphBatch.of(torch.eye(3), triangle, undirected=True)
        >>> graph.count_rows(), len(graph.edges.source)
        (1, 6)
        >>> graph._replace(targets=torch.tensor([0, 2])).count_rows()
        2
        >>> both = GraphBatch.collate([graph, graph])
        >>> both.take_rows(torch.tensor([1])).edges.source.equal(graph.edges.source)
        True
    """

    x: "Tensor | SparseRows"
    edges: Edges
    edge_features: Tensor | None
    offsets: Tensor
    graph_features: Tensor | None = None
    relations: Tensor | None = None
    targets: Tensor | None = None

    @classmethod
    def of(
        cls,
        x: "Tensor | SparseRows",
        edge_index: Tensor,
        *,
        weight: Tensor | None = None,
        edge_features: Tensor | None = None,
        graph_features: Tensor | None = None,
        relations: Tensor | None = None,
        targets: Tensor | None = None,
        undirected: bool = False,
    ) -> "GraphBatch":
        """One graph from pairs (source, destination), ``(2, E)``.

        Both directions of an undirected edge have its features.
        """
        nodes = x.shape[0]
        edges, place = Edges.sort(edge_index, nodes, weight, undirected=undirected)
        return cls(
            x,
            edges,
            None if edge_features is None else edge_features[place],
            torch.tensor([0, nodes], device=edge_index.device),
            graph_features,
            None if relations is None else relations[place],
            targets,
        )

    @classmethod
    def collate(cls, graphs: "list[GraphBatch]") -> "GraphBatch":
        """Puts batches of graphs side by side; to cut some of many, :meth:`take_rows` is faster."""
        counts = torch.tensor([graph.nodes for graph in graphs])
        shift = (counts.cumsum(0) - counts).tolist()
        edge_index = torch.cat(
            [graph.edges.edge_index + s for graph, s in zip(graphs, shift, strict=True)], 1
        )
        offsets = [graph.offsets[1:] + s for graph, s in zip(graphs, shift, strict=True)]
        targets = None
        if graphs[0].targets is not None:
            each = zip(graphs, shift, strict=True)
            targets = torch.cat([g.targets + s for g, s in each if g.targets is not None])
        nodes = sum(graph.nodes for graph in graphs)
        weight = _cat([graph.edges.weight for graph in graphs])
        return cls(
            _cat_features([graph.x for graph in graphs]),
            Edges.sorted(edge_index[0], edge_index[1], (nodes, nodes), weight),
            _cat([graph.edge_features for graph in graphs]),
            torch.cat([offsets[0].new_zeros(1), *offsets]),
            _cat([graph.graph_features for graph in graphs]),
            _cat([graph.relations for graph in graphs]),
            targets,
        )

    @property
    def nodes(self) -> int:
        """The number of nodes, N."""
        return self.edges.nodes

    @property
    def graphs(self) -> int:
        """The number of graphs, G."""
        return len(self.offsets) - 1

    @property
    def graph_of_node(self) -> Tensor:
        """The graph of each node, ``(N,)``."""
        return rows_of(self.offsets, self.nodes)

    def count_rows(self) -> int:
        """The number of answers, B: of targets, or of graphs where there are none."""
        return self.graphs if self.targets is None else len(self.targets)

    def take_rows(self, rows: slice | Tensor) -> "GraphBatch":
        """Some graphs, with their nodes and edges; of targets some of them, with all graphs."""
        if self.targets is not None:
            return self._replace(targets=self.targets[rows])
        nodes, offsets = places(self.offsets, rows)
        edges, place = self.edges.take_blocks(self.offsets, rows, nodes)
        x = self.x
        x = x.index_select(0, nodes) if isinstance(x, Tensor) else x.take_rows(nodes)
        features = self.edge_features
        return GraphBatch(
            x,
            edges,
            None if features is None else features.index_select(0, place),
            offsets,
            None if self.graph_features is None else self.graph_features[rows],
            None if self.relations is None else self.relations[place],
        )

    def take_nodes(self, nodes: Tensor) -> "GraphBatch":
        """The subgraph of some nodes of one graph, in their order, without targets."""
        edges, place = self.edges.take(nodes)
        x = self.x[nodes] if isinstance(self.x, Tensor) else self.x.take_rows(nodes)
        return GraphBatch(
            x,
            edges,
            None if self.edge_features is None else self.edge_features[place],
            torch.tensor([0, len(nodes)], device=nodes.device),
            self.graph_features,
            None if self.relations is None else self.relations[place],
        )


def _cat(parts: "list[Tensor | None]") -> Tensor | None:
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None


def _cat_features(parts: "list[Tensor | SparseRows]") -> "Tensor | SparseRows":
    dense = [part for part in parts if isinstance(part, Tensor)]
    if len(dense) == len(parts):
        return torch.cat(dense)
    rows = [part if isinstance(part, SparseRows) else SparseRows.of(part) for part in parts]
    counts = torch.cat([part.entries.offsets.diff() for part in rows])
    return SparseRows.from_csr(
        torch.cat([part.values for part in rows]),
        torch.cat([part.entries.source for part in rows]),
        torch.nn.functional.pad(counts.cumsum(0), (1, 0)),
        rows[0].shape[1],
    )
