"""Graphs of other libraries: networkx, PyTorch Geometric, scipy, RDKit."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, issparse

from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.molecules import from_rdkit
from ansatz.errors import DataError, UsageError


def is_graph(x: Any) -> bool:
    """Tests whether x is one graph of a library that is known."""
    return isinstance(x, Graph) or _kind(x) is not None


def _kind(x: Any) -> str | None:
    module = type(x).__module__.partition(".")[0]
    if module == "networkx":
        return "networkx"
    if module == "torch_geometric" and hasattr(x, "edge_index"):
        return "pyg"
    if module == "rdkit" and hasattr(x, "GetAtoms"):
        return "rdkit"
    square = issparse(x) and x.shape[0] == x.shape[1]
    return "scipy" if square else None


def to_graph(x: Any, what: str = "the graph") -> Graph:
    """Makes a graph of one of another library; ``what`` names it in errors."""
    if isinstance(x, Graph):
        return x
    kind = _kind(x)
    if kind is None:
        raise UsageError(
            f"{what} is of type {type(x).__name__}: give Graph.of(edge_index, x=...), or a graph "
            "of networkx, PyTorch Geometric, scipy.sparse or RDKit."
        )
    made = {"networkx": from_networkx, "pyg": from_pyg, "scipy": from_scipy, "rdkit": from_rdkit}
    try:
        found: Graph = made[kind](x)
    except DataError as error:
        raise DataError(f"{what}: {error}") from None
    return found


def from_networkx(graph: Any) -> Graph:
    """Makes a graph of networkx's: attributes of nodes and edges are columns, ``weight`` weighs.

    Example:
        >>> import networkx
        >>> from ansatz.data.graphs import from_networkx
        >>> from_networkx(networkx.path_graph(3))
        Graph: 3 nodes, 2 edges
    """
    import pandas as pd

    names = list(graph.nodes)
    place = {name: k for k, name in enumerate(names)}
    ends = [(place[a], place[b]) for a, b in graph.edges()]
    nodes = pd.DataFrame([dict(graph.nodes[name]) for name in names])
    edges = pd.DataFrame([dict(data) for *_, data in graph.edges(data=True)])
    weights = None
    if "weight" in edges:
        weights = edges.pop("weight").fillna(1.0).to_numpy()
    whole = all(isinstance(name, int) for name in names)
    return Graph.of(
        np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        nodes if nodes.shape[1] else None,
        edges=edges if edges.shape[1] and len(edges) else None,
        weights=weights,
        ids=None if whole and names == list(range(len(names))) else np.array(names, dtype=str),
        num_nodes=len(names),
        directed=graph.is_directed(),
    )


def to_networkx(graph: Graph) -> Any:
    """Makes a graph of networkx, with columns as attributes.

    Example:
        >>> from ansatz.data import Graph
        >>> from ansatz.data.graphs import to_networkx
        >>> sorted(to_networkx(Graph.of([[0, 1], [1, 2]])).degree)
        [(0, 1), (1, 2), (2, 1)]
    """
    import networkx

    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    names = graph.names.tolist()
    for name, attributes in zip(names, _records(graph.x), strict=True):
        made.add_node(name, **attributes)
    rows = graph.pair_rows
    edges = _records(graph.edges, rows) if graph.edges is not None else [{}] * len(rows)
    for row, attributes in zip(rows.tolist(), edges, strict=True):
        a, b = graph.edge_index[:, row].tolist()
        mass = {} if graph.weights is None else {"weight": float(graph.weights[row])}
        made.add_edge(names[a], names[b], **attributes, **mass)
    return made


def _records(x: Any, rows: Any = slice(None)) -> list[dict[str, Any]]:
    if hasattr(x, "iloc"):
        found: list[dict[str, Any]] = x.iloc[rows].to_dict("records")
        return found
    dense = x[rows].toarray() if issparse(x) else x[rows]
    return [{f"x{k + 1}": float(v) for k, v in enumerate(row)} for row in dense]


def from_pyg(data: Any) -> Graph:
    """Makes a graph of PyTorch Geometric's ``Data``: x, edge_index, edge_attr, edge_weight.

    Edges that are listed in both directions with equal features are undirected.

    Example:
        >>> from ansatz.data import Graph
        >>> from ansatz.data.graphs import from_pyg, to_pyg
        >>> from_pyg(to_pyg(Graph.of([[0], [1]], x=[[1.0], [2.0]])))
        Graph: 2 nodes, 1 edge, 1 feature of a node
    """
    x = None if data.x is None else data.x.detach().cpu().numpy()
    attr = getattr(data, "edge_attr", None)
    weight = getattr(data, "edge_weight", None)
    return Graph.of(
        data.edge_index.cpu().numpy(),
        x,
        edges=None if attr is None else attr.detach().cpu().numpy().reshape(len(attr), -1),
        weights=None if weight is None else weight.detach().cpu().numpy(),
        num_nodes=int(data.num_nodes),
        directed=data.is_directed(),
    )


def to_pyg(graph: Graph) -> Any:
    """Makes ``Data`` of PyTorch Geometric; features must be numbers.

    Example:
        >>> from ansatz.data import Graph
        >>> from ansatz.data.graphs import to_pyg
        >>> to_pyg(Graph.of([[0], [1]], x=[[1.0], [2.0]])).num_edges
        2
    """
    import torch

    with warnings.catch_warnings():  # of torch.jit, which its modules use
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.data import Data

    def tensor(x: Any) -> Any:
        dense = x.toarray() if issparse(x) else np.asarray(x, dtype=np.float32)
        return torch.as_tensor(dense, dtype=torch.float32)

    return Data(
        tensor(graph.x),
        torch.from_numpy(graph.edge_index),
        None if graph.edges is None else tensor(graph.edges),
        **({} if graph.weights is None else {"edge_weight": tensor(graph.weights)}),
    )


def from_scipy(adjacency: Any, x: Any = None) -> Graph:
    """Makes a graph of an adjacency matrix, which is undirected where the matrix is symmetric.

    Args:
        adjacency: ``(N, N)`` sparse; entries that are not all 1 are weights.
        x: features of the nodes.

    Example:
        >>> import scipy.sparse
        >>> from ansatz.data.graphs import from_scipy
        >>> from_scipy(scipy.sparse.eye(3, k=1))
        Directed graph: 3 nodes, 2 edges
    """
    found = coo_matrix(adjacency)
    if found.shape[0] != found.shape[1]:
        raise DataError(f"an adjacency matrix is square, got {found.shape}.")
    directed = bool((abs(found - found.T) > 0).nnz)
    weights = None if (found.data == 1).all() else found.data.astype(np.float64)
    index = np.stack([found.row, found.col]).astype(np.int64)
    return Graph.of(index, x, weights=weights, num_nodes=found.shape[0], directed=directed)


def to_scipy(graph: Graph) -> Any:
    """Makes the adjacency matrix ``(N, N)``, with A[i, j] the weight of the edge from i to j.

    Example:
        >>> from ansatz.data import Graph
        >>> from ansatz.data.graphs import to_scipy
        >>> to_scipy(Graph.of([[0], [1]])).toarray()
        array([[0., 1.],
               [1., 0.]])
    """
    values = np.ones(graph.edge_index.shape[1]) if graph.weights is None else graph.weights
    return csr_matrix((values, tuple(graph.edge_index)), shape=(len(graph), len(graph)))
