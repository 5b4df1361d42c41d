"""Graphs against networkx, algebra and a table."""

import networkx
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from ansatz.errors import UsageError
from ansatz.layers import Edges, GraphBatch
from ansatz.theory import graphs as theory

EDGES = [(0, 1), (1, 2), (1, 5), (2, 3), (2, 5), (2, 6), (3, 4), (4, 5), (5, 6), (6, 7)]


@pytest.fixture
def example():
    made = networkx.empty_graph(8)
    made.add_edges_from(EDGES)
    return made


@pytest.fixture(params=range(3))
def graph(request):
    made = networkx.gnp_random_graph(14, 0.25, seed=request.param)
    return made


def test_the_example_of_eight_nodes(example):
    assert theory.degrees(example).tolist() == [1, 3, 4, 2, 2, 4, 3, 1]
    table = [0, 0.586, 0.764, 2, 2.586, 3.414, 5.236, 5.414]
    assert_allclose(theory.fourier(example).values, table, atol=5e-4)


def test_every_kind_of_graph_has_the_same_matrix(example):
    A = networkx.to_numpy_array(example)
    pairs = torch.tensor(EDGES).T
    edges = Edges.of(pairs, 8, undirected=True)
    batch = GraphBatch.of(torch.zeros(8, 0), pairs, undirected=True)
    for each in (example, A, torch.tensor(A), theory.adjacency(A), edges, batch):
        assert_allclose(theory.adjacency(each).toarray(), A)
    one_way = networkx.DiGraph([(0, 1)])
    assert theory.adjacency(one_way).toarray().tolist() == [[0, 0], [1, 0]]
    with pytest.raises(UsageError, match=r"must be square, got \(2, 3\)"):
        theory.adjacency(np.zeros((2, 3)))


def test_shape_is_networkxs(graph):
    assert theory.density(graph) == pytest.approx(networkx.density(graph))
    expected = networkx.clustering(graph)
    assert_allclose(theory.clustering(graph), [expected[n] for n in graph])
    assert theory.components(graph).max() + 1 == networkx.number_connected_components(graph)
    largest = graph.subgraph(max(networkx.connected_components(graph), key=len))
    assert theory.diameter(largest) == networkx.diameter(largest)
    split = networkx.disjoint_union(largest, largest)
    assert theory.diameter(split) == np.inf
    assert_allclose(
        theory.laplacian(graph, "symmetric").toarray(),
        networkx.normalized_laplacian_matrix(graph).toarray(), atol=1e-15,
    )  # fmt: skip


def test_the_transform_keeps_energy_and_convolution_commutes(example):
    basis, x, y = theory.fourier(example), *np.random.default_rng(0).standard_normal((2, 8))
    assert np.sum(basis.transform(x) ** 2) == pytest.approx(np.sum(x**2))  # Parseval
    assert_allclose(basis.inverse(basis.transform(x)), x)
    assert_allclose(basis.convolve(x, y), basis.convolve(y, x))
    few = theory.fourier(example, 3)
    assert_allclose(few.values, basis.values[:3], atol=1e-8)
    with pytest.raises(UsageError, match="edges both ways"):
        theory.fourier(networkx.DiGraph([(0, 1), (1, 2)]))


def test_dirichlet_energy_is_the_sum_over_edges(example):
    x = np.random.default_rng(0).standard_normal((8, 2))
    expected = sum(((x[a] - x[b]) ** 2).sum() for a, b in EDGES) / 8
    assert theory.dirichlet_energy(example, torch.tensor(x), "combinatorial") == pytest.approx(
        expected
    )
    roots = np.sqrt(theory.degrees(example))
    assert theory.dirichlet_energy(example, roots) == pytest.approx(0, abs=1e-14)
    assert theory.dirichlet_energy(example, np.ones(8), "combinatorial") == 0


def test_the_laplacian_of_a_path_is_the_second_difference_of_a_function():
    step, place = 1e-3, torch.linspace(0, 1, 1001)
    path = networkx.path_graph(1001)
    values = torch.sin(3 * place).numpy()
    second = -(theory.laplacian(path) @ values)[1:-1] / step**2
    exact = [float(theory.laplacian_of_function(lambda z: torch.sin(3 * z[0]), place[i : i + 1]))
             for i in (1, 500, 999)]  # fmt: skip
    assert_allclose(second[[0, 499, 998]], exact, atol=9 * 9 * step**2)  # f'''' <= 81, h^2 / 12
    turn = torch.linalg.qr(torch.randn(3, 3))[0]
    x = torch.randn(3)

    def f(z):
        return z[0] * z[1] ** 2 * z[2].sin()

    turned = theory.laplacian_of_function(lambda z: f(turn @ z), turn.T @ x)
    torch.testing.assert_close(turned, theory.laplacian_of_function(f, x))


def test_homophily():
    assert theory.homophily(networkx.path_graph(4), [0, 0, 1, 1]) == pytest.approx(2 / 3)


def test_renamed_graphs_have_the_same_colours(graph):
    order = np.random.default_rng(1).permutation(14)
    A = networkx.to_numpy_array(graph)
    for pairs in (False, True):
        one, other = theory.colours(A, A[order][:, order], pairs=pairs)
        assert (other == (one[order][:, order] if pairs else one[order])).all()


def test_colours_are_those_of_networkx(graph):
    """As many colours as different stable hashes of neighbourhoods."""
    (found,) = theory.colours(graph)
    networkx.set_node_attributes(graph, "0", "colour")
    hashes = networkx.weisfeiler_lehman_subgraph_hashes(graph, iterations=14, node_attr="colour")
    last = [hashes[n][-1] for n in graph]
    pairs = set(zip(found.tolist(), last, strict=True))
    assert len(pairs) == len(set(found.tolist())) == len(set(last))


def test_what_colours_of_nodes_do_not_tell_those_of_pairs_do():
    hexagon = networkx.cycle_graph(6)
    triangles = networkx.disjoint_union(networkx.cycle_graph(3), networkx.cycle_graph(3))
    assert theory.same_colours(hexagon, triangles)
    assert not theory.same_colours(hexagon, triangles, pairs=True)
    # Strongly regular graphs of the same parameters: pairs do not tell these.
    rook = networkx.line_graph(networkx.complete_bipartite_graph(4, 4))
    steps = [(0, 1), (1, 0), (1, 1)]
    shrikhande = networkx.Graph(
        ((a, b), ((a + i) % 4, (b + j) % 4)) for a in range(4) for b in range(4) for i, j in steps
    )
    assert theory.same_colours(rook, shrikhande, pairs=True)
    assert not networkx.is_isomorphic(rook, shrikhande)


def test_features_are_first_colours():
    path = networkx.path_graph(2)
    assert theory.same_colours(path, path)
    assert not theory.same_colours(path, path, ([0, 1], [1, 1]))
