"""Reads graphs for a fit: files, tables of nodes and edges, molecules, objects in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz.data.frames import as_frame, is_frame
from ansatz.data.graphs.files import (
    PART,
    GraphData,
    is_tu_folder,
    read_graphml,
    read_npz,
    read_tu,
)
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.graphs import Graphs
from ansatz.data.graphs.libraries import to_graph
from ansatz.data.graphs.molecules import read_smiles, scaffolds
from ansatz.data.graphs.rows import NodeRows
from ansatz.data.registry import load as load_named
from ansatz.data.registry import names as named_sets
from ansatz.data.table import read_table
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.tensor_structure import Read

_TABLE = ("delimiter", "header", "names", "comment", "missing", "decimal", "encoding")
_PARTS = {"", "train", "validation", "test"}
ENDS = ({"source", "src", "from", "head", "u"}, {"destination", "dst", "to", "tail", "v", "target"})


class EdgeTable(NamedTuple):
    """Edges of a table by the names of their nodes."""

    origin: str
    ends: NDArray[Any]  # (2, E) names
    features: pd.DataFrame | None
    weights: NDArray[Any] | None


def read_graphs(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """Graphs with the columns beside them, or the nodes of one graph with theirs."""
    if reader.get("smiles") is not None:
        return _molecules(data, column_roles, reader)
    if reader.get("edges") is not None:
        found = _node_table(data, column_roles, reader)
    else:
        found = given_graphs(data, bool(reader.get("directed")))
        if isinstance(found.graph, Graph) and hasattr(found.graph.x, "iloc"):
            columns = _features(found.graph.x, column_roles, reader, None)
            found = found._replace(graph=replace(found.graph, x=columns))
    if reader.get("split") == "scaffold":
        raise UsageError("--split scaffold is for molecules: name their column, --smiles COL.")
    frame, graph = found.frame, found.graph
    notes = (*found.notes, *(graph.notes if isinstance(graph, Graph) else graph.union.notes))
    part = PART if PART in frame and set(frame[PART].fillna("")) <= _PARTS else None
    rows: Any = graph
    if isinstance(graph, Graph):
        known = np.ones(len(graph), dtype=bool) if found.known is None else found.known
        places, frame = np.flatnonzero(known), frame[known].reset_index(drop=True)
        rows = NodeRows(graph, places, inductive=bool(reader.get("inductive")))
    elif reader.get("inductive"):
        raise UsageError("--inductive is for nodes of one graph; these are many graphs.")
    return Read(found.origin, rows, frame, found.target, notes, part)


def given_graphs(data: Any, directed: bool) -> GraphData:
    """Graphs in memory, of files, or of a named data set."""
    if isinstance(data, str) and data in named_sets() and not Path(data).exists():
        made = load_named(data)
        if made.graph is None:
            raise DataError(f"data set '{data}' holds no graphs.")
        target = made.target if isinstance(made.target, str) else None
        return GraphData(data, made.graph, made.frame, target)
    if not isinstance(data, str | PathLike):
        return _in_memory(data)
    path = Path(data)
    name = path.name.lower().removesuffix(".gz")
    if path.is_dir() and is_tu_folder(path):
        return read_tu(path)
    if name.endswith(".graphml"):
        return read_graphml(path)
    if name.endswith(".npz"):
        return read_npz(path, directed=directed)
    raise UsageError(
        f"{data}: graphs are a table of nodes with --edges FILE, an .npz with 'edge_index', a "
        "folder of the TU collection, GraphML, or a table with --smiles COL."
    )


def _in_memory(data: Any) -> GraphData:
    """Graphs of any library; the columns of one graph's nodes are outcomes too."""
    if isinstance(data, Graphs):
        return GraphData("the graphs", data, pd.DataFrame(index=range(len(data))))
    if isinstance(data, Sequence) and not isinstance(data, str):
        graphs = Graphs.of([to_graph(each, f"graph {k}") for k, each in enumerate(data)])
        return GraphData("the graphs", graphs, pd.DataFrame(index=range(len(graphs))))
    graph = to_graph(data)
    frame = graph.x if hasattr(graph.x, "iloc") else pd.DataFrame(index=range(len(graph)))
    return GraphData("the graph", graph, frame)


def table_of(data: Any, reader: Mapping[str, Any]) -> tuple[str, pd.DataFrame]:
    """A table and what errors call it."""
    if is_frame(data):
        return "the table", as_frame(data)
    if isinstance(data, str) and data in named_sets() and not Path(data).exists():
        return data, load_named(data).frame
    how = {name: reader[name] for name in _TABLE if reader.get(name) is not None}
    return str(data), read_table(data, **how).frame


