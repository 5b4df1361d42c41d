"""A convolutional layer, entry by entry: where the sum begins and how large the output is."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import convolve, cross_correlate, output_size


def measure(generator: torch.Generator, *, size: int = 7, kernel: int = 3) -> Finding:
    """The sum with i, j from 1 beside torch's layer; reads beyond the image are counted."""
    x = torch.randn(size, size, generator=generator, dtype=torch.float64)
    w = torch.randn(kernel, kernel, generator=generator, dtype=torch.float64)
    theirs = conv2d(x[None, None], w[None, None])[0, 0]
    ours = cross_correlate(x, w)
    summed, outside = written_out(x, w, offset=1)
    printed, missing = written_out(x, w, offset=0)
    line = torch.tensor([1.0, 2, -1, 1, -3], dtype=torch.float64)
    taps = torch.tensor([1.0, 0, -1], dtype=torch.float64)
    example, flipped = cross_correlate(line, taps, "same"), convolve(line, taps, "same")
    answer = torch.tensor([-2.0, 2, 1, 2, 1], dtype=torch.float64)
    rounding = 2 * kernel**2 * 2.0**-52 * float(x.abs().max() * w.abs().sum())
    checks = [
        Check(
            "largest difference of Σ x_{s+i-1,t+j-1} w_ij from torch's layer",
            float((summed - theirs).abs().max()),
            0.0,
            rounding,
            "rounding of a sum of k² products",
            wrong=Wrong(
                "x_{s+i,t+j} with i, j from 1, zeros outside",
                measured=float((printed - theirs).abs().max()),
                erratum="E42",
            ),
        ),
        Check(
            "entries read beyond the image",
            outside,
            0,
            0,
            "whole numbers",
            wrong=Wrong("x_{s+i,t+j} with i, j from 1", measured=missing, erratum="E42"),
        ),
        Check(
            "rows of the output, n - k + 1",
            len(ours),
            output_size(size, kernel),
            0,
            "whole numbers",
            wrong=Wrong("as many as the input", predicted=size),
        ),
        Check(
            "largest difference of cross_correlate from that sum",
            float((ours - summed).abs().max()),
            0.0,
            rounding,
            "rounding of a sum of k² products",
            wrong=Wrong(
                "a true convolution, kernel flipped",
                measured=float((convolve(x, w, "valid") - summed).abs().max()),
            ),
        ),
        Check(
            "largest difference from an example by hand, same padding",
            float((example - answer).abs().max()),
            0.0,
            0.0,
            "small whole numbers are exact",
            wrong=Wrong(
                "a true convolution, all signs changed",
                measured=float((flipped - answer).abs().max()),
            ),
        ),
    ]
    return Finding(checks)


def written_out(x: Tensor, w: Tensor, *, offset: int) -> tuple[Tensor, int]:
    """Σ_{i,j=1..k} x_{s+i-offset, t+j-offset} w_ij, and how many reads fall outside."""
    n, k = len(x), len(w)
    out = torch.zeros(n - k + 1, n - k + 1, dtype=x.dtype)
    outside = 0
    for s in range(1, n - k + 2):
        for t in range(1, n - k + 2):
            for i in range(1, k + 1):
                for j in range(1, k + 1):
                    row, column = s + i - offset, t + j - offset
                    if row <= n and column <= n:
                        out[s - 1, t - 1] += x[row - 1, column - 1] * w[i - 1, j - 1]
                    else:
                        outside += 1
    return out, outside


claim = Claim(
    id="convolution-indices",
    title="The sum of a convolutional layer begins at the first pixel",
    statement=(
        "A layer of a convolutional network is the cross-correlation with x_{s+i-1,t+j-1}, i and j "
        "from 1, and has n - k + 1 rows. Often printed as x_{s+i,t+j}, which skips the first row "
        "and column and reads beyond the last."
    ),
    formula=r"y_{st} = \sum_{i=1}^k \sum_{j=1}^k x_{s+i-1,\, t+j-1}\, w_{ij}",
    sources=("E42", "M176", "M178", "M185"),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, eq. 9.6.",
    full={"size": 20, "kernel": 5},
    errata=(Erratum("E42", "Σ x_{s+i,t+j} w_ij, i, j ≥ 1", "Σ x_{s+i-1,t+j-1} w_ij"),),
)
