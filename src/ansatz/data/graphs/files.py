"""Reads graphs from files: arrays of .npz, folders of the TU collection, GraphML."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.graphs import Graphs
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

PART, TARGET = "part", "y"  # columns of data without names of their own
_PARTS = {"train": "train", "val": "validation", "valid": "validation", "test": "test"}


class GraphData(NamedTuple):
    """Graphs, or one graph, and the columns beside them."""

    origin: str
    graph: Graph | Graphs
    frame: "pd.DataFrame"  # a row for each node, or for each graph
    target: str | None = None
    notes: tuple[str, ...] = ()
    known: NDArray[np.bool_] | None = None  # which rows have an outcome; None for all


def read_npz(path: str | PathLike[str], *, directed: bool = False) -> GraphData:
    """Reads arrays: ``edge_index``, features, ``y``, and the parts of the data.

    Features are ``x``, or ``x_data``, ``x_indices``, ``x_indptr`` and ``x_shape`` of a sparse
    matrix; ``edge_attr`` those of edges. With ``offsets`` there are many graphs, and y is of them.
    Parts are ``train_index``, ``val_index`` and ``test_index``, or masks. Nodes without
    ``has_label`` have no outcome.

    Args:
        path: of the file.
        directed: False gives every edge both directions.
    """
    import pandas as pd

    with np.load(checked_path(path), allow_pickle=False) as file:
        try:
            arrays = {name: file[name] for name in file.files}
        except ValueError:
            raise DataError(
                f"{path}: it holds Python objects, which are not read: save arrays of numbers."
            ) from None
    if "edge_index" not in arrays:
        raise DataError(f"{path}: no array 'edge_index'; it has {', '.join(arrays)}.")
    x = _features(arrays, path)
    many = arrays.get("offsets")
    y = arrays.get("y")
    count = None if x is not None else _count(arrays)
    try:
        graph = Graph.of(
            arrays["edge_index"],
            x,
            edges=arrays.get("edge_attr"),
            weights=arrays.get("edge_weight"),
            ids=arrays.get("ids"),
            num_nodes=count,
            directed=directed,
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    found: Graph | Graphs = graph if many is None else _cut(graph, many, path)
    frame = pd.DataFrame(index=range(len(found)))
    if y is not None:
        if len(y) != len(found):
            raise DataError(f"{path}: {len(y)} outcomes y for {len(found)} rows.")
        frame = _outcomes(y)
    part = _part(arrays, len(found))
    if part is not None:
        frame[PART] = part
    target = None if y is None else str(frame.columns[0])
    return GraphData(str(path), found, frame, target, (), arrays.get("has_label"))


def _features(arrays: dict[str, NDArray[Any]], path: Any) -> Any:
    if "x_data" not in arrays:
        return arrays.get("x")
    try:
        parts = (arrays[f"x_{name}"] for name in ("data", "indices", "indptr"))
        return csr_matrix(tuple(parts), shape=tuple(arrays["x_shape"].tolist()))
    except (KeyError, ValueError) as error:
        raise DataError(f"{path}: x is not a sparse matrix: {error}.") from None


def _count(arrays: dict[str, NDArray[Any]]) -> int | None:
    if "offsets" in arrays:
        return int(arrays["offsets"][-1])
    return len(arrays["y"]) if "y" in arrays else None


def _cut(graph: Graph, offsets: NDArray[Any], path: Any) -> Graphs:
    ends = np.asarray(offsets).astype(np.int64)
    if not len(ends) or ends[0] != 0 or ends[-1] != len(graph) or (np.diff(ends) < 0).any():
        raise DataError(f"{path}: offsets must rise from 0 to the {len(graph):,} nodes.")
    owner = np.searchsorted(ends, graph.edge_index, side="right")
    odd = np.flatnonzero(owner[0] != owner[1])
    if len(odd):
        a, b = graph.edge_index[:, odd[0]]
        raise DataError(f"{path}: an edge joins node {a} and node {b}, of two graphs.")
    return Graphs(graph, ends)


def _outcomes(y: NDArray[Any]) -> "pd.DataFrame":
    import pandas as pd

    if y.ndim == 2 and y.shape[1] > 1:
        return pd.DataFrame(y, columns=[f"{TARGET}{k + 1}" for k in range(y.shape[1])])
    return pd.DataFrame({TARGET: y.reshape(len(y))})


def _part(arrays: dict[str, NDArray[Any]], count: int) -> NDArray[Any] | None:
    part = np.full(count, "", dtype="<U10")
    for name, own in _PARTS.items():
        rows = arrays.get(f"{name}_index", arrays.get(f"{name}_mask"))
        if rows is not None:
            part[rows] = own
    return part if (part == "test").any() else None


def is_tu_folder(path: Path) -> bool:
    """Tests whether a folder holds files of the TU collection."""
    return next(path.glob("*_graph_indicator.txt*"), None) is not None


def read_tu(path: str | PathLike[str]) -> GraphData:
    """Reads a folder ``NAME`` of the TU collection: ``NAME_A.txt``, ``NAME_graph_indicator.txt``.

    Labels of nodes and of edges are categories, attributes are numbers; ``_graph_labels`` are
    classes and ``_graph_attributes`` outcomes that are numbers.

    References:
        Morris et al. (2020), TUDataset. https://arxiv.org/abs/2007.08663
    """
    import pandas as pd

    folder = Path(path)
    indicator = next(iter(sorted(folder.glob("*_graph_indicator.txt*"))))
    name = indicator.name.partition("_graph_indicator")[0]

    def table(kind: str, *, whole: bool) -> NDArray[Any] | None:
        found = [p for p in (folder / f"{name}_{kind}.txt", folder / f"{name}_{kind}.txt.gz")
                 if p.exists()]  # fmt: skip
        if not found:
            return None
        return _lines(found[0], whole=whole)

    owner = table("graph_indicator", whole=True)
    edges = table("A", whole=True)
    if edges is None or owner is None:
        raise DataError(f"{folder}: no file {name}_A.txt.")
    owner = owner[:, 0]
    if (np.diff(owner) < 0).any():
        raise DataError(f"{indicator}: the numbers of graphs must not fall.")
    offsets = np.searchsorted(owner, np.arange(owner[0], owner[-1] + 2))
    nodes = _columns(table("node_labels", whole=True), table("node_attributes", whole=False))
    beside = _columns(table("edge_labels", whole=True), table("edge_attributes", whole=False))
    place = folder / f"{name}_A.txt"
    if edges.shape[1] != 2:
        raise DataError(f"{place}: expected two numbers in a line, got {edges.shape[1]}.")
    bad = np.flatnonzero(((edges < 1) | (edges > len(owner))).any(1))
    if len(bad):
        raise DataError(
            f"{place}, row {bad[0] + 1}: an edge to node {int(edges[bad[0]].max())}, and nodes are "
            f"1 to {len(owner)}."
        )
    try:
        graph = Graph.of((edges - 1).T, nodes, edges=beside, num_nodes=len(owner))
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    graphs = _cut(graph, offsets, place)
    frame = pd.DataFrame(index=range(len(graphs)))
    labels, numbers = table("graph_labels", whole=True), table("graph_attributes", whole=False)
    for kind, values in (("label", labels), ("attribute", numbers)):
        if values is not None:
            if len(values) != len(graphs):
                raise DataError(f"{folder}: {len(values)} graph {kind}s for {len(graphs)} graphs.")
            width = values.shape[1]
            for k in range(width):
                frame[kind if width == 1 else f"{kind}{k + 1}"] = values[:, k]
    target = str(frame.columns[0]) if frame.shape[1] else None
    return GraphData(str(folder), graphs, frame, target)


def _lines(path: Path, *, whole: bool) -> NDArray[Any]:
    """Numbers between commas, a row in each line."""
    text = read_bytes(path).decode("utf-8").strip()
    rows = [line.split(",") for line in text.splitlines()]
    odd = [k for k, row in enumerate(rows) if len(row) != len(rows[0])]
    if odd:
        raise DataError(f"{path}, row {odd[0] + 1}: {len(rows[odd[0]])} numbers, others have "
                        f"{len(rows[0])}.")  # fmt: skip
    for number, row in enumerate(rows):
        try:
            [float(cell) for cell in row]
        except ValueError:
            raise DataError(
                f"{path}, row {number + 1}: expected numbers, got {','.join(row)[:60]!r}."
            ) from None
    found = np.array(rows, dtype=np.float64)
    if not whole:
        return found
    if (found != np.round(found)).any():
        bad = int(np.flatnonzero((found != np.round(found)).any(1))[0])
        raise DataError(
            f"{path}, row {bad + 1}: expected whole numbers, got {found[bad].tolist()}."
        )
    return found.astype(np.int64)


def _columns(labels: NDArray[Any] | None, numbers: NDArray[Any] | None) -> "pd.DataFrame | None":
    """Labels as categories beside attributes as numbers."""
    import pandas as pd

    if labels is None and numbers is None:
        return None
    found: dict[str, Any] = {}
    if labels is not None:
        found |= {f"label{k + 1}": labels[:, k].astype(str) for k in range(labels.shape[1])}
    if numbers is not None:
        found |= {f"attribute{k + 1}": numbers[:, k] for k in range(numbers.shape[1])}
    return pd.DataFrame(found)


def read_graphml(path: str | PathLike[str]) -> GraphData:
    """Reads one graph of GraphML; attributes of its nodes are columns."""
    from xml.etree.ElementTree import ParseError

    import networkx
    import pandas as pd

    from ansatz.data.graphs.libraries import from_networkx

    try:
        found = networkx.read_graphml(checked_path(path))
    except (ParseError, networkx.NetworkXError) as error:
        raise DataError(f"{path}: {str(error).splitlines()[0]}") from None
    graph = from_networkx(found)
    frame = graph.x if hasattr(graph.x, "iloc") else pd.DataFrame(index=range(len(graph)))
    return GraphData(str(path), graph, frame)
