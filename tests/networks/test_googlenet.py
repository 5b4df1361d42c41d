import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import Branches, GoogLeNet, GoogLeNetOutputs, Inception
from ansatz.networks.googlenet import MODULES


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_module_3a_has_163_696_weights_and_387_296_without_reductions():
    b = Branches(64, 96, 128, 16, 32, 32)
    with torch.device("meta"):
        module = Inception(2, 192, b, original=True)
        naive = nn.ModuleList(
            nn.Conv2d(192, c, k) for c, k in ((b.one, 1), (b.three, 3), (b.five, 5))
        )
    assert count(module) == 163_696
    assert count(naive) == 387_296


def test_a_module_puts_its_four_views_side_by_side():
    x = torch.randn(2, 6, 5, 7)
    module = Inception(2, 6, Branches(1, 2, 3, 4, 5, 6)).eval()
    y = module(x)
    assert y.shape == (2, 1 + 3 + 5 + 6, 5, 7)
    assert_close(y[:, :1], module.branch1(x))
    assert_close(y[:, -6:], module.branch4(x))


def test_there_are_nine_modules_and_the_published_counts():
    assert list(MODULES) == ["3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"]
    with torch.device("meta"):
        assert count(GoogLeNet(3, 1000)) == 13_004_888
        assert count(GoogLeNet(3, 1000, auxiliary=False)) == 6_624_904
        # The network of the paper, as Caffe's model has it.
        assert count(GoogLeNet(3, 1000, original=True)) == 13_378_280
        assert count(GoogLeNet(3, 1000, original=True, auxiliary=False)) == 6_998_552


def test_auxiliary_heads_are_there_in_training_alone():
    network, x = GoogLeNet(1, 3, width=0.1), torch.randn(2, 1, 16, 16)
    out = network(x)
    assert isinstance(out, GoogLeNetOutputs) and all(head.shape == (2, 3) for head in out)
    called = []
    for head in (network.aux1, network.aux2):
        head.register_forward_hook(lambda *_: called.append(1))
    assert network.eval()(x).shape == (2, 3) and not called
    alone = GoogLeNet(1, 3, width=0.1, auxiliary=False)
    assert alone(x).shape == (2, 3)


def test_auxiliary_heads_hang_on_4a_and_4d():
    network, seen = GoogLeNet(1, 3, width=0.1), {}
    for name in ("inception4a", "inception4d"):
        network.get_submodule(name).register_forward_hook(
            lambda _, __, out, name=name: seen.__setitem__(name, out)
        )
    for name in ("aux1", "aux2"):
        network.get_submodule(name).register_forward_hook(
            lambda _, args, __, name=name: seen.__setitem__(name, args[0])
        )
    network(torch.randn(2, 1, 16, 16))
    assert seen["aux1"] is seen["inception4a"] and seen["aux2"] is seen["inception4d"]


def test_maps_of_224_pixels_are_28_14_and_7():
    network, sizes = GoogLeNet(1, 2, width=0.02).eval(), []
    for name in ("3a", "4a", "5b"):
        network.get_submodule(f"inception{name}").register_forward_hook(
            lambda _, __, out: sizes.append(tuple(out.shape[2:]))
        )
    with torch.no_grad():
        network(torch.randn(1, 1, 224, 224))
    assert sizes == [(28, 28), (14, 14), (7, 7)]


def test_the_original_has_real_5x5_kernels_and_runs():
    network = GoogLeNet(1, 3, width=0.05, original=True)
    assert network.inception3a.branch3[1].conv.kernel_size == (5, 5)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in network.modules())
    assert all(head.shape == (1, 3) for head in network(torch.randn(1, 1, 80, 80)))


@pytest.mark.slow
def test_it_compiles_as_one_graph():
    network = GoogLeNet(1, 3).train()
    graph = torch.compile(network, backend="eager", fullgraph=True)
    assert len(graph(torch.randn(2, 1, 15, 15))) == 3


def test_transform_input_turns_imagenets_scaling_into_halves():
    pixels, mean, std = torch.rand(2, 3, 16, 16), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    mean, std = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    plain, other = (GoogLeNet(3, 4, width=0.1, transform_input=t).eval() for t in (False, True))
    other.load_state_dict(plain.state_dict())
    assert_close(other((pixels - mean) / std), plain((pixels - 0.5) / 0.5))
    with pytest.raises(UsageError, match="red, green and blue, got 1 channel"):
        GoogLeNet(1, 4, transform_input=True)
