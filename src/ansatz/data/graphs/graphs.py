"""Many graphs as rows: one disjoint union, and where each graph begins."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.graphs.colours import graph_colours
from ansatz.data.graphs.features import names_of, stack, take
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.rows import spec_of
from ansatz.errors import DataError
from ansatz.layers.ragged import places as _places
from ansatz.spec import InputSpec


class Graphs:
    """B graphs, one behind the other; nothing is padded.

    Args:
        union: all nodes and edges; no edge joins two graphs.
        offsets: ``(B + 1,)`` where the nodes of each graph begin and end.
        texts: what each graph was made from, like its canonical SMILES; None where nothing.

    Example:
        >>> from ansatz.data import Graph, Graphs
        >>> graphs = Graphs.of([Graph.of([[0], [1]]), Graph.of([[0, 1], [1, 2]])])
        >>> len(graphs), graphs[[1]]
        (2, 1 graph: 3 nodes, 2 edges)
    """

    has_features = True

    def __init__(
        self, union: Graph, offsets: NDArray[np.int64], texts: NDArray[Any] | None = None
    ) -> None:
        self.union, self.offsets, self.texts = union, offsets, texts
        ends = np.searchsorted(union.edge_index[0], offsets)
        self.edge_offsets: NDArray[np.int64] = ends.astype(np.int64)

    @classmethod
    def of(cls, graphs: Iterable[Graph], texts: NDArray[Any] | None = None) -> "Graphs":
        """The union of several graphs, with features of the same kind."""
        parts = list(graphs)
        if not parts:
            raise DataError("there are no graphs.")
        kinds = {each.directed for each in parts}
        if len(kinds) > 1:
            raise DataError("some graphs are directed and others are not.")
        offsets = np.append(0, np.cumsum([len(each) for each in parts])).astype(np.int64)
        index = [g.edge_index + first for g, first in zip(parts, offsets, strict=False)]
        with_edges = [g for g in parts if g.edges is not None or g.edge_index.shape[1]]
        edges = None
        if any(g.edges is not None for g in parts):
            odd = [k for k, g in enumerate(parts) if g in with_edges and g.edges is None]
            if odd:
                raise DataError(f"graph {odd[0]} has no edge features, and others have.")
            edges = stack([g.edges for g in parts if g.edges is not None], "edge")
        weights = None
        if any(g.weights is not None for g in parts):
            ones = [np.ones(g.edge_index.shape[1]) for g in parts]
            found = zip(parts, ones, strict=True)
            weights = np.concatenate([one if g.weights is None else g.weights for g, one in found])
        union = Graph(
            stack([g.x for g in parts], "node"),
            np.concatenate(index, axis=1),
            edges,
            weights,
            directed=kinds.pop(),
            notes=_notes(parts),
        )
        return cls(union, offsets, texts)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        count, words = len(self), repr(self.union).partition(": ")[2]
        return f"{count:,} graph{'s' * (count != 1)}: {words}"

    def __getitem__(self, index: Any) -> "Graphs":
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        rows = np.atleast_1d(rows)
        nodes, offsets = _taken(self.offsets, rows)
        edges, ends = _taken(self.edge_offsets, rows)
        shift = np.repeat(offsets[:-1] - self.offsets[rows], np.diff(ends))
        union = self.union
        part = replace(
            union,
            x=take(union.x, nodes),
            edge_index=union.edge_index[:, edges] + shift,
            edges=None if union.edges is None else take(union.edges, edges),
            weights=None if union.weights is None else union.weights[edges],
            notes=(),
        )
        return Graphs(part, offsets, None if self.texts is None else self.texts[rows])

    def graph(self, row: int) -> Graph:
        """One of the graphs by itself."""
        return self[[row]].union

    def followed_by(self, other: "Graphs") -> "Graphs":
        """These graphs and others."""
        both = [self.graph(k) for k in range(len(self))]
        texts = None
        if self.texts is not None and other.texts is not None:
            texts = np.concatenate([self.texts, other.texts])
        return Graphs.of([*both, *(other.graph(k) for k in range(len(other)))], texts)

    @property
    def spec(self) -> InputSpec:
        """The features before their columns are coded."""
        return spec_of(self.union, "graphs")

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of nodes of each graph."""
        return np.diff(self.offsets)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each graph: isomorphic graphs with equal features share it."""
        return graph_colours(self.union, self.offsets, seed)

    def isomorphic(self) -> NDArray[np.intp]:
        """A number for each graph, ``(B,)``: isomorphic ones share it.

        Features of edges count only where more than a tenth of the graphs would share one number
        without them: bonds of one molecule may be written in several ways.

        Example:
            >>> from ansatz.data import Graph, Graphs
            >>> path, again = Graph.of([[0, 1], [1, 2]]), Graph.of([[1, 0], [0, 2]])
            >>> Graphs.of([path, again]).isomorphic()
            array([0, 0])
        """
        plain = replace(self.union, edges=None)
        _, place = np.unique(graph_colours(plain, self.offsets), return_inverse=True)
        if self.union.edges is not None and np.bincount(place).max() > len(self) / 10:
            _, place = np.unique(self.content_keys(), return_inverse=True)
        return place

    def describe(self) -> dict[str, Any]:
        """The columns of the nodes."""
        x = self.union.x
        return {"names": names_of(x), "count": int(x.shape[1]), "columns": None}


def _taken(
    offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the values of some rows stand, and the offsets of these rows by themselves."""
    import torch

    place, found = _places(torch.from_numpy(offsets), torch.from_numpy(rows))
    return place.numpy(), found.numpy()


def _notes(parts: list[Graph]) -> tuple[str, ...]:
    """One sentence where graphs lost edges."""
    count = sum(bool(each.notes) for each in parts)
    if not count:
        return ()
    graphs = "graph" if count == 1 else "graphs"
    return (
        f"duplicate edges, or edges of a node with itself, in {count:,} {graphs} were merged or "
        "left out.",
    )
