import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.networks.grid_inputs import channels_last
from ansatz.spec import InputSpec


@pytest.mark.parametrize("size, format", [((5, 6), torch.channels_last),
                                          ((4, 5, 6), torch.channels_last_3d)])  # fmt: skip
def test_the_channels_of_a_cell_lie_side_by_side(size, format):
    x = torch.randn(2, 3, *size)
    found = channels_last(x)
    assert found.stride(1) == 1 and found.is_contiguous(memory_format=format)
    assert_close(found, x, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 7)])
def test_rows_and_signals_stay_as_they_are(shape):
    x = torch.randn(shape)
    assert channels_last(x) is x


@pytest.mark.parametrize("size", [(12,), (12, 12), (8, 8, 8)])
def test_a_network_computes_the_same_in_either_order(size):
    network = networks.create("small_resnet", InputSpec.grid(2, *size), 3, depth=8, width=4)
    x = torch.randn(3, 2, *size)
    expected = network.double().eval()(x).detach()
    assert_close(channels_last(network)(channels_last(x)), expected)


def test_the_kernels_lie_as_the_examples_do_and_keep_their_names():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(2))
    network(torch.zeros(1, 3, 5, 5))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    after = channels_last(network).state_dict()
    assert after["0.weight"].stride(1) == 1
    assert_close(after, before, rtol=0, atol=0)


def test_a_network_without_convolutions_stays_as_it_is():
    network = nn.Linear(3, 2)
    stride = network.weight.stride()
    assert channels_last(network).weight.stride() == stride
