"""A transposed convolution is the adjoint of a convolution, not its inverse."""

from itertools import product

import torch
from torch.nn.functional import conv2d, conv_transpose2d

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.layers import output_size, transposed_output_size


def measure(generator: torch.Generator, *, size: int = 9) -> Finding:
    """<Ax, y> and <x, Aᵀy> for every stride, padding and dilation of a small list."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    worst, flipped = 0.0, 0.0
    for stride, padding, dilation in product((1, 2, 3), (0, 1), (1, 2)):
        x, w = normal(1, 2, size, size), normal(3, 2, 3, 3)
        y = conv2d(x, w, stride=stride, padding=padding, dilation=dilation)
        z = normal(*y.shape)
        # Rows of the input that the stride never reaches are padded back with zeros.
        rest = size - transposed_output_size(y.shape[2], 3, stride, padding, dilation)
        back, turned = (
            conv_transpose2d(z, kernel, None, stride, padding, rest, 1, dilation)
            for kernel in (w, w.flip(2, 3))
        )
        left, scale = (y * z).sum(), float(y.norm() * z.norm())
        worst = max(worst, float((left - (x * back).sum()).abs()) / scale)
        flipped = max(flipped, float((left - (x * turned).sum()).abs()) / scale)
    up = conv_transpose2d(normal(1, 4, 7, 7), normal(4, 2, 2, 2), stride=2)
    rounding = 64 * 2.0**-52 * size
    checks = [
        Check(
            "largest |<Ax, y> - <x, Aᵀy>| over |Ax| |y|",
            worst,
            0.0,
            rounding,
            "rounding: 64 n eps, in units of the product of the norms",
            wrong=Wrong("with the kernel flipped", measured=flipped),
        ),
        Check(
            "rows after a 2 x 2 up-convolution of 7 rows, stride 2",
            up.shape[2],
            transposed_output_size(7, kernel=2, stride=2),
            0,
            "whole numbers",
            wrong=Wrong(
                "the size of a convolution, ⌊(7 - 2) / 2⌋ + 1",
                predicted=output_size(7, kernel=2, stride=2),
            ),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="transposed-convolution",
    title="The transposed convolution is the adjoint",
    statement=(
        "The transposed convolution that enlarges feature maps is the adjoint of the convolution "
        "with the same kernel, stride, padding and dilation: ⟨Ax, y⟩ = ⟨x, Aᵀy⟩."
    ),
    formula=r"\langle A x, y \rangle = \langle x, A^\top y \rangle",
    sources=("M192",),
    measure=measure,
    reference=(
        "Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section "
        "4. https://arxiv.org/abs/1603.07285"
    ),
    full={"size": 30},
)
