"""GoogLeNet has nine inception modules; a table with seven does not give its sizes."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong


class Inception(NamedTuple):
    """Channels: 1x1; 3x3 after its reduction; 5x5 after its reduction; projection of the pool."""

    one: int
    reduce3: int
    three: int
    reduce5: int
    five: int
    pool: int

    @property
    def outputs(self) -> int:
        """Channels of the four branches together."""
        return self.one + self.three + self.five + self.pool


MODULES = {
    "3a": Inception(64, 96, 128, 16, 32, 32),
    "3b": Inception(128, 128, 192, 32, 96, 64),
    "4a": Inception(192, 96, 208, 16, 48, 64),
    "4b": Inception(160, 112, 224, 24, 64, 64),
    "4c": Inception(128, 128, 256, 24, 64, 64),
    "4d": Inception(112, 144, 288, 32, 64, 64),
    "4e": Inception(256, 160, 320, 32, 128, 128),
    "5a": Inception(256, 160, 320, 32, 128, 128),
    "5b": Inception(384, 192, 384, 48, 128, 128),
}
PUBLISHED = 6_624_904  # weights of torchvision's googlenet without auxiliary heads


def measure(generator: torch.Generator) -> Finding:
    """Builds the layers without storage, counts weights, and follows the sizes."""
    printed = [name for name in MODULES if name not in ("4c", "5a")]
    first = MODULES["3a"]
    module, naive = weights(first, 192), naive_weights(first, 192)
    checks = [
        Check(
            "weights, as torchvision builds it",
            torchvision_weights(list(MODULES)),
            PUBLISHED,
            0,
            "whole numbers",
            wrong=Wrong("without 4c and 5a", measured=torchvision_weights(printed), erratum="E61"),
        ),
        Check(
            "rows before the average pool, 7 x 7 as it needs",
            rows(pools=("3a", "4a", "5a")),
            7,
            0,
            "whole numbers",
            wrong=Wrong(
                "without the pool before 5a", measured=rows(pools=("3a", "4a")), erratum="E61"
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
        [name, before, each.outputs, weights(each, before)]
        for (name, each), before in zip(MODULES.items(), inputs[:-1], strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


def conv(inputs: int, outputs: int, kernel: int, *, bias: bool = True) -> int:
    """Weights of a convolution, from a layer without storage."""
    layer = nn.Conv2d(inputs, outputs, kernel, bias=bias, device="meta")
    return sum(weight.numel() for weight in layer.parameters())


def weights(module: Inception, inputs: int) -> int:
    """Of one module as published, with biases."""
    return (
        conv(inputs, module.one, 1)
        + conv(inputs, module.reduce3, 1)
        + conv(module.reduce3, module.three, 3)
        + conv(inputs, module.reduce5, 1)
        + conv(module.reduce5, module.five, 5)
        + conv(inputs, module.pool, 1)
    )


def naive_weights(module: Inception, inputs: int) -> int:
    """Without the 1x1 convolutions before the large kernels and after the pool."""
    return (
        conv(inputs, module.one, 1) + conv(inputs, module.three, 3) + conv(inputs, module.five, 5)
    )


def torchvision_weights(modules: list[str]) -> int:
    """Batch normalisation (2 per channel) for the bias, and 3x3 for 5x5, as torchvision has it."""

    def normalized(inputs: int, outputs: int, kernel: int) -> int:
        return conv(inputs, outputs, kernel, bias=False) + 2 * outputs

    total = normalized(3, 64, 7) + normalized(64, 64, 1) + normalized(64, 192, 3)
    channels = 192
    for name in modules:
        each = MODULES[name]
        total += normalized(channels, each.one, 1)
        total += normalized(channels, each.reduce3, 1) + normalized(each.reduce3, each.three, 3)
        total += normalized(channels, each.reduce5, 1) + normalized(each.reduce5, each.five, 3)
        total += normalized(channels, each.pool, 1)
        channels = each.outputs
    return total + 1_000 * channels + 1_000


def rows(pools: tuple[str, ...]) -> int:
    """Rows of the last map for 224 x 224 pixels; a 3x3 pool of stride 2 stands before ``pools``."""

    def halve(x: Tensor) -> Tensor:
        return max_pool2d(x, 3, 2, ceil_mode=True)

    x = torch.zeros(1, 1, 224, 224)
    x = halve(conv2d(x, torch.zeros(1, 1, 7, 7), stride=2, padding=3))
    for _ in pools:
        x = halve(x)
    return x.shape[2]


claim = Claim(
    id="googlenet-table",
    title="GoogLeNet has nine inception modules",
    statement=(
        "GoogLeNet has nine inception modules and a pool before 5a; with them it has torchvision's "
        "6,624,904 weights and ends in 7 x 7 maps. Document C's table lacks 4c, 5a and that pool, "
        "and misplaces the auxiliary heads, which follow 4a and 4d. Module 3a needs 163,696 "
        "weights, and 387,296 without its 1x1 reductions."
    ),
    formula=(
        r"\#_{3a} = 163{,}696 \ll 387{,}296, \qquad \# = 6{,}624{,}904, \qquad "
        r"224 \to 112 \to 56 \to 28 \to 14 \to 7"
    ),
    sources=("E61", "M210", "M211"),
    measure=measure,
    reference="Szegedy et al. (2015), table 1. https://arxiv.org/abs/1409.4842",
    errata=(
        Erratum(
            "E61",
            "C",
            "7 modules: 3a 3b 4a 4b 4d 4e 5b",
            "9 modules: 3a 3b 4a 4b 4c 4d 4e 5a 5b, with a pool before 3a, 4a, 5a",
        ),
    ),
)
