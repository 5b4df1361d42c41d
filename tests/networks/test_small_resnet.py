import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import SmallResNet
from ansatz.networks.small_resnet import PaddedShortcut
from ansatz.spec import InputSpec


def count(network):
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("depth, millions", [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85)])
def test_the_published_counts_and_layers(depth, millions):
    with torch.device("meta"):
        network = SmallResNet(InputSpec.grid(3, 32, 32), 10, depth=depth)
        plain = SmallResNet(InputSpec.grid(3, 32, 32), 10, depth=depth, residual=False)
    assert round(count(network) / 1e6, 2) == millions
    assert count(plain) == count(network)  # shortcuts cost nothing
    layers = [m for m in network.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    assert len(layers) == depth


def test_maps_of_32_pixels_are_32_16_and_8():
    network, found = SmallResNet(1, 2, depth=8, width=2).eval(), []
    for stage in (network.layer1, network.layer2, network.layer3):
        stage.register_forward_hook(lambda _, __, out: found.append(tuple(out.shape[1:])))
    network(torch.randn(1, 1, 32, 32))
    assert found == [(2, 32, 32), (4, 16, 16), (8, 8, 8)]


@pytest.mark.parametrize("size", [(7,), (7, 6), (4, 5, 6)])
def test_the_shortcut_takes_every_other_cell_and_appends_zeros(size):
    x = torch.randn(2, 3, *size)
    y = PaddedShortcut(4, 2)(x)
    taken = x[(slice(None), slice(None), *[slice(None, None, 2)] * len(size))]
    assert_close(y[:, :3], taken)
    assert y.shape[1] == 7 and not y[:, 3:].any()


def test_the_plain_network_is_the_residual_one_without_its_sums():
    options = {"depth": 8, "width": 2}
    plain = SmallResNet(1, 2, residual=False, **options).eval()
    x = torch.randn(2, 1, 9, 9)
    h = torch.relu(plain.bn1(plain.conv1(x)))
    for stage in (plain.layer1, plain.layer2, plain.layer3):
        (block,) = stage
        h = torch.relu(block.bn2(block.conv2(torch.relu(block.bn1(block.conv1(h))))))
    assert_close(plain(x), plain.fc(h.mean((2, 3))))


def test_a_start_as_the_identity_sees_the_stem_alone():
    network, x = SmallResNet(1, 2, depth=14, width=2, zero_init_last=True), torch.randn(2, 1, 8, 8)
    h = torch.relu(network.bn1(network.conv1(x)))
    h = PaddedShortcut(4, 2)(PaddedShortcut(2, 2)(h))
    assert_close(network(x), network.fc(h.mean((2, 3))))


def test_depths_that_do_not_come_out_even_are_refused():
    with pytest.raises(UsageError, match=r"must be 6 n \+ 2 \(8, 14, 20, ...\), got 18"):
        SmallResNet(1, 2, depth=18)
    with pytest.raises(UsageError, match="needs residual=True"):
        SmallResNet(1, 2, residual=False, zero_init_last=True)
