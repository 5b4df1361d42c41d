"""Networks on graphs against those of torch_geometric: the same names of weights, the same sums."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.layers import GraphBatch
from ansatz.spec import InputSpec

models = pytest.importorskip("torch_geometric.nn.models")
D, F, WIDTH, P, N, E = 5, 3, 8, 4, 9, 16

CASES = {  # ours, its options, theirs, their options
    "gcn": ("gcn", {}, "GCN", {}),
    "gcn cat batch": (
        "gcn", {"jumping": "cat", "norm": "batch"}, "GCN", {"jk": "cat", "norm": "batch_norm"},
    ),
    "gcn last": ("gcn", {"jumping": "last"}, "GCN", {"jk": "last"}),
    "gat": ("gat", {"heads": 2}, "GAT", {"heads": 2}),
    "gat max": ("gat", {"heads": 4, "jumping": "max"}, "GAT", {"heads": 4, "jk": "max"}),
    "gatv2": ("gatv2", {"heads": 2}, "GAT", {"heads": 2, "v2": True}),
    "graphsage": ("graphsage", {}, "GraphSAGE", {}),
    "graphsage max": ("graphsage", {"aggregation": "max"}, "GraphSAGE", {"aggr": "max"}),
    "graphsage lstm": ("graphsage", {"jumping": "lstm"}, "GraphSAGE", {"jk": "lstm"}),
    "gin": ("gin", {}, "GIN", {}),
    "gin batch": ("gin", {"norm": "batch"}, "GIN", {"norm": "batch_norm"}),
    "gin layer": (
        "gin", {"norm": "layer"}, "GIN",
        {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}},
    ),
}  # fmt: skip


def random_graph(directed):
    pairs = torch.randint(N - 1, (2, E))  # the last node is isolated
    batch = GraphBatch.of(
        torch.randn(N, D), pairs, edge_features=torch.randn(E, F), undirected=not directed
    )
    return batch._replace(targets=torch.arange(N))


def pair(name, options, theirs, their_options, **more):
    spec = InputSpec.graph(D, more.get("edge_dim", 0), rows="nodes")
    ours = networks.create(name, spec, P, width=WIDTH, depth=3, dropout=0.0, **options)
    peer = getattr(models, theirs)(D, WIDTH, 3, P, **their_options, **more)
    ours.load_state_dict(peer.state_dict(), strict=True)
    return ours, peer


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_their_weights_load_strictly_and_give_their_answers(case, directed):
    (ours, peer), batch = pair(*case), random_graph(directed)._replace(edge_features=None)
    for mode in (False, True):  # batch statistics too; there is no dropout
        ours.train(mode)
        expected = peer.train(mode)(batch.x, batch.edges.edge_index)
        assert_close(ours(batch), expected, rtol=0, atol=1e-10)
    for (key, one), (_, other) in zip(
        gradients(ours, ours(batch)).items(),
        gradients(peer, peer(batch.x, batch.edges.edge_index)).items(), strict=True,
    ):  # fmt: skip
        assert_close(one, other, rtol=0, atol=1e-9, msg=key)


def gradients(network, y):
    network.zero_grad()
    y.square().sum().backward()
    return dict(sorted((key, p.grad) for key, p in network.named_parameters()))


@pytest.mark.parametrize("case", [CASES["gat"], CASES["gatv2"]], ids=["gat", "gatv2"])
def test_attention_to_features_of_edges_is_theirs(case):
    (ours, peer), batch = pair(*case, edge_dim=F), random_graph(directed=False)
    expected = peer.eval()(batch.x, batch.edges.edge_index, edge_attr=batch.edge_features)
    assert_close(ours.eval()(batch), expected, rtol=0, atol=1e-10)


def test_weights_of_edges_are_theirs():
    (ours, peer), batch = pair(*CASES["gcn"]), random_graph(directed=False)
    weight = torch.rand(len(batch.edges.source))
    weighted = batch._replace(edges=batch.edges._replace(weight=weight), edge_features=None)
    expected = peer.eval()(batch.x, batch.edges.edge_index, edge_weight=weight)
    assert_close(ours.eval()(weighted), expected, rtol=0, atol=1e-10)


def test_a_layer_with_features_of_edges_is_their_gine():
    from torch_geometric.nn import GINEConv

    from ansatz.layers.graphs import GINConv

    ours, batch = GINConv(D, WIDTH, edge_features=F), random_graph(directed=False)
    peer = GINEConv(models.MLP([D, WIDTH, WIDTH], norm=None), edge_dim=F)
    peer.load_state_dict(ours.state_dict(), strict=True)
    found = ours(batch.x, batch.edges, batch.edge_features)
    assert_close(found, peer(batch.x, batch.edges.edge_index, batch.edge_features))
