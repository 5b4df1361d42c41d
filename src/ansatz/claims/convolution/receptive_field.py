"""Receptive fields of deep convolutional networks, and the part of them that matters."""

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import GlobalPool
from ansatz.networks import receptive_field

TAPS = 3


def measure(
    generator: torch.Generator, *, depths: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
) -> Finding:
    """Stacks of layers with equal weights: pixels seen, and the influence of each."""
    pixels = 4 * max(depths) + 1
    rows, curves = [], {}
    for depth in depths:
        network = stack(depth)
        field = receptive_field(network, torch.zeros(1, 1, pixels, dtype=torch.float64))
        share = influence(network, pixels)
        place = torch.arange(pixels, dtype=torch.float64) - pixels // 2
        deviation = float((share * place**2).sum().sqrt())
        theory = (depth * (TAPS**2 - 1) / 12) ** 0.5
        rows.append([depth, field.size[0], int((share > 0).sum()), deviation, theory])
        curves[depth] = share.numpy()
    table = np.array(rows)
    deepest = rows[-1]
    x = torch.randn(1, 1, 24, generator=generator, dtype=torch.float64)
    ring, pool = nn.Sequential(nn.CircularPad1d(1), nn.AvgPool1d(TAPS, 1)), GlobalPool()
    kept, moved = ring(x), ring(x.roll(5, 2))
    checks = [
        Check(
            "largest difference of receptive_field from 1 + L (k - 1)",
            float(np.abs(table[:, 1] - 1 - table[:, 0] * (TAPS - 1)).max()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong(
                "L k, windows side by side",
                measured=float(np.abs(table[:, 1] - table[:, 0] * TAPS).max()),
            ),
        ),
        Check(
            "largest difference of it from the pixels with a gradient",
            float(np.abs(table[:, 1] - table[:, 2]).max()),
            0.0,
            0.0,
            "whole numbers",
        ),
        Check(
            f"standard deviation of the gradient over places, {deepest[0]} layers",
            deepest[3],
            deepest[4],
            1e-9,
            "exact: variances of independent steps add up; far above rounding",
            wrong=Wrong(
                "that of even influence over the field",
                predicted=((deepest[1] ** 2 - 1) / 12) ** 0.5,
            ),
        ),
        Check(
            "largest change of a layer's output, shifted back, by a shift of its input",
            float((moved.roll(-5, 2) - kept).abs().max()),
            0.0,
            1e-12,
            "rounding",
            wrong=Wrong("not shifted back: invariance", measured=float((moved - kept).abs().max())),
        ),
        Check(
            "the same of its mean over all places",
            float((pool(moved) - pool(kept)).abs().max()),
            0.0,
            1e-12,
            "rounding",
        ),
    ]
    headings = [
        "layers",
        "receptive field",
        "pixels with a gradient",
        "their deviation",
        "sqrt(2L/3)",
    ]
    return Finding(checks, Table(headings, rows), {"curves": curves})


def stack(depth: int) -> nn.Sequential:
    """Convolutions with equal weights, 1/k, that keep the length."""
    return nn.Sequential(*(nn.AvgPool1d(TAPS, stride=1, padding=1) for _ in range(depth)))


def influence(network: nn.Module, pixels: int) -> Tensor:
    """The gradient of the middle unit in each pixel."""
    x = torch.zeros(1, 1, pixels, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(network(x)[0, 0, pixels // 2], x)
    return found[0, 0]


def draw(paper: Figure, finding: Finding) -> None:
    """The influence of each pixel, over the field that is seen."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, curves = paper.subplots(), finding.data["curves"]
    deepest = max(curves)
    for depth, color in zip((2, 8, deepest), (LINEAR, MODEL, INK), strict=True):
        share = curves[depth]
        place = np.arange(len(share)) - len(share) // 2
        seen = share > 0
        axes.plot(place[seen], share[seen], color=color, label=f"{depth} layers: sees {seen.sum()}")
        axes.plot([-depth, depth], [0, 0], "|", color=color, ms=9)
    axes.set(xlabel="pixel, from the middle of the unit's field", ylabel="gradient")
    axes.set_xlim(-deepest - 2, deepest + 2)
    axes.set_title("the field grows with the depth, its effective part with the root")
    axes.legend()


claim = Claim(
    id="receptive-field",
    title="Receptive field and effective receptive field",
    statement=(
        "L layers with kernels of k pixels see 1 + L (k-1) pixels. With equal weights the "
        "influence of the pixels has the standard deviation √(L (k²-1)/12), so the effective "
        "receptive field grows only with the root of the depth. A convolution is equivariant to "
        "shifts; it is often called invariant, which only a mean over all places is."
    ),
    formula=(
        r"r_L = 1 + L (k - 1), \qquad \operatorname{Var} = L \, \frac{k^2 - 1}{12}, \qquad "
        r"r = 1 + \sum_l d_l (k_l - 1) \prod_{m < l} s_m"
    ),
    sources=("M195", "M203"),
    measure=measure,
    reference=(
        "Luo et al. (2016), Understanding the effective receptive field in deep convolutional "
        "neural networks, section 2. https://arxiv.org/abs/1701.04128"
    ),
    full={"depths": (1, 2, 4, 8, 16, 32, 64)},
    draw=draw,
)
