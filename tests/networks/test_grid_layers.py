"""A strided 1 x 1 convolution is torch's own, computed on the cells that are left."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.networks.grid_inputs import channels_last
from ansatz.networks.grid_layers import StridedPoint, convolution
from ansatz.networks.resnet import ResNet18

CLASSES = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_it_is_torchs_own_layer_drawn_from_the_generator_alone(dimensions):
    state = torch.get_rng_state()
    a, b = (
        convolution(dimensions, 4, 6, 3, groups=2, generator=torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert type(a) is CLASSES[dimensions] and torch.equal(a.weight, b.weight)
    assert not a.bias.any()


def test_a_relu_after_it_keeps_the_mean_square():
    layer = convolution(2, 64, 512, 3)
    x = torch.randn(4, 64, 12, 12)
    ratio = torch.relu(layer(x)).square().mean() / x.square().mean()
    # The variance of a weight's sample variance over 64 * 9 * 512 draws is small.
    assert abs(ratio - 1) < 0.02


def test_it_is_torchs_convolution_values_and_gradients():
    ours, theirs = StridedPoint(3, 5, 1, stride=(2, 3)), nn.Conv2d(3, 5, 1, stride=(2, 3))
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 7, 8)
    found = []
    for layer in (ours, theirs):
        layer(x).square().sum().backward()
        found.append((layer(x), layer.weight.grad, layer.bias.grad))
    for mine, other in zip(*found, strict=True):
        assert_close(mine, other)


def test_narrow_residual_networks_use_it():
    network = ResNet18(3, 10, width=8)
    assert isinstance(network.layer2[0].downsample[0], StridedPoint)
    assert type(network.layer3[0].downsample[0]) is nn.Conv2d


def test_sixteen_channels_are_torchs_convolution_to_the_last_bit():
    layer, x = convolution(2, 16, 32, 1, stride=2, bias=False).float(), torch.randn(2, 16, 9, 9)
    expected = nn.functional.conv2d(x.float(), layer.weight, stride=2)
    assert_close(layer(x.float()), expected, rtol=0, atol=0)


def test_a_narrow_residual_network_trains_with_channels_last():
    network = channels_last(ResNet18(3, 4, width=4, stem="small").float())
    for _ in range(2):
        loss = network(channels_last(torch.randn(4, 3, 16, 16, dtype=torch.float32))).square()
        loss.mean().backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())
