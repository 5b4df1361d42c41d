"""Linear and shift-equivariant: those are the convolutions, and there are no others."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import fft_convolve


def measure(generator: torch.Generator, *, size: int = 12) -> Finding:
    """A convolution shifted, and any linear map made equivariant by averaging over shifts."""
    f, h = torch.randn(2, size, generator=generator, dtype=torch.float64)
    M = torch.randn(size, size, generator=generator, dtype=torch.float64)

    def around(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        return fft_convolve(x, kernel, "circular")

    def largest(found: torch.Tensor) -> float:
        return float(found.abs().max())

    moves, whole = range(size), around(f, h)
    commute = max(largest(around(f.roll(s), h) - whole.roll(s)) for s in moves)
    backwards = max(largest(around(f.roll(s), h) - whole.roll(-s)) for s in moves)
    # The average of S⁻ᵏ M Sᵏ over all shifts commutes with them, and is M if M already did.
    average = torch.stack([M.roll((-k, -k), (0, 1)) for k in moves]).mean(0)
    convolved = around(f, average[:, 0])  # the response to an impulse at 0
    plain = around(f, M[:, 0])
    spatial = np.linalg.matrix_rank(commutator(size))
    rounding = 4 * size * 2.0**-52 * float(M.abs().max() * f.abs().sum() + h.abs().sum())
    because = "rounding: 4 n eps for sums of n products"
    checks = [
        Check(
            "largest |f shifted * h - (f * h) shifted|",
            commute,
            0.0,
            rounding,
            because,
            wrong=Wrong("shifted the other way: f(t+δ) for f(t-δ)", measured=backwards),
        ),
        Check(
            "largest difference of an equivariant map from the convolution with its response",
            largest(average @ f - convolved),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "a linear map that is not equivariant",
                measured=largest(M @ f - plain),
            ),
        ),
        Check(
            "dimension of the linear maps that commute with shifts",
            size * size - int(spatial),
            size,
            0,
            "whole numbers: as many as a kernel has entries",
            wrong=Wrong("all linear maps", predicted=size * size),
        ),
    ]
    return Finding(checks, data={"any": M.numpy(), "average": average.numpy()})


def commutator(size: int) -> np.ndarray:
    """The matrix of M -> SM - MS on vectorised M; its null space commutes with the shift."""
    S = np.roll(np.eye(size), 1, 0)
    return np.kron(S, np.eye(size)) - np.kron(np.eye(size), S.T)


def draw(paper: Figure, finding: Finding) -> None:
    """A linear map, and its average over shifts."""
    left, right = paper.subplots(1, 2)
    for axes, key, name in ((left, "any", "any linear map"), (right, "average", "equivariant")):
        M = finding.data[key]
        size = abs(M).max()
        axes.imshow(M, cmap="PuOr", vmin=-size, vmax=size)
        axes.set(xlabel=f"{name}: input", ylabel="output", xticks=[], yticks=[])
    paper.suptitle(
        "a map that commutes with shifts is one kernel, moved along: a convolution",
        x=0.01,
        ha="left",
        fontsize=9.5,
    )


claim = Claim(
    id="shift-equivariance",
    title="Linear and shift-equivariant means convolution",
    statement=(
        "A convolution commutes with shifts, and every linear map that does is the convolution "
        "with its response to an impulse: such maps have n free numbers, not n². A common slip in "
        "the proof of the first part mixes f(t-δ) with f(t+δ)."
    ),
    formula=(
        r"T f_\delta = (T f)_\delta \;\; \forall \delta \iff T f = f * h, \qquad h = T \delta_0"
    ),
    sources=("M181", "M182"),
    measure=measure,
    reference=(
        "Bronstein et al. (2021), Geometric deep learning, section 3.1. "
        "https://arxiv.org/abs/2104.13478"
    ),
    full={"size": 30},
    draw=draw,
)
