"""Graphs from files and of other libraries; what is wrong is named with file, row and id."""

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from ansatz.data import Graph, Graphs
from ansatz.data.graphs import (
    from_networkx,
    from_pyg,
    from_scipy,
    from_smiles,
    to_networkx,
    to_pyg,
    to_scipy,
)
from ansatz.data.graphs.files import read_graphml, read_npz, read_tu
from ansatz.data.graphs.molecules import read_smiles, scaffolds
from ansatz.errors import DataError

EDGES = np.array([[0, 1, 2], [1, 2, 3]])


def same(one: Graph, other: Graph) -> bool:
    return len(one) == len(other) and np.array_equal(one.edge_index, other.edge_index)


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_sparse_features_outcomes_and_parts_of_arrays(tmp_path):
    x = scipy.sparse.csr_matrix(np.eye(4, 6))
    path = save(
        tmp_path / "g.npz",
        x_data=x.data,
        x_indices=x.indices,
        x_indptr=x.indptr,
        x_shape=x.shape,
        edge_index=EDGES,
        y=np.array([0, 1, 0, 1]),
        has_label=np.array([True, True, True, False]),
        train_index=np.array([0]),
        test_index=np.array([1, 2]),
    )
    found = read_npz(path)
    assert (found.graph.x != x).nnz == 0 and found.graph.degrees.tolist() == [1, 2, 2, 1]
    assert found.frame.y.tolist() == [0, 1, 0, 1] and found.target == "y"
    assert found.frame.part.tolist() == ["train", "test", "test", ""]
    assert found.known.tolist() == [True, True, True, False]


def test_many_graphs_of_arrays(tmp_path):
    path = save(
        tmp_path / "g.npz",
        edge_index=np.array([[0, 2], [1, 3]]),
        offsets=np.array([0, 2, 4, 4]),
        y=np.array([1.0, 2.0, 3.0]),
    )
    graphs = read_npz(path).graph
    assert graphs.sizes.tolist() == [2, 2, 0]
    with pytest.raises(DataError, match="an edge joins node 1 and node 2, of two graphs"):
        read_npz(save(path, edge_index=np.array([[1], [2]]), offsets=np.array([0, 2, 4])))


def test_arrays_of_objects_and_absent_nodes_are_refused(tmp_path):
    path = save(tmp_path / "g.npz", edge_index=EDGES, x=np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"g\.npz: it holds Python objects"):
        read_npz(path)
    with pytest.raises(DataError, match=r"g\.npz: edge 2 joins nodes 2 and 3, and there are 3"):
        read_npz(save(path, edge_index=EDGES, x=np.ones((3, 1))))
    with pytest.raises(DataError, match=r"whole numbers, got float64"):
        read_npz(save(path, edge_index=EDGES + 0.5, x=np.ones((9, 1))))


def tu_folder(folder, edges="1, 2\n2, 1\n3, 4\n4, 3\n", labels="0\n1\n0\n1\n"):
    for kind, text in {
        "A": edges,
        "graph_indicator": "1\n1\n2\n2\n",
        "node_labels": labels,
        "graph_labels": "-1\n1\n",
    }.items():
        (folder / f"TOY_{kind}.txt").write_text(text)
    return folder


def test_a_folder_of_the_tu_collection(tmp_path):
    found = read_tu(tu_folder(tmp_path))
    assert len(found.graph) == 2 and found.frame.label.tolist() == [-1, 1]
    assert found.graph.union.x["label1"].tolist() == ["0", "1", "0", "1"]
    assert found.graph.graph(1).edge_index.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(DataError, match=r"TOY_A\.txt, row 2: an edge to node 9"):
        read_tu(tu_folder(tmp_path, edges="1, 2\n9, 1\n"))
    with pytest.raises(DataError, match=r"TOY_node_labels\.txt, row 2: expected numbers, got 'x'"):
        read_tu(tu_folder(tmp_path, labels="0\nx\n0\n1\n"))


def test_graphml_and_networkx_go_both_ways(tmp_path):
    given = networkx.Graph()
    given.add_nodes_from([("a", {"age": 3.0}), ("b", {"age": 5.0}), ("c", {"age": 1.0})])
    given.add_edge("a", "c", weight=2.5)
    networkx.write_graphml(given, tmp_path / "g.graphml")
    graph = read_graphml(tmp_path / "g.graphml").graph
    assert graph.names.tolist() == ["a", "b", "c"] and graph.x["age"].tolist() == [3, 5, 1]
    again = to_networkx(graph)
    assert networkx.utils.graphs_equal(again, given)
    assert same(from_networkx(again), graph)


def test_torch_geometric_and_scipy_go_both_ways():
    graph = Graph.of(EDGES, x=np.arange(8.0).reshape(4, 2), weights=[1.0, 2.0, 3.0])
    for again in (from_pyg(to_pyg(graph)), from_scipy(to_scipy(graph))):
        assert same(again, graph)
        np.testing.assert_array_equal(again.weights, graph.weights)
    directed = from_scipy(scipy.sparse.csr_matrix(([1.0], ([0], [2])), shape=(3, 3)))
    assert directed.directed and directed.edge_index.tolist() == [[0], [2]]


def test_molecules_are_atoms_and_bonds():
    graph = from_smiles("CC=O")
    assert graph.x["element"].tolist() == ["C", "C", "O"]
    assert graph.x["hydrogens"].tolist() == ["3", "1", "0"]
    kinds = {
        tuple(sorted(p)): k for p, k in zip(graph.edge_index.T, graph.edges["kind"], strict=True)
    }
    assert kinds == {(0, 1): "SINGLE", (1, 2): "DOUBLE"}
    both = Graphs.of([from_smiles("OCC"), from_smiles("CCO"), from_smiles("COC")])
    assert both.isomorphic().tolist()[0] == both.isomorphic().tolist()[1]
    assert len(set(both.isomorphic())) == 2
    assert scaffolds(["Cc1ccccc1", "Oc1ccccc1"]) == ["c1ccccc1", "c1ccccc1"]


def test_a_cell_that_is_no_molecule_is_named_or_left_out():
    column = pd.Series(["CCO", "C(C", "", "CC"], name="smiles")
    with pytest.raises(DataError, match=r"t\.csv, row 2, column 'smiles': 'C\(C' is not a molec"):
        read_smiles(column, "t.csv")
    graphs, rows, texts = read_smiles(column, "t.csv", skip=True)
    assert rows.tolist() == [0, 3] and texts == ["CCO", "CC"] and len(graphs) == 2
