"""The number of windows over each pixel of a convolution, with and without padding."""

import numpy as np
import torch
from torch.nn.functional import conv2d, conv_transpose2d, pad

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import pixel_utilization


def measure(generator: torch.Generator) -> Finding:
    """Counts the windows over each pixel: the library's table, the adjoint, and one by one."""
    small, large = pixel_utilization((3, 3), 2), pixel_utilization((5, 5), 3)
    ramp = torch.tensor([1, 2, 3, 2, 1])
    table = torch.tensor([[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    corner = one_by_one(5, 3)
    padded = pixel_utilization((5, 5), 3, padding=2)
    image = torch.randn(1, 1, 3, 3, generator=generator, dtype=torch.float64)
    wide = pad(image, (1, 1, 1, 1))
    kernel = torch.ones(1, 1, 3, 3, dtype=torch.float64)
    checks = [
        Check(
            "largest difference from the printed table, 3 x 3 pixels, 2 x 2 kernel",
            float((small - table).abs().max()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong("every pixel equally often", measured=float((small - 4).abs().max())),
        ),
        Check(
            "largest difference from outer(1, 2, 3, 2, 1), 5 x 5 pixels, 3 x 3 kernel",
            float((large - torch.outer(ramp, ramp)).abs().max()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong("every pixel equally often", measured=float((large - 9).abs().max())),
        ),
        Check(
            "largest difference from counting windows one by one",
            float((large - corner).abs().max()),
            0.0,
            0.0,
            "whole numbers",
        ),
        Check(
            "largest difference from the adjoint of the convolution, applied to ones",
            float((large - adjoint(5, 3)).abs().max()),
            0.0,
            0.0,
            "whole numbers",
        ),
        Check(
            "least use of a pixel after padding by k - 1",
            float(padded.min()),
            9.0,
            0.0,
            "whole numbers",
            wrong=Wrong("without padding", measured=float(large.min())),
        ),
        Check(
            "rows of a 3 x 3 image padded by 1 after a 3 x 3 kernel",
            conv2d(wide, kernel).shape[2],
            3,
            0,
            "whole numbers",
            wrong=Wrong("without padding", measured=conv2d(image, kernel).shape[2]),
        ),
    ]
    return Finding(checks, data={"without": large.numpy(), "with": padded.numpy()})


def adjoint(pixels: int, kernel: int) -> torch.Tensor:
    """The number of windows over each pixel: the transposed convolution of ones."""
    ones = torch.ones(1, 1, pixels - kernel + 1, pixels - kernel + 1, dtype=torch.float64)
    return conv_transpose2d(ones, torch.ones(1, 1, kernel, kernel, dtype=torch.float64))[0, 0]


def one_by_one(pixels: int, kernel: int) -> torch.Tensor:
    """The same, window by window."""
    found = torch.zeros(pixels, pixels, dtype=torch.float64)
    for s in range(pixels - kernel + 1):
        for t in range(pixels - kernel + 1):
            found[s : s + kernel, t : t + kernel] += 1
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """Both counts as numbers in squares."""
    left, right = paper.subplots(1, 2)
    for axes, key in ((left, "without"), (right, "with")):
        counts: np.ndarray = finding.data[key]
        axes.imshow(counts, cmap="Blues", vmin=0, vmax=14)
        for (row, column), count in np.ndenumerate(counts):
            axes.text(column, row, f"{count:.0f}", ha="center", va="center", color="black")
        axes.set(xlabel=f"{key} padding", xticks=[], yticks=[])
    paper.suptitle(
        "corners count once without padding, and as often as the middle with it",
        x=0.01,
        ha="left",
        fontsize=9.5,
    )


claim = Claim(
    id="pixel-utilization",
    title="The number of times a convolution uses each pixel",
    statement=(
        "Without padding a corner pixel enters one window and a middle pixel k²: "
        "outer(1, 2, 3, 2, 1) for 5 x 5 pixels and a 3 x 3 kernel. Padding with k - 1 zeros uses "
        "all equally often, and with (k-1)/2 keeps the size."
    ),
    formula=r"U = A^\top \mathbf{1}, \qquad U_{5,3} = u u^\top, \; u = (1, 2, 3, 2, 1)^\top",
    sources=("M186",),
    measure=measure,
    reference=(
        "Dumoulin and Visin (2016), A guide to convolution arithmetic for deep learning, section "
        "2.2. https://arxiv.org/abs/1603.07285"
    ),
    draw=draw,
)
