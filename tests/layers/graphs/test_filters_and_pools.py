"""Filters of the Laplacian, gated layers, kinds of edges and pooling against others and algebra."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import Edges
from ansatz.layers.graphs import (
    ChebConv,
    GatedGraphConv,
    GraphRecurrent,
    RGCNConv,
    SpectralConv,
    TopKPooling,
    diff_pool,
    spectrum,
    top_nodes,
)
from ansatz.layers.graphs.pooling import two_steps

peers = pytest.importorskip("torch_geometric.nn")
PAIRS = torch.tensor([[0, 1, 1, 2, 2, 2, 3, 4, 5, 6], [1, 2, 5, 3, 5, 6, 4, 5, 6, 7]])
N, D, K = 9, 3, 4  # the ninth node is alone


@pytest.fixture
def edges():
    return Edges.of(PAIRS, N, undirected=True)


def test_chebyshev_filters_are_theirs(edges):
    ours, x = ChebConv(D, K, order=3), torch.randn(N, D)
    theirs = peers.ChebConv(D, K, 4)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    expected = theirs(x, edges.edge_index, lambda_max=torch.tensor(2.0))
    assert_close(ours(x, edges), expected)


def test_a_spectral_filter_is_its_matrix_and_keeps_energy(edges):
    basis, layer = spectrum(edges, torch.tensor([0, 8, N]), torch.float64), SpectralConv(D, K)
    A = edges.dense()[:8, :8]
    scale = torch.diag(A.sum(1) ** -0.5)
    laplacian = torch.eye(8) - scale @ A @ scale
    U, x = basis.vectors[0], torch.randn(N, D)
    assert_close(U @ torch.diag(basis.values[0]) @ U.T, laplacian)
    assert_close((U.T @ x[:8]).square().sum(), x[:8].square().sum())  # Parseval
    weights = layer.lin.weight.unflatten(0, (-1, K))  # (knots, K, D)
    hats = layer.hats(basis.values[0]).squeeze(2)
    filters = torch.einsum("nk,koi->noi", hats, weights)
    expected = U @ torch.einsum("noi,ni->no", filters, U.T @ x[:8])
    assert_close(layer(x, basis)[:8], expected)
    assert_close(hats.sum(1), torch.ones(8))
    linear = SpectralConv(1, 1, knots=2)  # the filter 2 - lambda: 1 + the smoothing matrix
    with torch.no_grad():
        linear.lin.weight.copy_(torch.tensor([[2.0], [0.0]]))
    expected = (2 * torch.eye(8) - laplacian) @ x[:8, :1]
    assert_close(linear(x[:, :1], basis)[:8], expected)


def test_a_spectral_filter_does_not_depend_on_the_choice_of_eigenvectors():
    ring = Edges.of(torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6]), 6, undirected=True)
    basis = spectrum(ring, torch.tensor([0, 6]), torch.float64)
    turned = basis.vectors[0].clone()
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    turned[:, 1:3] = turned[:, 1:3] @ turn  # eigenvalue 1/2 has two eigenvectors
    layer, x = SpectralConv(D, K), torch.randn(6, D)
    assert_close(layer(x, basis._replace(vectors=[turned])), layer(x, basis))


def test_spectral_filters_refuse_directed_and_huge_graphs(monkeypatch):
    directed = Edges.of(torch.tensor([[0], [1]]), 2)
    with pytest.raises(UsageError, match="edges that lead both ways"):
        spectrum(directed, torch.tensor([0, 2]), torch.float64)
    monkeypatch.setattr("ansatz.layers.graphs.spectral.MAX_NODES", 1)
    with pytest.raises(UsageError, match="up to 1 nodes, got 2; chebnet filters without them"):
        spectrum(directed, torch.tensor([0, 2]), torch.float64)


def test_kinds_of_edges_through_bases_are_theirs(edges):
    kinds = torch.randint(3, (len(edges.source),))
    for units in (2, 5):
        ours, x = RGCNConv(D, units, relations=3, bases=2), torch.randn(N, D)
        theirs = peers.RGCNConv(D, units, 3, num_bases=2)
        theirs.load_state_dict(ours.state_dict(), strict=True)
        assert_close(ours(x, edges, kinds), theirs(x, edges.edge_index, kinds))


def test_gated_messages_are_theirs(edges):
    ours, x = GatedGraphConv(D, steps=3), torch.randn(N, D)
    theirs = peers.GatedGraphConv(D, 3)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert_close(ours(x, edges), theirs(x, edges.edge_index))


def test_without_edges_a_node_has_torchs_lstm():
    layer, x = GraphRecurrent(D, K, kind="lstm"), torch.randn(2, 6, D)
    lstm = nn.LSTM(D, K, batch_first=True)
    with torch.no_grad():  # their gates are i, f, g, o
        order = torch.cat([torch.arange(4 * K).reshape(4, K)[i] for i in (0, 1, 3, 2)])
        lstm.weight_ih_l0.copy_(layer.inputs.weight[order, :D])
        lstm.weight_hh_l0.copy_(layer.states.weight[order, :K])
        lstm.bias_ih_l0.copy_(layer.inputs.bias[order])
        lstm.bias_hh_l0.zero_()
    alone = Edges.of(torch.zeros(2, 0, dtype=torch.long), 2)
    assert_close(layer(x, alone), lstm(x)[0])


def test_the_graph_gru_is_its_equations(edges):
    layer, x = GraphRecurrent(D, K), torch.randn(N, 3, D)
    A = edges.dense()
    root = torch.where(A.sum(1) > 0, A.sum(1), torch.inf) ** -0.5
    smooth, h = root[:, None] * A * root, torch.zeros(N, K)
    for t in range(3):
        both = torch.cat([x[:, t], smooth @ x[:, t]], 1)
        z, r, n = layer.inputs(both).chunk(3, 1)
        old = layer.states(torch.cat([h, smooth @ h], 1))
        z, r = torch.sigmoid(z + old[:, :K]), torch.sigmoid(r + old[:, K:])
        n = torch.tanh(n + layer.candidate(torch.cat([r * h, smooth @ (r * h)], 1)))
        h = (1 - z) * n + z * h
    assert_close(layer(x, edges)[:, -1], h)


def test_the_best_nodes_of_each_graph_are_kept(edges):
    ours, x, offsets = TopKPooling(D, ratio=0.5), torch.randn(N, D), torch.tensor([0, 8, 9])
    kept = ours(x, edges, offsets)
    theirs = peers.TopKPooling(D, ratio=0.5)
    theirs.load_state_dict({"select.weight": ours.weight}, strict=True)
    graph = torch.tensor([0] * 8 + [1])
    other, edge_index, _, _, nodes, _ = theirs(x, edges.edge_index, batch=graph)
    order = nodes.argsort()
    assert_close(kept.x, other[order])
    assert kept.nodes.equal(nodes[order]) and kept.offsets.tolist() == [0, 4, 5]
    A = torch.zeros(5, 5)
    A[edge_index[1], edge_index[0]] = 1
    assert_close(kept.edges.dense(), A[order][:, order])
    assert top_nodes(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0, 3]), 0.3)[0].tolist() == [0]


def test_two_steps_are_the_square_of_the_matrix_with_loops(edges):
    loops = edges.dense() + torch.eye(N)
    expected = loops @ loops
    assert_close(two_steps(edges).dense(), expected - torch.diag(expected.diagonal()))


def test_soft_clusters_are_theirs(edges):
    x, scores, offsets = torch.randn(N, D), torch.randn(N, 2), torch.tensor([0, N])
    found = diff_pool(x, scores, edges, offsets)
    pooled, adjacency, link, entropy = peers.dense_diff_pool(
        x[None], edges.dense()[None], scores[None], normalize=False
    )
    assert_close(found.x, pooled)
    assert_close(found.adjacency, adjacency)
    assert_close(found.link_loss[0], link)
    assert_close(found.entropy[0], entropy, rtol=1e-9, atol=1e-12)
