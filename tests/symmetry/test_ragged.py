"""Certificates of networks on sets and clouds."""

import pytest
import torch

from ansatz.layers import EquivariantLinear, Ragged
from ansatz.networks import InvariantPoints, PointNet
from ansatz.symmetry import Permutation, RigidMotion, certify

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
