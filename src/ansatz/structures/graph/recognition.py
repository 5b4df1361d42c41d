"""Recognizes graphs by a cheap look: their classes, keys of a file, names of files."""

import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

from ansatz.data.bundles import ROWS
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.graphs import Graphs
from ansatz.data.graphs.libraries import is_graph
from ansatz.data.graphs.links import LinkRows
from ansatz.data.graphs.rows import NodeRows, PairRows


def recognizes_data(data: Any) -> bool:
    """Tests whether data are graphs, a TU folder, GraphML, or arrays with an edge index."""
    if not isinstance(data, str | PathLike):
        return isinstance(data, Graph | Graphs) or recognizes_rows(data)
    path = Path(data)
    if not path.exists():
        return ROWS.get(str(data), {}).get("columns") == "graph"
    name = path.name.lower().removesuffix(".gz")
    if path.is_dir():
        return next(path.glob("*_graph_indicator.txt*"), None) is not None
    if name.endswith(".graphml"):
        return True
    if not name.endswith(".npz") or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return "edge_index.npy" in file.namelist()


def recognizes_rows(X: Any) -> bool:
    """Tests whether X can only be graphs."""
    if isinstance(X, Graphs):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and is_graph(X[0])


def recognizes_nodes(X: Any) -> bool:
    """Tests whether X is nodes of a graph."""
    return isinstance(X, NodeRows)


def recognizes_pairs(X: Any) -> bool:
    """Tests whether X is pairs of nodes of a graph."""
    return isinstance(X, PairRows)


def recognizes_links(X: Any) -> bool:
    """Tests whether X is pairs of nodes, some of which are edges."""
    return isinstance(X, LinkRows)
