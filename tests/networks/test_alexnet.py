import torch
from torch import nn
from torch.testing import assert_close

from ansatz.networks import AlexNet
from ansatz.spec import InputSpec


def sizes_of(network, x):
    """Cells after each convolution and pool."""
    found = []
    for module in network.features:
        x = module(x)
        if isinstance(module, (nn.Conv2d, nn.MaxPool2d)):
            found.append(x.shape[-1])
    return found


def test_the_original_has_the_published_parameters():
    with torch.device("meta"):
        network = AlexNet(InputSpec.grid(3, 227, 227), 1000, original=True)
    assert sum(p.numel() for p in network.parameters()) == 60_965_224
    channels = [m.out_channels for m in network.features if isinstance(m, nn.Conv2d)]
    assert channels == [96, 256, 384, 384, 256]


def test_the_original_has_the_published_sizes():
    network = AlexNet(1, 2, original=True, width=6, hidden=4)
    found = sizes_of(network, torch.randn(1, 1, 227, 227))
    assert found == [55, 27, 27, 13, 13, 13, 13, 6]  # 55-27-13-13-13 and pools between


def test_the_towers_meet_in_the_third_convolution_only():
    network = AlexNet(1, 2, original=True, width=6, hidden=4)
    groups = [m.groups for m in network.features if isinstance(m, nn.Conv2d)]
    assert groups == [1, 2, 1, 2, 2]


def test_the_first_two_are_normalised_over_channels_with_the_papers_numbers():
    network = AlexNet(1, 2, original=True, width=6, hidden=4)
    norms = [m for m in network.features if type(m).__name__ == "LocalResponseNorm"]
    x = torch.rand(1, 12, 2, 2) * 30
    assert len(norms) == 2
    assert_close(norms[0](x), nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)(x))
