"""Layers on graphs against matrices, and against sums written edge by edge."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import Edges, GraphBatch, SparseRows
from ansatz.layers.graphs import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GraphConv,
    Readout,
    SAGEConv,
    SGConv,
    propagate,
)
from ansatz.layers.graphs.attention import sum_heads
from ansatz.layers.graphs.node_features import drop_features

N, D, K = 8, 3, 5
PAIRS = torch.tensor([[0, 1, 1, 2, 2, 2, 3, 4, 5, 6], [1, 2, 5, 3, 5, 6, 4, 5, 6, 7]])


@pytest.fixture
def edges():
    """The example of eight nodes, with a ninth that is alone."""
    return Edges.of(PAIRS, N + 1, undirected=True)


def example():
    return torch.randn(N + 1, D)


def test_the_example_has_its_degrees_and_the_matrix_norm_one(edges):
    assert edges.degree.tolist() == [1, 3, 4, 2, 2, 4, 3, 1, 0]
    matrix = torch.stack([smoothed(edges, column) for column in torch.eye(N + 1)], 1)
    assert_close(torch.linalg.matrix_norm(matrix, 2), torch.tensor(1.0))
    loops = edges.dense() + torch.eye(N + 1)
    scale = torch.diag(loops.sum(1) ** -0.5)
    assert_close(matrix, scale @ loops @ scale)


def smoothed(edges, column):
    layer = GCNConv(1, 1, bias=False)
    torch.nn.init.ones_(layer.lin.weight)
    return layer(column.unsqueeze(1), edges).squeeze(1)


@pytest.mark.parametrize("units", [2, 5], ids=["map first", "sum first"])
def test_the_message_form_is_the_matrix_form(edges, units):
    x, A, one = example(), edges.dense(), torch.eye(N + 1)
    degree = A.sum(1, keepdim=True)
    mean = A / degree.clamp(min=1)
    root = torch.where(degree > 0, degree, torch.inf) ** -0.5
    loops = A + one
    smooth = loops * loops.sum(1, keepdim=True) ** -0.5 * loops.sum(1) ** -0.5
    matrices = {"basic": A, "mean": mean, "symmetric": root * A * root.T, "self_loop": loops}
    for aggregation, matrix in matrices.items():
        layer = GraphConv(D, units, aggregation=aggregation)
        own = 0 if layer.lin_root is None else x @ layer.lin_root.weight.T
        expected = matrix @ x @ layer.lin_rel.weight.T + layer.lin_rel.bias + own
        assert_close(layer(x, edges), expected)
    sage = SAGEConv(D, units)
    assert_close(sage(x, edges), sage.lin_l(mean @ x) + sage.lin_r(x))
    gcn, sgc = GCNConv(D, units), SGConv(D, units, steps=3)
    torch.nn.init.normal_(sgc.lin.bias)
    assert_close(gcn(x, edges), smooth @ x @ gcn.lin.weight.T + gcn.bias)
    assert_close(sgc(x, edges), sgc.lin(torch.linalg.matrix_power(smooth, 3) @ x))


@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
def test_attention_sums_to_one_over_neighbours_and_the_node_itself(edges, kind):
    layer, x = kind(D, 6, heads=3, edge_features=2), example()
    features = torch.randn(len(edges.source), 2)
    weights, loops = layer.attention(x, edges, features)
    total = torch.zeros(N + 1, 3).index_add(0, edges.destination, weights) + loops
    assert_close(total, torch.ones(N + 1, 3), rtol=0, atol=1e-14)
    assert_close(loops[N], torch.ones(3))
    assert (weights > 0).all()


def test_attention_survives_huge_scores(edges):
    layer, x = GATConv(D, 6, heads=2), 1e4 * example()
    y = layer(x.requires_grad_(), edges)
    y.sum().backward()
    assert y.isfinite().all() and x.grad.isfinite().all()


def test_an_edge_of_weight_two_counts_as_two():
    layer, x = GATConv(D, 4), torch.randn(2, D)
    one = Edges.of(torch.tensor([[0], [1]]), 2)
    double = one._replace(weight=torch.tensor([2.0]))
    V = layer.lin(x)
    source, own = V @ layer.att_src[0, 0], V @ layer.att_dst[0, 0]
    scores = torch.nn.functional.leaky_relu(torch.stack([source[0], source[1]]) + own[1], 0.2).exp()
    expected = (2 * scores[0] * V[0] + scores[1] * V[1]) / (2 * scores[0] + scores[1])
    assert_close(layer(x, double)[1], expected)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_a_layer_of_the_users_own_is_its_formula(edges, reduce):
    x, features = example(), torch.randn(len(edges.source), 2)
    graph = GraphBatch(x, edges, features, torch.tensor([0, N + 1]))

    def message(source, destination, edge):
        return torch.tanh(source * destination) + edge.sum(1, keepdim=True)

    found = propagate(graph, message, reduce, lambda own, sums: own - sums)
    for n in range(N + 1):
        into = (edges.destination == n).nonzero()[:, 0].tolist()
        each = [torch.tanh(x[edges.source[e]] * x[n]) + features[e].sum() for e in into]
        stacked = torch.stack(each) if each else torch.zeros(1, D)
        total = {"sum": stacked.sum(0), "mean": stacked.mean(0), "max": stacked.amax(0)}[reduce]
        assert_close(found[n], x[n] - total)


def test_a_message_of_another_number_of_rows_is_refused(edges):
    graph = GraphBatch(example(), edges, None, torch.tensor([0, N + 1]))
    with pytest.raises(ValueError, match=r"a row for each of the 20 edges, got \(3,\)"):
        propagate(graph, lambda m, n, e: torch.zeros(3))


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "attention"])
def test_a_readout_does_not_see_the_order_of_the_nodes(kind):
    layer, x, offsets = Readout(D, kind), torch.randn(6, D), torch.tensor([0, 4, 4, 6])
    order = torch.cat([torch.randperm(4), 4 + torch.randperm(2)])
    y = layer(x, offsets)
    assert_close(layer(x[order], offsets), y)
    assert (y[1] == 0).all()
    if kind == "attention":
        a = layer.gate(x[:4]).softmax(0)
        assert_close(y[0], (a * x[:4]).sum(0))


def test_dropout_of_stored_numbers_is_dense_dropout():
    x = torch.randn(40, 30) * (torch.rand(40, 30) < 0.2)
    sparse = drop_features(SparseRows.of(x), 0.5, training=True).dense()
    assert torch.equal((sparse == 0) | (sparse == 2 * x), torch.ones_like(x, dtype=torch.bool))
    kept = (sparse[x != 0] != 0).double().mean()
    assert abs(kept - 0.5) < 5 * 0.5 / (x != 0).sum() ** 0.5  # five standard errors
    assert drop_features(SparseRows.of(x), 0.5, training=False).dense().equal(x)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: GATConv(3, 5, heads=2), "2 heads side by side need out_features"),
        (lambda: GraphConv(3, 5, aggregation="sum"), "aggregation must be one of basic"),
        (lambda: SAGEConv(3, 5, aggregation="median"), "aggregation must be mean, sum or max"),
        (lambda: Readout(3, "last"), "readout must be one of sum"),
    ],
)
def test_wrong_options_are_named(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_heads_are_summed_one_by_one_with_all_derivatives(edges):
    x, weight = torch.randn(N + 1, 2, 3), torch.rand(len(edges.source), 2)
    expected = torch.stack([edges.sum(x[:, h], weight[:, h].contiguous()) for h in range(2)], 1)
    assert_close(sum_heads(edges, x, weight), expected)
    inputs = (x.requires_grad_(), weight.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, w: sum_heads(edges, x, w), inputs)
    assert torch.autograd.gradgradcheck(lambda x, w: sum_heads(edges, x, w).sin(), inputs)
