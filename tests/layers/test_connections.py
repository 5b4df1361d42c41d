"""Residual, highway and dense connections: layers/residual.py, highway.py, dense_block.py."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import Dense, DenseBlock, Highway, Residual, activations

NAMES = [name for name in activations.names() if name != "self_gated"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("norm", [None, "batch", "layer"])
def test_a_residual_layer_of_zeros_is_the_identity_for_every_activation(name, norm):
    layer, x = Residual(5, activation=name, norm=norm, init="zeros"), torch.randn(7, 5)
    assert_close(layer(x), x)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "tanh"])
def test_a_residual_layer_is_the_formula(name):
    layer, x = Residual(3, 5, activation=name, bias=0.3), torch.randn(7, 3)
    phi = activations.create(name)
    W, b, P = layer.branch.linear.weight, layer.branch.linear.bias, layer.skip.weight
    expected = x @ P.T + phi(x @ W.T + b) - phi(torch.zeros(()))
    assert_close(layer(x), expected)


def test_a_projection_starts_orthogonal_and_is_absent_for_equal_sizes():
    assert_close(torch.linalg.svdvals(Residual(3, 5).skip.weight), torch.ones(3))
    assert not list(Residual(4).skip.parameters())


def test_a_plain_relu_layer_can_be_the_identity_with_two_units_per_feature():
    """x = ReLU(x) - ReLU(-x): plain layers express what residual ones do."""
    d, x = 4, torch.randn(9, 4)
    first, last = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
    with torch.no_grad():
        first.weight.copy_(torch.cat([torch.eye(d), -torch.eye(d)]))
        last.weight.copy_(torch.cat([torch.eye(d), -torch.eye(d)], 1))
        first.bias.zero_(), last.bias.zero_()
    assert torch.equal(last(first(x).relu()), x)


@pytest.mark.parametrize("sizes", [(4, 4), (4, 6)])
def test_a_closed_highway_is_the_identity_and_an_open_one_the_plain_layer(sizes):
    x = torch.randn(7, sizes[0])
    closed, open_ = (Highway(*sizes, gate_bias=sign * 1e3) for sign in (-1, 1))
    assert_close(closed(x), closed.skip(x))
    assert_close(open_(x), open_.branch(x))
    if sizes[0] == sizes[1]:
        assert torch.equal(closed(x), x)


def test_a_highway_is_the_formula():
    layer, x = Highway(3, 5, activation="tanh"), torch.randn(7, 3)
    T = torch.sigmoid(layer.gate(x) - 1)
    assert_close(layer(x), T * layer.branch.linear(x).tanh() + (1 - T) * layer.skip(x))


def test_a_dense_block_grows_linearly_and_keeps_all_earlier_features():
    block, x = DenseBlock(3, 4, depth=5, activation="tanh"), torch.randn(7, 3)
    assert [layer.in_features for layer in block.layers] == [3, 7, 11, 15, 19]
    assert block.out_features == block(x).shape[1] == 3 + 5 * 4
    features = [x]
    for layer in block.layers:
        features.append(layer.linear(torch.cat(features, 1)).tanh())
    assert_close(block(x), torch.cat(features, 1))


@pytest.mark.parametrize("layer", [Dense, Residual, Highway, DenseBlock])
def test_gradients_are_right(layer):
    made = layer(3, 4, activation="softplus", norm="layer")
    assert torch.autograd.gradcheck(made, torch.randn(2, 3, requires_grad=True))


@pytest.mark.parametrize("layer", [Residual, DenseBlock])
def test_dropout_spares_what_is_carried_on(layer):
    made, x = layer(4, 4, dropout=0.9), torch.randn(200, 4)
    y = made(x)
    if layer is DenseBlock:
        assert torch.equal(y[:, :4], x)
    else:
        share = (y == x).double().mean().item()
        assert share == pytest.approx(0.9, abs=5 * (0.09 / 800) ** 0.5)


@pytest.mark.parametrize("layer", [Dense, Residual, Highway, DenseBlock])
def test_weights_come_from_the_generator_alone(layer):
    state = torch.get_rng_state()
    a, b = (layer(3, 4, generator=torch.Generator().manual_seed(2)) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_residual_adds_any_module_to_the_identity():
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, padding=1), torch.nn.ReLU())
    x = torch.randn(3, 2, 5, 5)
    assert_close(Residual(module)(x), x + module(x))
    with pytest.raises(UsageError, match="takes dropout and no other option"):
        Residual(module, 4)
    with pytest.raises(ValueError, match=r"keeps the shape of x, \(3, 2\), got \(3, 4\)"):
        Residual(torch.nn.Linear(2, 4))(torch.randn(3, 2))
