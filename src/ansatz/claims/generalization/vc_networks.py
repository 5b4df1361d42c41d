"""Depth alone raises the VC dimension: one weight, read L times."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.theory import log2_relu_growth, pseudo_dimension_rate, relu_vc_bound


def measure(generator: torch.Generator, *, deepest: int = 10) -> Finding:
    """Labellings of L points by a network of L tents, for every value of its one weight."""
    depths = list(range(1, deepest + 1))
    labels = [count(L) for L in depths]
    shattered = [L for L, c in zip(depths, labels, strict=True) if c == 2**L]
    bounds = [bound(L) for L in depths]
    nodepth = solve(lambda n: log2_relu_growth(n, [2], [1]))
    checks = [
        Check(
            f"labellings of {deepest} points by one weight and {deepest} layers",
            labels[-1],
            2**deepest,
            0,
            "whole numbers: every interval of the weight is tried",
            wrong=Wrong("at most N = 1 point is labelled at will", predicted=2),
        ),
        Check(
            "points labelled at will less the bound, largest over depths",
            max(L - b for L, b in zip(depths, bounds, strict=True)),
            0,
            0,
            "whole numbers",
            "<=",
            wrong=Wrong("the bound of a single layer", measured=max(shattered) - nodepth),
        ),
        Check(
            "points labelled at will, over the number of layers",
            len(shattered) / deepest,
            1.0,
            0.0,
            "whole numbers: linear in L, as in L N log N",
            wrong=Wrong("a capacity that depth leaves alone", predicted=1 / deepest),
        ),
    ]
    rows = []
    for widths in ((2, 16, 1), (2, 16, 16, 1), (10, 64, 64, 64, 1)):
        size = sum((a + 1) * b for a, b in pairwise(widths))
        rate = pseudo_dimension_rate(len(widths) - 1, size)
        rows.append(["-".join(map(str, widths)), size, round(rate), relu_vc_bound(widths)])
    table = Table(["network", "N", "L N log N", "bound with constants"], rows)
    return Finding(checks, table, {"depths": depths, "labels": labels, "bounds": bounds})


def tents(z: Tensor, layers: int) -> Tensor:
    """The tent map, two rectified units, applied ``layers`` times; dyadic numbers stay exact."""
    for _ in range(layers):
        z = 2 * z.relu() - 4 * (z - 0.5).relu()
    return z


def count(layers: int) -> int:
    """Labellings of the points 1, ½, ¼, … by the sign of T(…T(θx)) - ½, over all θ in [0, ½]."""
    points = 0.5 ** torch.arange(layers, dtype=torch.float64)
    # The middle of each interval in which no tent has its kink or crosses ½.
    intervals = 2 ** (layers + 1)
    theta = (torch.arange(intervals, dtype=torch.float64) + 0.5) / (2 * intervals)
    labels = tents(theta[:, None] * points, layers) > 0.5  # (intervals, points)
    return len(torch.unique(labels, dim=0))


def bound(layers: int) -> int:
    """The largest n with 2ⁿ at most the growth of such a network: one parameter in every layer."""
    return solve(lambda n: log2_relu_growth(n, [2] * layers + [1], [1] * (layers + 1)))


def solve(growth: Callable[[int], float]) -> int:
    """The largest n that its growth in bits still exceeds."""
    return max(n for n in range(1, 1000) if growth(n) >= n)


def draw(paper: Figure, finding: Finding) -> None:
    """Points labelled at will against depth."""
    axes = paper.subplots()
    depths = np.array(finding.data["depths"])
    found = np.log2(finding.data["labels"])
    axes.plot(depths, finding.data["bounds"], color=INK, label="bound")
    axes.plot(depths, found, "o", color=MODEL, markersize=6, label="labelled at will")
    axes.plot(
        depths,
        np.ones(len(depths)),
        "--",
        color=LINEAR,
        linewidth=0.9,
        label="trained weights",
    )
    axes.set(xlabel="layers L", ylabel="points", xticks=depths)
    logarithmic(axes.yaxis)
    axes.set_title("one trained weight, L layers of tents: L points labelled at will")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="vc-networks",
    title="The VC dimension grows with depth",
    statement=(
        "The VC and pseudo-dimension of rectified networks is of order L N log N in depth L and "
        "number N of parameters. The factor L is real: a network of L tent maps with a single "
        "trained weight gives L points all 2^L labellings."
    ),
    formula=(
        r"v = O(L N \log N), \qquad F(n) \le \prod_{i=1}^{L} 2 \Big( \frac{2 e n k_i i}{W_i} "
        r"\Big)^{W_i}"
    ),
    sources=("M355",),
    measure=measure,
    reference="Bartlett, Harvey, Liaw and Mehrabian (2019), Nearly-tight VC-dimension bounds. https://arxiv.org/abs/1703.02930",
    full={"deepest": 16},
    draw=draw,
)
