"""A 1x1 convolution is one dense layer for every pixel."""

import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.networks import convolution, summary
from ansatz.spec import InputSpec


def measure(
    generator: torch.Generator, *, before: int = 16, after: int = 24, reduced: int = 4
) -> Finding:
    """A layer of several channels by its sum, one of 1x1 by a dense layer, and their costs."""
    size, k = 6, 3
    x = torch.randn(2, before, size, size, generator=generator, dtype=torch.float64)
    wide = convolution(2, before, after, k, padding=1, generator=generator).double()
    point = convolution(2, before, after, 1, generator=generator).double()
    dense = nn.Linear(before, after, device="meta").to_empty(device="cpu").double()
    dense.load_state_dict({name: value.flatten(1) if value.ndim > 1 else value
                           for name, value in point.state_dict().items()})  # fmt: skip
    kernels = wide.get_parameter("weight").detach().flatten(0, 1).unsqueeze(1)  # (C' C, 1, k, k)
    # Channel by channel through each of its kernels, then the sum over the input channels.
    pairs = nn.functional.conv2d(x.repeat(1, after, 1, 1), kernels, padding=1, groups=len(kernels))
    pairs = pairs.unflatten(1, (after, before))
    spec = InputSpec.grid(before, size, size)
    direct = summary(wide, spec)
    narrow = nn.Sequential(
        convolution(2, before, reduced, 1, generator=generator),
        convolution(2, reduced, after, k, padding=1, generator=generator),
    )
    with torch.no_grad():
        one_by_one = dense(x.movedim(1, -1)).movedim(-1, 1)
        found, pixels = wide(x), point(x)
    checks = [
        Check(
            "largest difference of a 1x1 convolution from a dense layer at every pixel",
            float((pixels - one_by_one).abs().max()),
            0.0,
            8 * before * EPS,
            "rounding: 8 eps times the channels",
            wrong=Wrong("a 3x3 convolution", measured=float((found - one_by_one).abs().max())),
        ),
        Check(
            "largest difference of a layer from the sum over pairs of channels",
            float((found - pairs.sum(2)).abs().max()),
            0.0,
            8 * k * k * before * EPS,
            "rounding: 8 eps times the terms of a sum; biases start at 0",
            wrong=Wrong(
                "the first channel alone", measured=float((found - pairs[:, :, 0]).abs().max())
            ),
        ),
        Check(
            "weights of the layer, k² C C' + C'",
            direct.parameters,
            k * k * before * after + after,
            0,
            "whole numbers",
            wrong=Wrong("one bias per input channel", predicted=k * k * before * after + before),
        ),
        Check(
            "multiply-adds of a 3x3 layer behind a 1x1 reduction",
            summary(narrow, spec).multiply_adds,
            size**2 * (before * reduced + k * k * reduced * after),
            0,
            "whole numbers: at every pixel C r + k² r C'",
            wrong=Wrong("without the reduction", predicted=direct.multiply_adds),
        ),
    ]
    table = Table(["layers", "multiply-adds"], [
        ["3x3", direct.multiply_adds], ["1x1, then 3x3", summary(narrow, spec).multiply_adds],
    ])  # fmt: skip
    return Finding(checks, table)


claim = Claim(
    id="pointwise-convolution",
    title="Channels, and kernels of a single pixel",
    statement=(
        "A convolution layer has a kernel for every pair of channels and sums over the input "
        "channels: k² C C' + C' weights (torch stores them as C', C, k, k). With k = 1 it is one "
        "dense layer for every pixel, which may reduce the channels before an expensive larger "
        "kernel."
    ),
    formula=(
        r"y_t = \sum_{s=1}^{C} w^{s,t} \star x_s + b_t, \qquad "
        r"\# = k^2 C C' + C', \qquad k = 1: \; y_{\cdot ij} = W x_{\cdot ij} + b"
    ),
    sources=("M189", "M191"),
    measure=measure,
    reference="Lin, Chen and Yan (2014), Network in network. https://arxiv.org/abs/1312.4400",
    full={"before": 64, "after": 96, "reduced": 16},
)
