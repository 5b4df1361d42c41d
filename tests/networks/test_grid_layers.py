import pytest
import torch
from torch import nn

from ansatz.networks import convolution

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
