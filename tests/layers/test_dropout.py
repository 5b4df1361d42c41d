import itertools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.layers import DropConnect, GaussianNoise
from ansatz.layers.dense import drop


def test_dropout_drops_units_and_scales_by_the_keep_probability():
    """A dropped unit takes all its outgoing weights with it; dropped weights would not."""
    y = nn.Dropout(0.3)(torch.ones(2000, 5))
    kept = y != 0
    assert_close(y[kept], torch.full_like(y[kept], 1 / 0.7))
    assert kept.double().mean().item() == pytest.approx(0.7, abs=5 * (0.21 / 10_000) ** 0.5)


def test_the_mean_over_masks_of_a_linear_net_is_the_net():
    p, x = 0.3, torch.randn(4)
    first, last = nn.Linear(4, 3), nn.Linear(3, 2)
    h, mean = first(x), torch.zeros(2)
    for mask in itertools.product([0.0, 1.0], repeat=3):
        b = torch.tensor(mask)
        probability = (p ** (1 - b) * (1 - p) ** b).prod()
        mean = mean + probability * last(h * b / (1 - p))
    assert_close(mean, last(h))
    net = nn.Sequential(first, nn.Dropout(p), last)
    draws = net(x.expand(20_000, 4))
    assert ((draws.mean(0) - mean).abs() < 5 * draws.std(0) / 20_000**0.5).all()
    assert_close(net.eval()(x), mean)


def test_drop_connect_drops_weights_one_by_one_and_keeps_biases():
    layer = DropConnect(40, 50, p=0.25)
    nn.init.ones_(layer.weight)
    y = layer(torch.eye(40)) - layer.bias  # the masked weights themselves
    assert set(y.unique().round(decimals=9).tolist()) == {0.0, round(1 / 0.75, 9)}
    kept = (y != 0).double().mean().item()
    assert kept == pytest.approx(0.75, abs=5 * (0.1875 / 2000) ** 0.5)
    assert 0 < (y == 0).double().mean(0).min() and (y == 0).double().mean(0).max() < 1


def test_drop_connect_has_the_plain_layer_as_its_mean():
    layer, x = DropConnect(3, 2, p=0.5), torch.randn(3)
    mean = torch.zeros(2)
    for mask in itertools.product([0.0, 2.0], repeat=6):
        mean = mean + (layer.weight * torch.tensor(mask).view(2, 3)) @ x / 64
    assert_close(mean + layer.bias, layer.eval()(x))
    assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_gaussian_noise_on_inputs_is_ridge_in_the_mean():
    x, w, sd, n = torch.randn(4), torch.randn(4), 0.3, 50_000
    noisy = (1.0 - GaussianNoise(sd)(x.expand(n, 4)) @ w) ** 2
    expected = (1.0 - x @ w) ** 2 + sd**2 * w @ w
    assert abs(noisy.mean() - expected) < 5 * noisy.std() / n**0.5
    assert torch.equal(GaussianNoise(sd).eval()(x), x)


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan"), "0.5", True])
def test_impossible_probabilities_are_refused(p):
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        drop(p)
    if isinstance(p, float):
        with pytest.raises(ValueError, match=r"\[0, 1\)"):
            DropConnect(2, 2, p=p)


def test_noise_of_negative_size_is_refused():
    with pytest.raises(ValueError, match="got -1"):
        GaussianNoise(-1.0)
