import math

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import Swish, activations, affine, gain, initialize


def test_affine_leaves_the_global_generator_alone_and_repeats_itself():
    state = torch.get_rng_state()
    a, b = (affine(5, 7, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a.weight, b.weight) and torch.equal(torch.get_rng_state(), state)
    assert type(a) is nn.Linear and not a.bias.any()
    assert affine(5, 7, bias=None).bias is None


def test_affine_without_a_generator_follows_the_global_one():
    torch.manual_seed(4)
    a = affine(5, 7)
    assert not torch.equal(a.weight, affine(5, 7).weight)
    torch.manual_seed(4)
    assert torch.equal(a.weight, affine(5, 7).weight)


def test_affine_follows_the_default_device_and_dtype():
    with torch.device("meta"):
        assert affine(2, 3).weight.is_meta
    assert affine(2, 3).weight.dtype == torch.float64


def test_initialize_walks_linear_and_convolution_layers_only():
    norm = nn.LayerNorm(4)
    net = nn.Sequential(nn.Linear(3, 4), norm, nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3))
    initialize(net, "constant", gain=0.5, bias=0.01)
    assert (net[0].weight == 0.5).all() and (net[3].weight == 0.5).all()
    assert (net[0].bias == 0.01).all() and (norm.weight == 1).all()


def test_initialize_sees_through_weight_normalisation():
    linear = weight_norm(nn.Linear(3, 4))
    initialize(linear, "orthogonal", generator=torch.Generator().manual_seed(0))
    assert_close(torch.linalg.svdvals(linear.weight), torch.ones(3))


def test_an_unknown_scheme_is_named():
    with pytest.raises(UsageError, match="unknown initialisation 'he'"):
        initialize(nn.Linear(1, 1), "he")


def test_gain_keeps_the_mean_square_of_a_normal_signal():
    z = torch.randn(400_000, generator=torch.Generator().manual_seed(0))
    for name in ("relu", "tanh", "gelu", "silu", "softplus", "elu"):
        square = activations.create(name)(z) ** 2 * gain(name) ** 2
        assert square.mean().item() == pytest.approx(1, abs=5 * square.std().item() / 632)


def test_gain_of_relus_is_the_known_one():
    assert gain("relu") == pytest.approx(math.sqrt(2))
    assert gain("leaky_relu", negative_slope=0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert gain("identity") == pytest.approx(1)
    with pytest.raises(ValueError, match="zero almost everywhere"):
        gain(nn.Threshold(100.0, 0.0))


def test_gain_leaves_the_module_as_it_was():
    phi = Swish(learned=True).float()
    gain(phi)
    assert phi.beta.dtype == torch.float32


def train(net, steps=20):
    x, y = torch.randn(32, 3), torch.randn(32, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("scheme", ["zeros", "constant"])
def test_hidden_units_that_start_equal_stay_equal(scheme):
    net = initialize(nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)), scheme, gain=0.3)
    train(net)
    W = net[0].weight
    assert_close(W, W[:1].expand_as(W))
    broken = initialize(net, "he_normal", generator=torch.Generator().manual_seed(0))
    train(broken)
    assert (net[0].weight - net[0].weight[:1]).abs().max() > 0.1


def test_a_small_positive_bias_leaves_fewer_relus_dead():
    """A unit is dead if no row turns it on; a higher bias can only turn more of them on."""
    x = 0.003 * torch.randn(2, 4)

    def dead(bias):
        layer = affine(4, 500, bias=bias, generator=torch.Generator().manual_seed(1))
        return (layer(x) <= 0).all(0)

    assert not (dead(0.01) & ~dead(0.0)).any()
    assert dead(0.01).sum() < dead(0.0).sum()


@pytest.mark.parametrize("kernel, stride, groups", [(3, 1, 1), (2, 2, 1), (4, 2, 2), (5, 2, 1)])
def test_initialize_keeps_the_mean_square_through_a_transposed_convolution(kernel, stride, groups):
    """LeCun: Var(output) = Var(input) away from the edge, whatever overlaps."""
    layer = nn.ConvTranspose2d(32, 64, kernel, stride=stride, groups=groups)
    initialize(layer, "lecun_normal", generator=torch.Generator().manual_seed(0), bias=0.5)
    assert (layer.bias == 0.5).all()
    x = torch.randn(4, 32, 12, 12, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        y = (layer(x) - 0.5)[..., 4:-4, 4:-4]
    assert (y**2).mean().item() == pytest.approx(1, rel=0.06)


def test_a_transposed_convolution_without_overlap_is_orthogonal_place_by_place():
    layer = nn.ConvTranspose1d(3, 8, 2, stride=2)
    initialize(layer, "orthogonal", generator=torch.Generator().manual_seed(0))
    for place in range(2):
        assert_close(torch.linalg.svdvals(layer.weight[..., place]), torch.ones(3))
