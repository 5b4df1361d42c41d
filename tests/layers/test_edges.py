"""Sums over neighbours against matrices, and graphs cut from batches against graphs alone."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.data.batch import take_rows
from ansatz.layers import Edges, GraphBatch, SparseRows

N, E = 7, 20


def random_edges(*, weighted=False, nodes=(N, N), count=E):
    pairs = torch.stack([torch.randint(n, (count,)) for n in nodes])
    return Edges.of(pairs, nodes, torch.rand(count) if weighted else None)


def random_graph(nodes, *, features=3, sparse=False):
    pairs = torch.randint(nodes, (2, 3 * nodes)) if nodes else torch.zeros(2, 0, dtype=torch.long)
    x = torch.randn(nodes, features)
    return GraphBatch.of(
        SparseRows.of(x) if sparse else x,
        pairs,
        edge_features=torch.randn(3 * nodes, 2),
        graph_features=torch.randn(1, 4),
        relations=torch.randint(3, (3 * nodes,)),
        undirected=True,
    )


def same(a, b):
    for one, other in zip(a, b, strict=True):
        if isinstance(one, tuple):
            same(one, other)
        elif one is None:
            assert other is None
        else:
            assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)], ids=str)
def test_a_sum_over_neighbours_is_a_product_with_the_matrix(weighted, shape):
    edges, x = random_edges(weighted=weighted), torch.randn(N, *shape).requires_grad_()
    found, expected = edges.sum(x), torch.einsum("nm,m...->n...", edges.dense(), x)
    assert_close(found, expected)
    factor = torch.randn_like(found)
    assert_close(*(torch.autograd.grad((y * factor).sum(), x) for y in (found, expected)))


def test_gradients_of_gradients():
    edges = random_edges()
    x, w = torch.randn(N, 2, requires_grad=True), torch.rand(len(edges.source), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: edges.sum(x, w), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: edges.sum(x, w).sin(), (x, w))
    assert torch.autograd.gradgradcheck(lambda x: edges.at_source(x).sin(), (x,))


def test_the_same_bits_on_one_and_two_threads():
    edges, x = random_edges(nodes=(300, 300), count=9000), torch.randn(300, 64, dtype=torch.float32)
    found, threads = [], torch.get_num_threads()
    for number in (1, 2):
        torch.set_num_threads(number)
        own = x.clone().requires_grad_()
        y = edges.sum(own)
        found.append((y, *torch.autograd.grad((y * x).sum(), own)))
    torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_the_transpose_is_the_transpose():
    edges = random_edges(weighted=True, nodes=(5, 9))
    assert_close(edges.transposed().dense(), edges.dense().T)
    same(edges.transposed().transposed(), edges)


def test_duplicates_merge_their_weights_add_and_loops_go():
    pairs = torch.tensor([[0, 0, 2, 1], [1, 1, 2, 0]])
    edges, place = Edges.sort(pairs, 3, torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert edges.edge_index.tolist() == [[1, 0], [0, 1]]
    assert edges.weight.tolist() == [8, 3] and place.tolist() == [3, 0]
    assert len(Edges.of(pairs, 3, loops=True).source) == 3


def test_undirected_edges_have_both_directions_once():
    one = Edges.of(torch.tensor([[0, 1], [1, 2]]), 3, undirected=True)
    both = Edges.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, torch.ones(4), undirected=True)
    assert_close(one.dense(), both.dense())
    assert one.degree.tolist() == both.degree.tolist() == [1, 2, 1]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rows", [slice(1, 3), torch.tensor([3, 0]), slice(2, 2)], ids=str)
def test_a_graph_of_a_batch_is_the_graph_alone(rows, sparse):
    graphs = [random_graph(n, sparse=sparse) for n in (4, 1, 6, 0, 3)]
    batch = GraphBatch.collate(graphs)
    which = range(5)[rows] if isinstance(rows, slice) else rows.tolist()
    got = take_rows(batch, rows)
    assert got.count_rows() == len(which)
    if len(which):
        same(got, GraphBatch.collate([graphs[i] for i in which]))


def test_a_subgraph_has_the_edges_between_its_nodes():
    graph, nodes = random_graph(8), torch.tensor([5, 1, 2])
    part = graph.take_nodes(nodes)
    assert_close(part.edges.dense(), graph.edges.dense()[nodes][:, nodes])
    assert_close(part.x, graph.x[nodes])


def test_targets_are_cut_and_their_graph_stays():
    graph = random_graph(8)._replace(targets=torch.tensor([4, 2, 7]))
    part = take_rows(graph, torch.tensor([2, 1]))
    assert part.targets.tolist() == [7, 2] and part.edges is graph.edges


def test_sparse_features_are_dense_ones():
    x, w = torch.randn(5, 4) * (torch.rand(5, 4) < 0.4), torch.randn(4, 3)
    assert_close(SparseRows.of(x) @ w, x @ w)
    assert_close(SparseRows.of(x).take_rows(torch.tensor([3, 0])).dense(), x[[3, 0]])
    x[0] = 0  # a first row without any number
    assert_close(SparseRows.of(x).dense(), x)


@pytest.mark.parametrize(
    "pairs, message",
    [
        (torch.tensor([[0], [7]]), "edge 0 has the destination 7, but nodes are 0 to 6"),
        (torch.tensor([[0.0], [1.0]]), "whole numbers"),
        (torch.tensor([0, 1]), r"shape \(2, E\)"),
    ],
)
def test_bad_edges_are_named(pairs, message):
    with pytest.raises(ValueError, match=message):
        Edges.of(pairs, N)
