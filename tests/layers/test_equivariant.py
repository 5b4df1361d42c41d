"""Linear maps that commute with permutations, and pools of sets."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import EquivariantLinear, SetPool

OFFSETS = torch.tensor([0, 3, 3, 7])
POOLS = {"sum": lambda s: s.sum(0), "mean": lambda s: s.mean(0), "max": lambda s: s.amax(0)}


@pytest.mark.parametrize("pool", POOLS)
def test_is_the_equation_set_by_set(pool):
    layer, x = EquivariantLinear(2, 4, pool=pool), torch.randn(7, 2)
    found = layer(x, OFFSETS)
    for part in (slice(0, 3), slice(3, 7)):
        everyone = POOLS[pool](x[part] @ layer.all.weight.T if pool != "max" else x[part])
        everyone = layer.all.weight @ everyone if pool == "max" else everyone
        assert_close(found[part], x[part] @ layer.own.weight.T + layer.own.bias + everyone)


def test_one_channel_is_lambda_i_plus_gamma_11():
    layer = EquivariantLinear(1, 1, pool="sum")
    whole = torch.tensor([0, 5])
    columns = [layer(e.unsqueeze(1), whole).squeeze(1) - layer.own.bias for e in torch.eye(5)]
    expected = layer.own.weight * torch.eye(5) + layer.all.weight * torch.ones(5, 5)
    assert_close(torch.stack(columns, 1), expected)


def test_commutes_with_permutations():
    layer, x, order = EquivariantLinear(2, 3), torch.randn(7, 2), torch.randperm(7)
    whole = torch.tensor([0, 7])
    assert_close(layer(x[order], whole), layer(x, whole)[order], rtol=0, atol=1e-12)


def test_gradients():
    layer, x = EquivariantLinear(2, 3), torch.randn(7, 2, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x, OFFSETS), x)


@pytest.mark.parametrize("pool", ["sum", "mean", "max", "attention"])
def test_a_pool_is_the_plain_one_of_each_set_and_0_of_an_empty_one(pool):
    layer, x = SetPool(2, pool), torch.randn(7, 2, requires_grad=True)
    found = layer(x, OFFSETS)
    assert_close(found[1], torch.zeros(2))
    for row, part in ((0, slice(0, 3)), (2, slice(3, 7))):
        if pool == "attention":
            weight = (x[part] @ layer.score.weight.T).softmax(0)
            expected = (weight * x[part]).sum(0)
        else:
            expected = POOLS[pool](x[part])
        assert_close(found[row], expected)
    assert torch.autograd.gradcheck(lambda x: layer(x, OFFSETS), x)


def test_wrong_options_and_shapes_are_named():
    with pytest.raises(UsageError, match="sum, mean or max"):
        EquivariantLinear(2, 2, pool="median")
    with pytest.raises(UsageError, match="pool must be one of sum"):
        SetPool(2, "median")
    with pytest.raises(ValueError, match=r"needs x of shape \(E, 2\)"):
        EquivariantLinear(2, 2)(torch.randn(5, 3), torch.tensor([0, 5]))