def _molecules(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """Molecules of a column of SMILES; other columns are outcomes, weights, groups."""
    origin, frame = table_of(data, reader)
    column = reader["smiles"]
    if column not in frame:
        raise UsageError(f"{origin}: no column '{column}'. {near_columns(column, frame)}")
    skip = reader.get("on_corrupt") == "skip"
    graphs, rows, texts = read_smiles(frame[column], origin, skip=skip)
    notes = []
    if len(rows) < len(frame):
        count = len(frame) - len(rows)
        notes.append(f"{count} row{'s' * (count != 1)} without a molecule left out.")
    frame = frame.iloc[rows]
    gone = {column, column_roles.time, column_roles.strata, *(reader.get("drop") or ())}
    unread = [str(name) for name in column_roles.features(frame) if name not in gone]
    if unread:
        notes.append(f"columns beside the molecules are not features: {', '.join(unread)}.")
    if reader.get("split") == "scaffold":
        if column_roles.group is not None:
            raise UsageError("--split scaffold and --group both say what stays on one side.")
        frame = frame.assign(scaffold=scaffolds(texts))
    rows_of = Graphs.of(graphs, np.array(texts))
    return Read(origin, rows_of, frame, None, tuple(notes))


def _features(
    frame: pd.DataFrame, column_roles: ColumnRoles, reader: Mapping[str, Any], name: str | None
) -> Any:
    """The columns of nodes that are features; an array of no columns where there are none."""
    gone = {name, *(reader.get("drop") or ())}
    if PART in frame and set(frame[PART].fillna("")) <= _PARTS:
        gone.add(PART)
    found = column_roles.features(frame)
    found = found.drop(columns=[each for each in found if each in gone])
    return found if found.shape[1] else np.zeros((len(frame), 0))


def _node_table(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> GraphData:
    """A table of nodes, and another of edges."""
    origin, frame = table_of(data, reader)
    name = id_column(frame, reader.get("identifier"), origin)
    ids = None if name is None else frame[name].to_numpy()
    edges = read_edges(reader["edges"], reader)
    x = _features(frame, column_roles, reader, name)
    graph = graph_of(origin, x, ids, edges, directed=bool(reader.get("directed")))
    return GraphData(origin, graph, frame.reset_index(drop=True))


def id_column(frame: pd.DataFrame, name: str | None, origin: str) -> str | None:
    """The column that names nodes: the one asked for, or ``id``; None where positions do."""
    if name is not None and name not in frame:
        raise UsageError(f"{origin}: no column '{name}' for --id. {near_columns(name, frame)}")
    return name or next((str(c) for c in frame if str(c).lower() in ("id", "node")), None)


def graph_of(origin: str, x: Any, ids: Any, edges: EdgeTable, *, directed: bool) -> Graph:
    """A graph of a table of nodes and one of edges; errors name the table and the row."""
    count = int(x.shape[0])
    try:
        plain = Graph.of(np.zeros((2, 0), dtype=np.int64), ids=ids, num_nodes=count)
    except DataError as error:
        raise DataError(f"{origin}, {error}") from None
    index = positions_of(plain, edges)
    try:
        return Graph.of(
            index,
            x,
            edges=edges.features,
            weights=edges.weights,
            ids=ids,
            num_nodes=count,
            directed=directed,
        )
    except DataError as error:
        raise DataError(f"{edges.origin}: {error}") from None


def positions_of(graph: Graph, edges: EdgeTable) -> NDArray[np.int64]:
    """Both ends of edges as positions of nodes."""
    found = []
    for end in edges.ends:
        try:
            found.append(graph.positions(end))
        except DataError as error:
            raise DataError(f"{edges.origin}, {error}") from None
    return np.stack(found)


def read_edges(given: Any, reader: Mapping[str, Any]) -> EdgeTable:
    """A table of edges; the first two columns are its ends where none are named."""
    how = {n: reader[n] for n in ("delimiter", "comment", "encoding") if reader.get(n) is not None}
    frame = as_frame(given) if is_frame(given) else read_table(given, **how).frame
    origin = "the edges" if is_frame(given) else str(given)
    if frame.shape[1] < 2:
        raise DataError(f"{origin}: edges have two columns or more, their nodes.")
    columns = [str(name) for name in frame]
    frame = frame.set_axis(columns, axis=1)
    ends = []
    for k, option in enumerate(("source", "destination")):
        asked = reader.get(option)
        if asked is not None and asked not in columns:
            near = near_columns(asked, frame)
            raise UsageError(f"{origin}: no column '{asked}' for --{option}. {near}")
        known = next((name for name in columns if name.lower() in ENDS[k]), columns[k])
        ends.append(asked or known)
    if ends[0] == ends[1]:
        raise UsageError(f"{origin}: name both ends of an edge: --source A --destination B.")
    for end in ends:
        gone = np.flatnonzero(frame[end].isna())
        if len(gone):
            raise DataError(f"{origin}, row {gone[0] + 1}, column '{end}': an edge without a node.")
        if frame[end].dtype.kind == "f":
            whole = frame[end] == frame[end].round()
            if not whole.all():
                row = int(np.flatnonzero(~whole)[0])
                raise DataError(
                    f"{origin}, row {row + 1}, column '{end}': {frame[end].iloc[row]} names no "
                    "node."
                )
            frame[end] = frame[end].astype(np.int64)
    rest = frame.drop(columns=ends)
    weights = None
    if "weight" in rest and rest["weight"].dtype.kind in "iuf":
        weights = rest.pop("weight").to_numpy(dtype=np.float64)
    names = frame[ends].to_numpy(dtype=object if frame[ends].dtypes.nunique() > 1 else None).T
    if names.dtype == object:
        names = names.astype(str)
    return EdgeTable(origin, names, rest if rest.shape[1] else None, weights)
