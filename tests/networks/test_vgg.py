import torch
from torch import nn

from ansatz.networks import VGG16, VGG19
from ansatz.spec import InputSpec


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_the_published_parameters_and_the_vector_of_25_088():
    with torch.device("meta"):
        vgg16, vgg19 = (make(InputSpec.grid(3, 224, 224), 1000) for make in (VGG16, VGG19))
    assert count(vgg16) == 138_357_544
    assert count(vgg19) == 143_667_240
    assert vgg16.classifier[0].in_features == 25_088


def test_two_small_kernels_see_what_a_large_one_sees_with_fewer_weights():
    for C in (1, 7, 64):
        with torch.device("meta"):
            small = [nn.Conv2d(C, C, 3, bias=False) for _ in range(2)]
            large = nn.Conv2d(C, C, 5, bias=False)
        assert sum(count(layer) for layer in small) == 18 * C**2
        assert count(large) == 25 * C**2
    x = torch.zeros(1, 1, 9, 9)
    x[0, 0, 4, 4] = 1
    ones = nn.Conv2d(1, 1, 3, bias=False)
    nn.init.ones_(ones.weight)
    assert int((ones(ones(x)) > 0).sum()) == 25  # one pixel reaches 5 x 5 outputs


def test_a_signal_has_the_same_layers():
    network = VGG16(InputSpec.grid(1, 64), 2, width=2, hidden=4)
    assert sum(isinstance(m, nn.Conv1d) for m in network.modules()) == 13
    assert network.classifier[0].in_features == 16 * 7


def test_the_variant_with_normalisation_has_torchvisions_names():
    with torch.device("meta"):
        keys = set(VGG16(3, 1000, batch_norm=True).state_dict())
    assert {"features.0.weight", "features.1.running_mean", "features.40.bias"} <= keys
