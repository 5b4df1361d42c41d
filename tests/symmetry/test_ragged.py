"""Certificates of networks on sets and clouds."""

import pytest
import torch

from ansatz import networks
from ansatz.layers import EquivariantLinear, GraphBatch, Ragged
from ansatz.networks import InvariantPoints, PointNet
from ansatz.spec import InputSpec
from ansatz.symmetry import NodePermutation, Permutation, RigidMotion, certify

X = Ragged(torch.randn(9, 4).double(), torch.tensor([0, 4, 4, 9]))


def test_a_permutation_of_ragged_rows_keeps_every_row():
    group, g = Permutation(), Permutation().sample(X)
    moved = group.act(g, X)
    for a, b in ((0, 4), (4, 9)):
        assert sorted(moved.values[a:b, 0].tolist()) == sorted(X.values[a:b, 0].tolist())
    assert torch.equal(group.act(group.inverse(g), moved).values, X.values)
    assert torch.equal(group.act(group.identity(X), X).values, X.values)


def test_layers_on_sets_are_equivariant_and_an_order_is_found_out():
    layer = EquivariantLinear(4, 3)
    found = certify(lambda x: layer(*x), X, "permutation", kind="equivariant", samples=8)
    assert found.largest < 1e-12
    ranked = certify(lambda x: x.values[:, :1].cumsum(0), X, "permutation", samples=8)
    assert ranked.largest > 0.1


@pytest.mark.parametrize("network, exact", [(InvariantPoints(4, 2), True), (PointNet(4, 2), False)])
def test_motions_move_coordinates_and_leave_features(network, exact):
    torch.nn.init.normal_(network.output.weight)
    network, x = network.double().eval(), X._replace(offsets=torch.tensor([0, 4, 9]))
    found = certify(lambda x: network(*x), x, RigidMotion(), samples=8)
    assert (found.largest < 1e-10) == exact


def two_graphs():
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for nodes in (5, 7):
        index = torch.randint(nodes, (2, 14), generator=draw)
        x = torch.randn(nodes, 3, generator=draw).double()
        weight, features = torch.rand(14, generator=draw).double(), torch.randn(14, 2).double()
        graphs.append(GraphBatch.of(x, index, weight=weight, edge_features=features))
    return GraphBatch.collate(graphs)


def test_renamed_nodes_keep_their_features_edges_and_graphs():
    batch, group = two_graphs()._replace(targets=torch.tensor([0, 9])), NodePermutation()
    g = group.sample(batch)
    assert set(g[:5].tolist()) == set(range(5))
    moved = group.act(g, batch)
    A, B = batch.edges.dense(), moved.edges.dense()
    assert torch.equal(B[g][:, g], A) and torch.equal(moved.x[g], batch.x)
    assert torch.equal(moved.targets, g[batch.targets])
    ends = {(g[i].item(), g[j].item()): k for k, (i, j) in enumerate(batch.edges.edge_index.T)}
    for k, (i, j) in enumerate(moved.edges.edge_index.T.tolist()):
        assert torch.equal(moved.edge_features[k], batch.edge_features[ends[i, j]])
    back = group.act(group.inverse(g), moved)
    assert torch.equal(back.edges.edge_index, batch.edges.edge_index)
    assert torch.equal(back.edges.source, group.act(group.identity(batch), batch).edges.source)


@pytest.mark.parametrize("name, rows", [("gcn", "nodes"), ("gin", "graphs")])
def test_networks_of_graphs_do_not_see_names_and_an_order_is_found_out(name, rows):
    spec = InputSpec.graph(3, rows=rows)
    draw = torch.Generator().manual_seed(0)
    network = networks.create(name, spec, 2, width=4, generator=draw).double()
    batch = two_graphs()._replace(edge_features=None)
    if rows == "nodes":
        batch = batch._replace(targets=torch.tensor([1, 6, 8]))
    assert certify(network, batch, "node_permutation", samples=4).largest < 1e-10
    named = certify(lambda b: b.x.cumsum(0), batch, NodePermutation(), samples=4)
    assert named.largest > 0.1
    smooth = certify(lambda b: b.edges.sum(b.x), batch, NodePermutation(), kind="equivariant")
    assert smooth.largest < 1e-12
    with pytest.raises(TypeError, match="node_permutation"):
        certify(network, batch, RigidMotion())
