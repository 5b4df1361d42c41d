"""Names, shapes and graphs of torchvision: weights that people own load and mean the same."""

import json
import os
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from ansatz.networks import (
    VGG11,
    VGG16,
    AlexNet,
    DenseNet121,
    GoogLeNet,
    ResNet18,
    ResNet50,
    registry,
)
from ansatz.spec import InputSpec

LISTS = Path(os.environ.get("ANSATZ_DATA", "no data"), "state-dict-keys")
NAMES = (
    "alexnet", "densenet121", "googlenet", "resnet18", "resnet34", "resnet50", "resnet101",
    "resnet152", "vgg11", "vgg13", "vgg16", "vgg19", "vit_b_16",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_state_has_torchvisions_names_order_shapes_and_types(name):
    if not (LISTS / f"{name}.json").exists():
        pytest.skip("the lists of names are not here")
    listed = json.loads((LISTS / f"{name}.json").read_text())
    torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        network = registry.create(name, InputSpec.grid(3, 224, 224), 1000)
    found = {
        key: [list(value.shape), str(value.dtype).removeprefix("torch.")]
        for key, value in network.state_dict().items()
    }
    assert list(found.items()) == list(listed["keys"].items())
    assert sum(p.numel() for p in network.parameters()) == listed["parameters"]


class Reader:
    """The functional form of a network, from its state by name alone."""

    def __init__(self, network):
        for module in network.modules():  # away from the start, where norms do nothing
            if isinstance(module, nn.BatchNorm2d):
                for tensor in (module.weight, module.bias, module.running_mean):
                    nn.init.normal_(tensor, 0.5, 0.3)
                nn.init.uniform_(module.running_var, 0.5, 2)
        self.state = network.state_dict()

    def conv(self, name, x, **options):
        bias = self.state.get(f"{name}.bias")
        return F.conv2d(x, self.state[f"{name}.weight"], bias, **options)

    def norm(self, name, x, eps=1e-5):
        keys = ("running_mean", "running_var", "weight", "bias")
        return F.batch_norm(x, *(self.state[f"{name}.{key}"] for key in keys), eps=eps)

    def linear(self, name, x):
        return F.linear(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def has(self, name):
        return f"{name}.weight" in self.state


def agrees(network, graph, x):
    reader = Reader(network)
    assert_close(network.eval()(x), graph(reader, x))


def resnet(read, x, depths, bottleneck):
    x = F.relu(read.norm("bn1", read.conv("conv1", x, stride=2, padding=3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, depth in enumerate(depths, 1):
        for block in range(depth):
            here, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            if bottleneck:  # the stride is on the 3x3
                h = F.relu(read.norm(f"{here}.bn1", read.conv(f"{here}.conv1", x)))
                h = read.conv(f"{here}.conv2", h, stride=stride, padding=1)
                h = F.relu(read.norm(f"{here}.bn2", h))
                h = read.norm(f"{here}.bn3", read.conv(f"{here}.conv3", h))
            else:
                h = read.conv(f"{here}.conv1", x, stride=stride, padding=1)
                h = F.relu(read.norm(f"{here}.bn1", h))
                h = read.norm(f"{here}.bn2", read.conv(f"{here}.conv2", h, padding=1))
            if read.has(f"{here}.downsample.0"):
                x = read.conv(f"{here}.downsample.0", x, stride=stride)
                x = read.norm(f"{here}.downsample.1", x)
            x = F.relu(h + x)
    return read.linear("fc", x.mean((2, 3)))


def densenet(read, x, depths):
    x = read.norm("features.norm0", read.conv("features.conv0", x, stride=2, padding=3))
    x = F.max_pool2d(F.relu(x), 3, 2, 1)
    for number, depth in enumerate(depths, 1):
        for layer in range(1, depth + 1):
            here = f"features.denseblock{number}.denselayer{layer}"
            h = read.conv(f"{here}.conv1", F.relu(read.norm(f"{here}.norm1", x)))
            h = read.conv(f"{here}.conv2", F.relu(read.norm(f"{here}.norm2", h)), padding=1)
            x = torch.cat([x, h], 1)
        if number < len(depths):
            here = f"features.transition{number}"
            x = F.avg_pool2d(read.conv(f"{here}.conv", F.relu(read.norm(f"{here}.norm", x))), 2, 2)
    return read.linear("classifier", F.relu(read.norm("features.norm5", x)).mean((2, 3)))


def googlenet(read, x):
    def unit(name, x, **options):
        return F.relu(read.norm(f"{name}.bn", read.conv(f"{name}.conv", x, **options), eps=1e-3))

    def module(name, x):
        a = unit(f"{name}.branch1", x)
        b = unit(f"{name}.branch2.1", unit(f"{name}.branch2.0", x), padding=1)
        c = unit(f"{name}.branch3.1", unit(f"{name}.branch3.0", x), padding=1)
        d = unit(f"{name}.branch4.1", F.max_pool2d(x, 3, 1, 1))
        return torch.cat([a, b, c, d], 1)

    x = F.max_pool2d(unit("conv1", x, stride=2, padding=3), 3, 2, ceil_mode=True)
    x = unit("conv3", unit("conv2", x), padding=1)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = module("inception3b", module("inception3a", x))
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    for name in ("4a", "4b", "4c", "4d", "4e"):
        x = module(f"inception{name}", x)
    x = F.max_pool2d(x, 2, 2, ceil_mode=True)
    x = module("inception5b", module("inception5a", x))
    return read.linear("fc", x.mean((2, 3)))


def alexnet(read, x):
    x = F.max_pool2d(F.relu(read.conv("features.0", x, stride=4, padding=2)), 3, 2)
    x = F.max_pool2d(F.relu(read.conv("features.3", x, padding=2)), 3, 2)
    for place in (6, 8, 10):
        x = F.relu(read.conv(f"features.{place}", x, padding=1))
    x = F.adaptive_avg_pool2d(F.max_pool2d(x, 3, 2), 6).flatten(1)
    x = F.relu(read.linear("classifier.4", F.relu(read.linear("classifier.1", x))))
    return read.linear("classifier.6", x)


def vgg(read, x, places, pools):
    for place in places:
        x = F.relu(read.conv(f"features.{place}", x, padding=1))
        x = F.max_pool2d(x, 2, 2) if place + 2 in pools else x
    x = F.adaptive_avg_pool2d(x, 7).flatten(1)
    x = F.relu(read.linear("classifier.3", F.relu(read.linear("classifier.0", x))))
    return read.linear("classifier.6", x)


def test_the_graph_of_residual_networks():
    x = torch.randn(2, 3, 37, 40)
    agrees(ResNet18(3, 5, width=2), lambda r, x: resnet(r, x, (2, 2, 2, 2), False), x)
    agrees(ResNet50(3, 5, width=2), lambda r, x: resnet(r, x, (3, 4, 6, 3), True), x)


def test_the_graph_of_densenet():
    network = DenseNet121(3, 5, growth=2, blocks=(2, 3, 1, 2))
    agrees(network, lambda r, x: densenet(r, x, (2, 3, 1, 2)), torch.randn(2, 3, 45, 50))


def test_the_graph_of_googlenet():
    agrees(GoogLeNet(3, 5, width=0.1), googlenet, torch.randn(2, 3, 50, 61))


def test_the_graph_of_alexnet():
    agrees(AlexNet(3, 5, width=2, hidden=8), alexnet, torch.randn(2, 3, 80, 99))


def test_the_graph_of_vgg():
    def of16(read, x):
        return vgg(read, x, (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28), (4, 9, 16, 23, 30))

    def of11(read, x):
        return vgg(read, x, (0, 3, 6, 8, 11, 13, 16, 18), (2, 5, 10, 15, 20))

    agrees(VGG16(3, 5, width=2, hidden=8), of16, torch.randn(2, 3, 33, 64))
    agrees(VGG11(3, 5, width=2, hidden=8), of11, torch.randn(2, 3, 33, 64))


def test_dropout_stands_where_torchvision_has_it():
    def places(network):
        return [(n, m.p) for n, m in network.named_modules() if isinstance(m, nn.Dropout)]

    small = {"width": 2, "hidden": 4}
    assert places(AlexNet(3, 5, **small)) == [("classifier.0", 0.5), ("classifier.3", 0.5)]
    assert places(VGG16(3, 5, **small)) == [("classifier.2", 0.5), ("classifier.5", 0.5)]
    heads = [("aux1.dropout", 0.7), ("aux2.dropout", 0.7), ("dropout", 0.2)]
    assert places(GoogLeNet(3, 5, width=0.1)) == heads
