"""A sum of d maps with d < M does not know the maximum of M numbers."""

import math

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, radius: float = 1.0, angles: int = 721) -> Finding:
    """Turns three numbers on a circle on which their first two power sums are constant."""
    middle = float(torch.rand((), generator=generator, dtype=torch.float64))
    angle = torch.linspace(0, 2 * math.pi / 3, angles, dtype=torch.float64)
    thirds = 2 * math.pi / 3 * torch.arange(3, dtype=torch.float64)
    X = middle + radius * torch.cos(angle.unsqueeze(1) + thirds)  # (A, 3)
    sums = torch.stack([(X**k).sum(1) for k in (1, 2, 3)], 1)
    largest = X.amax(1)
    still = float((sums[:, :2] - sums[:1, :2]).abs().max())
    least = float(largest.max() - largest.min()) / 2
    three = float((roots(sums) - largest).abs().max())
    checks = [
        Check(
            "largest change of two power sums along the circle",
            still,
            0.0,
            1e-13,
            "rounding of three squares",
            wrong=Wrong(
                "three sums stay too", measured=float((sums[:, 2] - sums[0, 2]).abs().max())
            ),
        ),
        Check(
            "least error of the maximum as a function of d = 2 sums",
            least,
            radius / 4,
            radius * (math.pi / angles) ** 2,
            "half the range r - r/2; the grid misses its ends by half a step squared",
            wrong=Wrong("d < M suffices", predicted=0.0),
        ),
        Check(
            "largest error of the maximum as a function of d = 3 sums",
            three,
            0.0,
            1e-6,
            "roots of a cubic; at a double root eps^(1/2)",
            wrong=Wrong("d = M is not enough", measured=least),
        ),
    ]
    data = {"angle": angle.tolist(), "largest": largest.tolist(), "sums": sums.T.tolist()}
    return Finding(checks, data=data)


def roots(sums: Tensor) -> Tensor:
    """The largest of three numbers from their three power sums: the root of their cubic."""
    p1, p2, p3 = sums.T
    e1, e2 = p1, (p1**2 - p2) / 2
    e3 = (e2 * p1 - e1 * p2 + p3) / 3
    shift = e1 / 3
    p, q = e2 - e1**2 / 3, e1 * e2 / 3 - 2 * e1**3 / 27 - e3
    scale = 2 * (-p / 3).clamp(min=0).sqrt()
    inside = (3 * q / (p * scale)).clamp(-1, 1)
    return shift + scale * torch.cos(torch.arccos(inside) / 3)


def draw(paper: Figure, finding: Finding) -> None:
    """The maximum moves while the two sums stand still."""
    from ansatz.figures.style import FOURTH, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["angle"], data["largest"], color=MODEL, label="maximum")
    names = ("Σx", "Σx²", "Σx³")
    for name, values, colour in zip(names, data["sums"], (LINEAR, LINEAR, FOURTH), strict=True):
        axes.plot(data["angle"], values, "--", color=colour, lw=1)
        axes.annotate(name, (data["angle"][-1], values[-1]))
    axes.set(xlabel="angle on the circle", ylabel="value")
    axes.set_title("two sums do not know the largest of three numbers")


claim = Claim(
    id="narrow-sums",
    title="A narrow sum does not know the maximum",
    statement=(
        "The maximum of M numbers is a function of d continuous sums only if d >= M. For M = 3 and "
        "two power sums there is a circle on which both sums are constant and the maximum is not."
    ),
    formula=(
        r"\max X \ne \rho\Big(\sum_x \varphi(x)\Big), \quad \varphi: \mathbb{R} \to \mathbb{R}^d,"
        r"\ d < M"
    ),
    sources=("M283",),
    measure=measure,
    reference=(
        "Wagstaff et al. (2019), On the limitations of representing functions on sets. "
        "https://arxiv.org/abs/1901.09006"
    ),
    full={"angles": 7_201},
    draw=draw,
)
