"""What is averaged over a group has its symmetry, whatever was averaged."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import symmetry
from ansatz.symmetry import CyclicShift, Dihedral, Flip, GroupAverage, Rotation90, certify

GROUPS = {
    "flip": Flip(axes=(-2, -1)),
    "rotation90": Rotation90(),
    "dihedral": Dihedral(),
}
every_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)


@pytest.fixture
def layer():
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 2, 3, padding=1))


@every_group
def test_the_average_is_equivariant_to_rounding(layer, group):
    x = torch.randn(3, 2, 6, 6)
    assert certify(layer, x, group, kind="equivariant").largest > 1e-2
    assert certify(GroupAverage(layer, group), x, group, kind="equivariant").largest < 1e-13


@every_group
def test_the_average_is_invariant_to_rounding(layer, group):
    head = nn.Sequential(layer, nn.Flatten(), nn.Linear(72, 4))
    x = torch.randn(3, 2, 6, 6)
    average = GroupAverage(head, group, kind="invariant")
    assert certify(head, x, group).largest > 1e-2
    assert certify(average, x, group).largest < 1e-13


def test_it_is_the_mean_of_what_a_person_would_turn_by_hand(layer):
    x = torch.randn(2, 2, 4, 7)  # not square: a turned image has another shape
    views = []
    for k in range(4):
        views.append(layer(x.rot90(k, (2, 3))).rot90(-k, (2, 3)))
        views.append(layer(x.flip(3).rot90(k, (2, 3))).rot90(-k, (2, 3)).flip(3))
    assert_close(GroupAverage(layer, "dihedral")(x), torch.stack(views).mean(0))


def test_what_is_symmetric_is_its_own_average():
    x = torch.randn(2, 1, 5, 5)
    mean = nn.AvgPool2d(3, stride=1, padding=1)
    assert_close(GroupAverage(mean, "dihedral")(x), mean(x))


def test_the_average_is_no_worse_than_what_it_averages(layer):
    """Jensen: the mean squared error over a symmetric set of examples cannot grow."""
    group, x = Dihedral(), torch.randn(4, 2, 6, 6)
    elements = [group.identity(x), *group.others(x)]
    target = x.square()  # moves with x
    average = GroupAverage(layer, group)

    def error(network):
        moved = [(group.act(g, x), group.act(g, target)) for g in elements]
        return torch.stack([(network(a) - b).square().mean() for a, b in moved]).mean()

    assert error(average) < error(layer)


def test_weights_are_shared_and_gradients_reach_them(layer):
    average = GroupAverage(layer, "flip")
    average(torch.randn(1, 2, 4, 4)).sum().backward()
    assert layer[0].weight.grad.abs().sum() > 0
    assert {id(p) for p in average.parameters()} == {id(p) for p in layer.parameters()}


def test_what_cannot_be_averaged_is_said(layer):
    x = torch.randn(1, 2, 8, 8)
    with pytest.raises(ValueError, match="kind of GroupAverage must be"):
        GroupAverage(layer, "flip", kind="covariant")
    with pytest.raises(ValueError, match="cyclic_shift has too many elements"):
        GroupAverage(layer, CyclicShift())(x)
    with pytest.raises(TypeError, match="averages tensors, got tuple"):
        GroupAverage(nn.MaxPool2d(2, return_indices=True), "flip")(x)
    with pytest.raises(Exception, match=r"flip"):
        GroupAverage(layer, "flipp")
    assert "flip" in symmetry.names()
