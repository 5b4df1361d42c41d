"""Rows of graphs from what users have: graphs of several libraries, names of nodes."""

from typing import Any

import numpy as np

from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.graphs import Graphs
from ansatz.data.graphs.libraries import to_graph
from ansatz.data.graphs.rows import NodeRows, PairRows
from ansatz.errors import UsageError


def as_graphs(X: Any) -> Graphs:
    """Graphs of any library, as rows."""
    if isinstance(X, Graphs):
        return X
    if isinstance(X, NodeRows | PairRows):
        raise UsageError("these are nodes or pairs of one graph, the model predicts graphs.")
    if isinstance(X, Graph):
        X = [X]
    return Graphs.of([to_graph(each, f"graph {k}") for k, each in enumerate(X)])


def as_nodes(X: Any, kept: Graph | None) -> NodeRows:
    """Nodes of a graph; names alone are those of the graph that a model keeps."""
    if isinstance(X, NodeRows):
        return X
    if isinstance(X, Graph):
        return X.nodes()
    if kept is None or isinstance(X, Graphs | PairRows):
        raise UsageError("nodes are given as graph.nodes(ids).")
    ids = np.asarray(X)
    return kept.nodes(ids.ravel() if ids.ndim == 2 and ids.shape[1] == 1 else ids)


def as_pairs(X: Any, kept: Graph | None) -> PairRows:
    """Pairs of nodes of a graph; names alone are those of the graph that a model keeps."""
    if isinstance(X, PairRows):
        return X
    if kept is None or isinstance(X, Graphs | NodeRows):
        raise UsageError("pairs of nodes are given as graph.pairs(ids).")
    return kept.pairs(np.asarray(X))
