"""GoogLeNet has nine inception modules; a table with seven does not give its sizes."""

import torch
from torch import nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.convolution.architecture_counts import weights
from ansatz.networks import GoogLeNet, Inception
from ansatz.networks.googlenet import MODULES, AuxiliaryHead

PUBLISHED = 6_624_904  # weights of torchvision's googlenet without auxiliary heads
WITH_HEADS = 13_004_888


def measure(generator: torch.Generator) -> Finding:
    """Builds the network without storage, counts its weights, and follows its sizes."""
    with torch.device("meta"):
        whole, alone = (GoogLeNet(3, 1_000, auxiliary=heads) for heads in (True, False))
    # 4c and 5a leave the channels as they are, so that the network fits together without them.
    missing = sum(weights(alone.get_submodule(f"inception{name}")) for name in ("4c", "5a"))
    first = MODULES["3a"]
    module, naive = published_weights("3a", 192), naive_weights("3a", 192)
    checks = [
        Check(
            "weights, as torchvision builds it",
            weights(alone),
            PUBLISHED,
            0,
            "whole numbers",
            wrong=Wrong("without 4c and 5a", measured=weights(alone) - missing, erratum="E61"),
        ),
        Check(
            "weights with its auxiliary heads after 4a and 4d",
            weights(alone) + head_weights("4a") + head_weights("4d"),
            WITH_HEADS,
            0,
            "whole numbers",
            wrong=Wrong(
                "heads after 4b and 4e",
                measured=weights(alone) + head_weights("4b") + head_weights("4e"),
                erratum="E61",
            ),
        ),
        Check("weights of the network itself", weights(whole), WITH_HEADS, 0, "whole numbers"),
        Check(
            "rows before the average pool, 7 x 7 as it needs",
            rows(generator, pooled=True),
            7,
            0,
            "whole numbers",
            wrong=Wrong(
                "without the pool before 5a", measured=rows(generator, pooled=False), erratum="E61"
            ),
        ),
        Check(
            "weights of module 3a",
            module,
            163_696,
            0,
            "whole numbers",
            wrong=Wrong("without its reductions", measured=naive),
        ),
        Check("weights without its reductions", naive, 387_296, 0, "whole numbers"),
        Check("channels of module 3a", first.outputs, 256, 0, "whole numbers"),
    ]
    inputs = [192, *(each.outputs for each in MODULES.values())]
    table = Table(["module", "inputs", "outputs", "weights"], [
        [name, before, each.outputs, published_weights(name, before)]
        for (name, each), before in zip(MODULES.items(), inputs[:-1], strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


def head_weights(module: str) -> int:
    """Of an auxiliary head on the maps of a module."""
    with torch.device("meta"):
        return weights(AuxiliaryHead(2, MODULES[module].outputs, 1_000, (128, 1_024)))


def published_weights(name: str, inputs: int) -> int:
    """Of one module as published: 5x5 kernels and biases."""
    with torch.device("meta"):
        return weights(Inception(2, inputs, MODULES[name], original=True))


def naive_weights(name: str, inputs: int) -> int:
    """Without the 1x1 convolutions before the large kernels and after the pool."""
    each = MODULES[name]
    with torch.device("meta"):
        branches = [nn.Conv2d(inputs, each.one, 1), nn.Conv2d(inputs, each.three, 3)]
        return sum(weights(conv) for conv in (*branches, nn.Conv2d(inputs, each.five, 5)))


def rows(generator: torch.Generator, *, pooled: bool) -> int:
    """Rows of the last map for 224 x 224 pixels, with and without the pool before 5a."""
    network = GoogLeNet(3, 1, auxiliary=False, width=1 / 64, generator=generator).eval()
    sizes = list[int]()
    if not pooled:
        network.maxpool4 = nn.Identity()
    last = network.get_submodule("inception5b")
    last.register_forward_hook(lambda _, __, maps: sizes.append(maps.shape[2]))
    with torch.no_grad():
        network(torch.zeros(1, 3, 224, 224))
    return sizes[0]


claim = Claim(
    id="googlenet-table",
    title="GoogLeNet has nine inception modules",
    statement=(
        "GoogLeNet has nine inception modules and a pool before 5a; with them it has torchvision's "
        "6,624,904 weights and ends in 7 x 7 maps. Summaries of its table often lack 4c, 5a and "
        "that pool, or misplace the auxiliary heads, which follow 4a and 4d. Module 3a needs "
        "163,696 weights, and 387,296 without its 1x1 reductions."
    ),
    formula=(
        r"\#_{3a} = 163{,}696 \ll 387{,}296, \qquad \# = 6{,}624{,}904, \qquad "
        r"224 \to 112 \to 56 \to 28 \to 14 \to 7"
    ),
    sources=("E61", "M210", "M211", "M212"),
    measure=measure,
    reference=(
        "Szegedy et al. (2015), Going deeper with convolutions, table 1. "
        "https://arxiv.org/abs/1409.4842"
    ),
    errata=(
        Erratum(
            "E61",
            "7 modules: 3a 3b 4a 4b 4d 4e 5b",
            "9 modules: 3a 3b 4a 4b 4c 4d 4e 5a 5b, with a pool before 3a, 4a, 5a",
        ),
    ),
)
