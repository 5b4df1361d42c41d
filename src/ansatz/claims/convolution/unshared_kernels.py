"""A locally connected layer is a convolution with a kernel of its own at every place."""

import math

import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.layers import LocallyConnected


def measure(generator: torch.Generator, *, size: int = 12, maps: int = 4) -> Finding:
    """The layer with equal kernels beside torch's convolution, and the weights that it has."""
    conv = nn.Conv2d(3, maps, 3, dtype=torch.float64)
    layer = LocallyConnected(3, maps, 3, size=(size, size), generator=generator).double()
    x = torch.randn(5, 3, size, size, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        apart = float((layer(x) - conv(x)).abs().max())
        layer.weight.copy_(conv.weight.flatten(1).T.expand_as(layer.weight))
        assert layer.bias is not None and conv.bias is not None
        layer.bias.copy_(conv.bias.expand_as(layer.bias))
        tied = float((layer(x) - conv(x)).abs().max())
    with torch.device("meta"):
        image = LocallyConnected(1, 1, 3, size=(96, 96))
        million = LocallyConnected(1, 12, 3, size=(96, 96))
    counts = [sum(p.numel() for p in each.parameters()) for each in (image, million)]
    shared = sum(p.numel() for p in nn.Conv2d(1, 1, 3).parameters())
    checks = [
        Check(
            "largest difference from a convolution when all kernels are tied",
            tied,
            0.0,
            64 * 27 * EPS,
            "rounding: 64 eps for sums of 27 products",
            wrong=Wrong("kernels of their own", measured=apart),
        ),
        Check(
            "weights per place, over those of a convolution: 96 x 96, one map each way",
            counts[0] / shared,
            94 * 94,
            0,
            "whole numbers: one kernel for each place where it fits",
            wrong=Wrong("the places of the image, 96²", predicted=96 * 96),
        ),
        Check(
            "order of the weights with 12 maps: log10",
            math.log10(counts[1]),
            6.0,
            0.1,
            "'of the order of a million' holds for 12 maps of 3 x 3 kernels, not for any",
            wrong=Wrong("with one map", measured=math.log10(counts[0])),
        ),
    ]
    table = Table(["maps", "locally connected", "convolution"], [
        [m, 94 * 94 * m * 10, m * 10] for m in (1, 4, 12, 32)
    ])  # fmt: skip
    return Finding(checks, table)


claim = Claim(
    id="unshared-kernels",
    title="Local connection without shared weights",
    statement=(
        "A locally connected layer equals a convolution when its kernels are tied; untied it has "
        "as many kernels as places. On 96 x 96 pixels 3 x 3 kernels have 8,836 places: a million "
        "weights need 12 maps. The often quoted figures depend on kernel and maps."
    ),
    formula=r"\# = S\, C' (C k^2 + 1), \qquad S = (n - k + 1)^2",
    sources=("M429",),
    measure=measure,
    reference="LeCun (1989), Generalization and network design strategies.",
    full={"size": 40, "maps": 16},
)
