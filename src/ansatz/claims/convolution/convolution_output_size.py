"""The length of the output of a convolution."""

from itertools import product

import torch
from torch.nn.functional import conv1d

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.layers import output_size


def measure(generator: torch.Generator, *, longest: int = 12) -> Finding:
    """Every length, padding, dilation, kernel and stride of a grid, against torch's shapes."""
    cases = wrong = ceiling = undilated = 0
    for x, p, d, k, s in product(range(1, longest + 1), range(3), (1, 2, 3), (1, 2, 3), (1, 2, 3)):
        if x + 2 * p < d * (k - 1) + 1:
            continue  # the kernel does not fit
        length = conv1d(torch.zeros(1, 1, x), torch.zeros(1, 1, k), None, s, p, d).shape[2]
        cases += 1
        wrong += length != output_size(x, k, s, p, d)
        ceiling += length != -(-(x + 2 * p - d * (k - 1) - 1) // s) + 1
        undilated += length != (x + 2 * p - k) // s + 1
    checks = [
        Check(
            f"cases of {cases} in which the formula is wrong",
            wrong,
            0,
            0,
            "whole numbers",
            wrong=Wrong("rounded up", measured=ceiling),
        ),
        Check(
            "the same with the dilation in it",
            wrong,
            0,
            0,
            "whole numbers",
            wrong=Wrong("without the dilation", measured=undilated),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="convolution-output-size",
    title="The output size of a convolution",
    statement=(
        "A convolution with padding p, dilation d, kernel k and stride s makes "
        "⌊(x + 2p - d(k-1) - 1)/s + 1⌋ outputs of x inputs, in every case tried."
    ),
    formula=r"\Bigl\lfloor \frac{x + 2p - d(k - 1) - 1}{s} + 1 \Bigr\rfloor",
    sources=("M187", "M188"),
    measure=measure,
    reference=(
        "Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section "
        "5.1. https://arxiv.org/abs/1603.07285"
    ),
    full={"longest": 40},
)
