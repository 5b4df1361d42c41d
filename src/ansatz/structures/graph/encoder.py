"""From graphs to the input of a network, and the graph that a model keeps."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from ansatz.data import Column
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.graphs import Graphs
from ansatz.data.graphs.links import LinkRows
from ansatz.data.graphs.rows import NodeRows, PairRows
from ansatz.errors import DataError, ModelError
from ansatz.layers.edges import Edges
from ansatz.layers.graph_batch import GraphBatch, SparseRows
from ansatz.spec import InputSpec
from ansatz.structures.graph.feature_map import FeatureMap

Rows = Graphs | NodeRows | PairRows
KINDS = {Graphs: "graphs", NodeRows: "nodes", PairRows: "pairs", LinkRows: "pairs"}


class GraphEncoder:
    """The features of nodes and edges as numbers, beside sorted edges.

    Args:
        rows: what is predicted: ``"graphs"``, ``"nodes"`` or ``"pairs"``.
        nodes: the map of their features.
        edges: that of the features of edges; None where there are none.
        directed: whether an edge has one direction.
        kept: the graph of nodes and pairs, which is saved with the model; None for graphs.
    """

    dtype = torch.float64

    def __init__(
        self,
        rows: str,
        nodes: FeatureMap,
        edges: FeatureMap | None,
        *,
        directed: bool = False,
        kept: Graph | None = None,
    ) -> None:
        self.rows, self.nodes, self.edges, self.directed = rows, nodes, edges, directed
        self.kept = kept
        self.training: Graph | None = None  # of links: with the training edges alone
        self._encoded: list[tuple[Graph, GraphBatch]] = []
        self._given: list[tuple[Graph, GraphBatch]] = []  # whose features are encoded already

    @classmethod
    def fit(cls, rows: Rows, weight: NDArray[np.float64]) -> "GraphEncoder":
        """Fits to the training rows: of graphs all nodes, of nodes and pairs those named."""
        if isinstance(rows, Graphs):
            graph, kept = rows.union, None
            places, mass = np.arange(len(graph)), np.repeat(weight, rows.sizes)
            edge_mass = np.repeat(weight, np.diff(rows.edge_offsets))
        else:
            graph, kept = rows.graph, rows.whole or rows.graph
            where = rows.positions if isinstance(rows, NodeRows) else rows.pairs.ravel()
            mass = np.repeat(weight, 1 if isinstance(rows, NodeRows) else 2)
            places, mass = where, mass
            edge_mass = np.ones(graph.edge_index.shape[1])
        edges = None
        if graph.edges is not None and graph.edges.shape[1] and len(edge_mass):
            edges = FeatureMap.fit(graph.edges, np.arange(len(edge_mass)), edge_mass)
        nodes = FeatureMap.fit(graph.x, places, mass)
        return cls(KINDS[type(rows)], nodes, edges, directed=graph.directed, kept=kept)

    @property
    def spec(self) -> InputSpec:
        """The numbers of features of a node and an edge, and what a row is."""
        edges = 0 if self.edges is None else self.edges.features
        return InputSpec.graph(self.nodes.features, edges, rows=self.rows)  # type: ignore[arg-type]

    @property
    def notes(self) -> list[str]:
        """Notes on columns of nodes and of edges."""
        found = list(self.nodes.notes)
        if self.nodes.kind == "degree":
            found.append("nodes have no features: networks see 1 and the logarithm of the degree.")
        return found + ([] if self.edges is None else [f"edges: {n}" for n in self.edges.notes])

    @property
    def columns(self) -> list[Column]:
        """None: columns of nodes are not columns of a table of rows."""
        return []

    def inputs(self, rows: Rows, *, notes: list[str] | None = None) -> tuple[Any, ...]:
        """One batch: all graphs, or the graph of the nodes or pairs that are answered."""
        if KINDS.get(type(rows)) != self.rows:
            raise DataError(f"the model predicts {self.rows}, these are {type(rows).__name__}.")
        if isinstance(rows, Graphs):
            batch = self._encode(rows.union, notes)
            return (batch._replace(offsets=torch.from_numpy(rows.offsets)),)
        where = rows.positions if isinstance(rows, NodeRows) else rows.pairs
        return (self.whole(rows.graph, notes)._replace(targets=torch.from_numpy(where)),)

    def whole(self, graph: Graph, notes: list[str] | None = None) -> GraphBatch:
        """One graph without targets; the last two are remembered."""
        for known, batch in (*self._given, *self._encoded):
            if known is graph:
                return batch
        batch = self._encode(graph, notes)
        self._encoded = [(graph, batch), *self._encoded[:1]]
        return batch

    def _encode(self, graph: Graph, notes: list[str] | None) -> GraphBatch:
        if graph.directed != self.directed:
            kind = "directed" if self.directed else "undirected"
            raise DataError(f"the model was trained on {kind} edges, these are not.")
        x = self.nodes.encode(graph.x, graph.degrees, notes)
        weight = None if graph.weights is None else torch.from_numpy(graph.weights)
        index = torch.from_numpy(graph.edge_index)
        edges, place = Edges.sort(index, len(graph), weight)
        features = None
        if self.edges is not None:
            if graph.edges is None and len(place):
                raise DataError("the model needs features of edges, and this graph has none.")
            found = torch.zeros(0, self.edges.features, dtype=torch.float64)
            if graph.edges is not None and len(place):
                found = _dense(self.edges.encode(graph.edges, np.zeros(0, np.int64), notes))
            features = found[place]
        return GraphBatch(x, edges, features, torch.tensor([0, len(graph)]))

    def joined(
        self, frame: Any, names: NDArray[Any], index: NDArray[np.int64], edges: Any, weights: Any
    ) -> Graph:
        """The kept graph with further nodes and edges; its features are encoded already.

        Args:
            frame: features of the new nodes.
            names: of all nodes, the new ones last.
            index: ``(2, E)`` positions among all nodes.
            edges: features of the new edges, where the model's have some.
            weights: of the edges; None where all are 1.
        """
        assert self.kept is not None
        old, kept, count = self.whole(self.kept), self.kept, len(names)
        before = old.edges.edge_index
        new = torch.from_numpy(index)
        both = torch.cat([before, new] if self.directed else [before, new, new.flip(0)], 1)
        times, mass = 1 if self.directed else 2, None
        if old.edges.weight is not None or weights is not None:
            ones = torch.ones(before.shape[1], dtype=torch.float64)
            own = ones if old.edges.weight is None else old.edges.weight
            more = np.ones(index.shape[1]) if weights is None else weights
            mass = torch.cat([own, torch.from_numpy(more).double().repeat(times)])
        made, place = Edges.sort(both, count, mass)
        features = None
        if self.edges is not None and old.edge_features is not None:
            if edges is None:
                raise DataError("the model needs features of edges, and these have none.")
            added = _dense(self.edges.encode(edges, np.zeros(0, np.int64), None))
            features = torch.cat([old.edge_features, added.repeat(times, 1)])[place]
        degrees = np.bincount(made.source.numpy(), minlength=count)
        x: Any = self.nodes.encode(frame, degrees[len(kept) :], None)
        if self.nodes.kind == "degree":
            x = self.nodes.encode(frame, degrees, None)
        elif isinstance(old.x, SparseRows):
            x = _stacked(old.x, x)
        else:
            x = torch.cat([old.x, _dense(x)])
        batch = GraphBatch(x, made, features, torch.tensor([0, count]))
        graph = self._graph_of(batch, names)
        self._given = [*self._given[:1], (graph, batch)]
        return graph

    def _graph_of(self, batch: GraphBatch, names: NDArray[Any] | None) -> Graph:
        """A graph whose features are encoded already, in the order of its edges."""
        index, weight = batch.edges.edge_index.numpy(), batch.edges.weight
        order, own = np.lexsort((index[1], index[0])), batch.edge_features
        return Graph(
            _array(batch.x),
            index[:, order],
            None if own is None else own.numpy()[order],
            None if weight is None else weight.numpy()[order],
            names,
            self.directed,
        )

    # On disk.

    def state(self) -> dict[str, Any]:
        """What training rows showed, as JSON; the kept graph is in :meth:`tensors`."""
        return {
            "rows": self.rows,
            "nodes": self.nodes.state(),
            "edges": None if self.edges is None else self.edges.state(),
            "directed": self.directed,
        }

    def tensors(self) -> dict[str, Tensor]:
        """The kept graph: encoded features, edges, weights and names."""
        if self.kept is None:
            return {}
        graph, batch = self.kept, self.whole(self.kept)
        found = {"edge_index": batch.edges.edge_index.contiguous()}
        if isinstance(batch.x, SparseRows):
            entries = batch.x.entries
            found |= {"x.values": batch.x.values, "x.columns": entries.source}
            found["x.offsets"] = entries.offsets
        else:
            found["x"] = batch.x.contiguous()
        if batch.edge_features is not None:
            found["edges"] = batch.edge_features.contiguous()
        if batch.edges.weight is not None:
            found["weights"] = batch.edges.weight
        if graph.ids is not None:
            found |= _packed(graph.ids)
        return found

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes in the kept graph."""
        if not tensors:
            return
        index = tensors["edge_index"]
        if "x" in tensors:
            x: Any = tensors["x"]
        else:
            values, columns, offsets = (tensors[f"x.{n}"] for n in ("values", "columns", "offsets"))
            x = SparseRows.from_csr(values, columns, offsets, self.nodes.features)
        if len(index) != 2 or x.shape[1] != self.nodes.features:
            raise ModelError("the graph of the model does not fit its features.")
        count, weight, own = int(x.shape[0]), tensors.get("weights"), tensors.get("edges")
        edges, place = Edges.sort(index, count, weight)
        batch = GraphBatch(x, edges, None if own is None else own[place], torch.tensor([0, count]))
        self.kept = self._graph_of(batch, _unpacked(tensors))
        self._given = [(self.kept, batch)]


