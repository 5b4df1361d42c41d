"""Graphs as they are stored: plain edges, rows of nodes and pairs, unions of many."""

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from ansatz.data import Graph, Graphs
from ansatz.errors import DataError


def path(nodes, **features):
    return Graph.of(
        np.stack([np.arange(nodes - 1), np.arange(1, nodes)]), num_nodes=nodes, **features
    )


def test_an_undirected_edge_stands_in_both_directions():
    graph = Graph.of([[0, 2], [1, 1]])
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.pair_index.tolist() == [[0, 1], [1, 2]]


def test_a_list_of_both_directions_is_the_same_graph():
    once, both = Graph.of([[0, 2], [1, 1]]), Graph.of([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert np.array_equal(once.edge_index, both.edge_index) and not both.notes


def test_weights_of_duplicates_add_up_and_loops_go():
    graph = Graph.of([[0, 1, 0, 2], [1, 0, 1, 2]], weights=[1.0, 2.0, 4.0, 8.0], num_nodes=4)
    assert graph.pair_index.tolist() == [[0], [1]] and graph.weights.tolist() == [7.0, 7.0]
    assert graph.notes == (
        "2 duplicate edges were merged; their weights were added.",
        "1 edge of a node with itself was left out.",
    )


def test_features_of_edges_follow_them():
    graph = Graph.of([[2, 0], [1, 1]], edges=pd.DataFrame({"kind": ["b", "a"]}))
    assert graph.edges["kind"].tolist() == ["a", "a", "b", "b"]


def test_a_directed_graph_keeps_its_directions():
    graph = Graph.of([[1, 0], [0, 1]], directed=True)
    assert graph.pair_index.shape == (2, 2) and graph.degrees.tolist() == [1, 1]


@pytest.mark.parametrize(
    "edges, options, message",
    [
        ([[0], [3]], {"num_nodes": 3}, "edge 0 joins nodes 0 and 3, and there are 3 nodes"),
        ([[-1], [0]], {}, "edge 0 joins nodes -1 and 0"),
        ([[0.5], [1.0]], {}, "whole numbers, got float64"),
        ([[0], [1]], {"x": [[1.0], [2.0, 3.0]]}, "unequal length"),
        ([[0], [1]], {"x": [[1.0], [np.inf]]}, "node 1 hold an infinite number"),
        ([[0], [1]], {"ids": ["a", "a"]}, "the id a names two nodes: row 2"),
        ([[0], [1]], {"weights": [-1.0]}, "expected a number >= 0"),
        ([[0, 1]], {}, r"shape \(2, E\)"),
    ],
)
def test_what_is_wrong_is_named(edges, options, message):
    with pytest.raises(DataError, match=message):
        Graph.of(edges, **options)


def test_an_absent_node_is_named():
    with pytest.raises(DataError, match="row 2: the graph has no node z"):
        Graph.of([[0], [1]], ids=["a", "b"]).nodes(["a", "z"])


def test_hidden_nodes_leave_with_their_edges():
    rows = path(4).nodes([0, 3]).without(np.array([1]))
    assert rows.graph.names.tolist() == [0, 2, 3] and rows.names.tolist() == [0, 3]
    assert rows.graph.pair_index.tolist() == [[1], [2]] and len(rows.whole) == 4


def test_both_directions_of_a_pair_are_one_content():
    keys = path(3).pairs([[0, 1], [1, 0], [1, 2]]).content_keys()
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("empty", [Graph.of([[], []]), Graph.of([[], []], num_nodes=1)])
def test_empty_graphs_and_lonely_nodes_are_graphs(empty):
    graphs = Graphs.of([empty, path(2), empty])
    assert graphs.sizes.tolist() == [len(empty), 2, len(empty)]
    assert graphs.content_keys()[0] == graphs.content_keys()[2]


def test_rows_of_a_union_are_its_graphs():
    parts = [path(n, x=np.arange(n * 2.0).reshape(n, 2)) for n in (3, 1, 4)]
    taken = Graphs.of(parts)[[2, 0, 2]]
    for k, n in enumerate((2, 0, 2)):
        one = taken.graph(k)
        assert np.array_equal(one.edge_index, parts[n].edge_index)
        assert np.array_equal(one.x, parts[n].x)


def test_sparse_features_stay_sparse():
    graphs = Graphs.of([path(2, x=csr_matrix(np.eye(2))), path(2, x=csr_matrix(np.ones((2, 2))))])
    assert graphs[[1]].union.x.nnz == 4


def test_isomorphic_graphs_share_their_content_and_others_do_not():
    draw = np.random.default_rng(0)
    kinds = pd.DataFrame({"atom": ["C", "N", "C", "O", "C", "C"]})
    bonds = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    graph = Graph.of(bonds, kinds, edges=[[1.0], [2.0], [1.0], [1.0], [1.0]])
    order = draw.permutation(6)
    place = np.argsort(order)
    same = Graph.of(
        place[bonds[::-1]], kinds.iloc[order], edges=[[1.0], [2.0], [1.0], [1.0], [1.0]]
    )
    bond = Graph.of(bonds, kinds, edges=[[2.0], [1.0], [1.0], [1.0], [1.0]])
    ring = Graph.of(np.c_[bonds, [5, 0]], kinds, edges=[[1.0], [2.0], [1.0], [1.0], [1.0], [1.0]])
    keys = Graphs.of([graph, same, bond, ring]).content_keys()
    assert keys[0] == keys[1] and len(set(keys.tolist())) == 3


@pytest.mark.filterwarnings("ignore:The hashes produced")
def test_colours_are_those_of_networkx():
    graphs = [networkx.gnp_random_graph(7, 0.4, seed=k) for k in range(40)]
    hashes = [networkx.weisfeiler_lehman_graph_hash(g, iterations=8) for g in graphs]
    index = [np.array(list(g.edges)).reshape(-1, 2).T for g in graphs]
    keys = Graphs.of([Graph.of(each, num_nodes=7) for each in index]).content_keys()
    same = np.equal.outer(np.array(hashes), np.array(hashes))
    assert np.array_equal(np.equal.outer(keys, keys), same)
