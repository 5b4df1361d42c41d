"""Weights and sizes of famous networks for images, and a block that is the identity."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.networks import (
    VGG16,
    VGG19,
    AlexNet,
    BasicBlock,
    DenseNet121,
    GoogLeNet,
    LeNet5,
    ResNet18,
    ResNet50,
    ResNet152,
)
from ansatz.spec import InputSpec

CHANNELS = 64


def measure(generator: torch.Generator) -> Finding:
    """Builds the networks without storage and counts; runs one block."""
    photo, digit = InputSpec.grid(3, 224, 224), InputSpec.grid(1, 28, 28)
    with torch.device("meta"):
        built = {
            "LeNet-5": (LeNet5(digit, 10), 1998),
            "AlexNet, two towers": (AlexNet(photo, 1_000, original=True), 2012),
            "VGG-16": (VGG16(photo, 1_000), 2014),
            "VGG-19": (VGG19(photo, 1_000), 2014),
            "GoogLeNet": (GoogLeNet(photo, 1_000, auxiliary=False), 2014),
            "ResNet-18": (ResNet18(photo, 1_000), 2015),
            "ResNet-50": (ResNet50(photo, 1_000), 2015),
            "ResNet-152": (ResNet152(photo, 1_000), 2015),
            "DenseNet-121": (DenseNet121(photo, 1_000), 2016),
        }
        margin = weights(LeNet5(digit, 10, padding=0))
        two, one = ([nn.Conv2d(CHANNELS, CHANNELS, k, bias=False)] * n for k, n in ((3, 2), (5, 1)))
    count = {name: weights(network) for name, (network, _) in built.items()}
    x = torch.rand(2, 4, 6, 6, generator=generator)
    checks = [
        Check(
            "weights of LeNet-5 on 28 x 28 pixels, padded to 32",
            count["LeNet-5"],
            61_706,
            0,
            "whole numbers",
            wrong=Wrong("without the padding", measured=margin),
        ),
        Check(
            "weights of AlexNet as two towers",
            count["AlexNet, two towers"],
            60_965_224,
            0,
            "whole numbers",
            wrong=Wrong("if the towers saw each other everywhere", measured=one_tower()),
        ),
        Check("weights of VGG-16", count["VGG-16"], 138_357_544, 0, "whole numbers"),
        Check("weights of VGG-19", count["VGG-19"], 143_667_240, 0, "whole numbers"),
        Check(
            "weights per pair of channels of two 3x3 kernels, which see 5x5",
            sum(weights(layer) for layer in two) / CHANNELS**2,
            18,
            0,
            "whole numbers",
            wrong=Wrong("one 5x5", measured=weights(one[0]) / CHANNELS**2),
        ),
        Check("pixels that two 3x3 kernels see", float(seen()), 25, 0, "whole numbers"),
        Check(
            "largest change of x >= 0 by a residual block with a zero last factor",
            change(x, 0.0, generator),
            0.0,
            0.0,
            "0 is added",
            wrong=Wrong("with a factor of 1", measured=change(x, 1.0, generator)),
        ),
    ]
    rows = [[name, year, count[name]] for name, (_, year) in built.items()]
    return Finding(checks, Table(["network", "year", "weights"], rows))


def weights(module: nn.Module) -> int:
    """Numbers that are trained."""
    return sum(weight.numel() for weight in module.parameters())


def one_tower() -> int:
    """AlexNet of the same channels without groups: its grouped kernels see twice as many."""
    with torch.device("meta"):
        network = AlexNet(3, 1_000, original=True)
    grouped = [m.weight for m in network.features if isinstance(m, nn.Conv2d) and m.groups == 2]
    return weights(network) + sum(kernel.numel() for kernel in grouped)


def seen() -> int:
    """Pixels with an influence on the middle output of two 3x3 kernels in a row."""
    x = torch.zeros(1, 1, 9, 9, requires_grad=True)
    ones = torch.ones(1, 1, 3, 3)
    y = nn.functional.conv2d(nn.functional.conv2d(x, ones), ones)
    (influence,) = torch.autograd.grad(y[0, 0, 2, 2], x)
    return int((influence != 0).sum())


def change(x: Tensor, factor: float, generator: torch.Generator) -> float:
    """Of x by a basic block whose last normalisation multiplies by ``factor``."""
    block = BasicBlock(2, x.shape[1], x.shape[1], generator=generator)
    nn.init.constant_(block.bn2.get_parameter("weight"), factor)
    with torch.no_grad():
        return float((block(x) - x).abs().max())


claim = Claim(
    id="architecture-counts",
    title="Weights of LeNet, AlexNet and VGG, counted",
    statement=(
        "LeNet-5 has 61,706 weights in its modern form, AlexNet as two towers 60,965,224, VGG-16 "
        "138,357,544 and VGG-19 143,667,240. Two 3x3 kernels see 5x5 pixels with 18 C^2 weights "
        "instead of 25 C^2. A residual block whose last normalisation has a zero factor leaves the "
        "output of a ReLU unchanged."
    ),
    formula=(
        r"2 \cdot 3^2 C^2 = 18\, C^2 < 25\, C^2 = 5^2 C^2, \qquad "
        r"\gamma = 0 \Rightarrow \mathrm{ReLU}(x + F(x)) = x \text{ for } x \ge 0"
    ),
    sources=("M207", "M208", "M209", "M213"),
    measure=measure,
    reference=(
        "LeCun et al. (1998), Gradient-based learning applied to document recognition; Krizhevsky, "
        "Sutskever and Hinton (2012), ImageNet classification with deep convolutional neural "
        "networks; Simonyan and Zisserman (2015). https://arxiv.org/abs/1409.1556; He et al. "
        "(2016), Deep residual learning for image recognition. https://arxiv.org/abs/1512.03385"
    ),
)