def load_encoder(state: Mapping[str, Any]) -> GraphEncoder:
    """The encoder of a saved model, without its graph."""
    edges = state["edges"]
    return GraphEncoder(
        state["rows"],
        FeatureMap(state["nodes"]),
        None if edges is None else FeatureMap(edges),
        directed=bool(state["directed"]),
    )


def _dense(x: "Tensor | SparseRows") -> Tensor:
    return x if isinstance(x, Tensor) else x.dense()


def _array(x: "Tensor | SparseRows") -> Any:
    if isinstance(x, Tensor):
        return x.numpy()
    parts = (x.values.numpy(), x.entries.source.numpy(), x.entries.offsets.numpy())
    return csr_matrix(parts, shape=x.shape)


def _stacked(first: SparseRows, second: "Tensor | SparseRows") -> SparseRows:
    other = second if isinstance(second, SparseRows) else SparseRows.of(second)
    return SparseRows.from_csr(
        torch.cat([first.values, other.values]),
        torch.cat([first.entries.source, other.entries.source]),
        torch.cat([first.entries.offsets, first.entries.offsets[-1] + other.entries.offsets[1:]]),
        first.shape[1],
    )


def _packed(names: NDArray[Any]) -> dict[str, Tensor]:
    """Names as numbers, or as the bytes of their text."""
    if names.dtype.kind in "iu":
        return {"ids": torch.from_numpy(names.astype(np.int64))}
    parts = [str(name).encode() for name in names]
    ends = np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
    text = np.frombuffer(b"".join(parts), dtype=np.uint8).copy()
    return {"ids.text": torch.from_numpy(text), "ids.offsets": torch.from_numpy(ends)}


def _unpacked(tensors: Mapping[str, Tensor]) -> NDArray[Any] | None:
    if "ids" in tensors:
        found: NDArray[Any] = tensors["ids"].numpy()
        return found
    if "ids.text" not in tensors:
        return None
    text, ends = tensors["ids.text"].numpy().tobytes(), tensors["ids.offsets"].tolist()
    return np.array([text[a:b].decode() for a, b in pairwise(ends)])
