"""Graphs, nodes and pairs for a fitted model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.rows import NodeRows
from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.model import Model
from ansatz.fitting.problem import check_known
from ansatz.fitting.tensor_structure import Read, ReadRows
from ansatz.structures.graph.reading import (
    id_column,
    positions_of,
    read_edges,
    read_graphs,
    table_of,
)


class ReadNodes(ReadRows):
    """Nodes that were read again; predictions are written beside their names."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of the nodes."""
        rows = self.table.rows
        return {"id": rows.names.tolist()} if isinstance(rows, NodeRows) else {}


class ReadPairs(ReadRows):
    """Pairs that were read again; predictions are written beside both names."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of both nodes."""
        first, second = self.table.rows.names.T
        return {"source": first.tolist(), "destination": second.tolist()}


def read_graphs_again(
    structure: Any,
    model: Model,
    data: str,
    *,
    outcomes: bool,
    options: Mapping[str, Any],
    say: Any,
) -> ReadRows:
    """All rows at once; those without a target are left out where they are evaluated."""
    encoder: Any = model.encoder
    before = structure.reading_of(model)
    reader = {**before, **{k: v for k, v in options.items() if v is not None}}
    if encoder.kept is not None and not _is_other_graph(data, options, before):
        found = _own_nodes(encoder, data, reader)
    elif encoder.kept is not None and options.get("edges") is not None:
        found = _new_nodes(encoder, data, reader, say)
    else:
        found = read_graphs(data, model.column_roles or ColumnRoles(), reader)
    for note in found.notes:
        say(note)
    if not outcomes:
        return ReadNodes(found)
    roles = model.column_roles
    assert roles is not None
    roles.outcomes(found.frame)
    known = model.outcome.known(found.frame, roles)
    if not known.any():
        raise DataError(f"{found.origin}: the target '{roles.outcome_name}' is missing.")
    if not known.all():
        say(f"{structure.unit[1]} without the target, left out: {int((~known).sum())}.")
    check_known(model, found.frame[known], found.origin)
    return ReadNodes(ReadRows(found).take(known))


def _is_other_graph(data: str, options: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Tests whether data bring edges: a file of a graph, or a table with ``--edges``."""
    if options.get("edges") is not None:
        return True
    name = Path(data).name.lower().removesuffix(".gz")
    return before.get("edges") is None and not name.endswith((".csv", ".tsv", ".txt", ".parquet"))


def _own_nodes(encoder: Any, data: str, reader: Mapping[str, Any]) -> Read:
    """Nodes of the model's graph by their names, in the order of a table."""
    origin, frame = table_of(data, reader)
    column = id_column(frame, reader.get("identifier"), origin) or str(frame.columns[0])
    try:
        rows = encoder.kept.nodes(frame[column].to_numpy())
    except DataError as error:
        raise DataError(f"{origin}, {error} New nodes bring their edges: --edges FILE.") from None
    return Read(origin, rows, frame.reset_index(drop=True))


def _new_nodes(encoder: Any, data: str, reader: Mapping[str, Any], say: Any) -> Read:
    """New nodes with edges to each other and to nodes of the model's graph."""
    origin, frame = table_of(data, reader)
    column = id_column(frame, reader.get("identifier"), origin)
    ids = np.arange(len(frame)) if column is None else frame[column].to_numpy()
    known = pd.Index(encoder.kept.names.astype(str)).isin(np.asarray(ids).astype(str))
    if known.any():
        say(f"{int(known.sum())} nodes are in the model's graph already: this one stands alone.")
        return read_graphs(data, ColumnRoles(), reader)
    edges, kept = read_edges(reader["edges"], reader), encoder.kept
    names = np.append(kept.names.astype(str), np.asarray(ids).astype(str))
    try:
        plain = Graph.of(np.zeros((2, 0), dtype=np.int64), ids=names)
    except DataError as error:
        raise DataError(f"{origin}, {error}") from None
    index = positions_of(plain, edges)
    graph = encoder.joined(frame, names, index, edges.features, edges.weights)
    places = np.arange(len(encoder.kept), len(graph))
    return Read(origin, NodeRows(graph, places), frame.reset_index(drop=True))
