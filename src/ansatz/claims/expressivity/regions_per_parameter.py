"""Deep networks can have more regions for the same number of parameters."""

from itertools import pairwise
from math import comb

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import sequential
from ansatz.claims.expressivity.montufar import crossing_planes, folds
from ansatz.networks import count_linear_regions

WIDTH = 4


def measure(generator: torch.Generator, *, deepest: int = 4, random: int = 2) -> Finding:
    """Regions of folding networks of growing depth, and of one layer with as many parameters."""
    rows = []
    for depth in range(1, deepest + 1):
        deep = with_one_output(folds(2, WIDTH, depth))
        size = sum(p.numel() for p in deep.parameters())
        width = (size - 1) // 4  # 2 weights, a bias and an output weight per unit
        flat = one_layer(width)
        assert sum(p.numel() for p in flat.parameters()) <= size
        usual = [random_regions(generator, depth) for _ in range(random)]
        rows.append(
            [
                depth,
                size,
                count_linear_regions(deep, (0, 1)),
                width,
                count_linear_regions(flat, (0, 1)),
                float(np.mean(usual)),
            ]
        )
    found = np.array(rows)
    growth = found[1:, 2] / found[:-1, 2]
    flat_growth = found[1:, 4] / found[:-1, 4]
    widths = found[:, 3]
    checks = [
        Check(
            "regions of the deepest network over those of one layer of as many parameters",
            float(found[-1, 2] / found[-1, 4]),
            1.0,
            0.0,
            "whole numbers",
            ">=",
            wrong=Wrong("already at two layers", measured=float(found[1, 2] / found[1, 4])),
        ),
        Check(
            f"smallest growth of the regions when a layer of {WIDTH} units is added",
            float(growth.min()),
            4.0,
            0.0,
            "whole numbers: ⌊4/2⌋² folds of everything before",
            ">=",
            wrong=Wrong(
                "as one layer grows with as many parameters", measured=float(flat_growth.min())
            ),
        ),
        Check(
            "largest distance of one layer's regions from 1 + m + m(m - 1)/2",
            float(np.abs(found[:, 4] - [1 + m + comb(int(m), 2) for m in widths]).max()),
            0.0,
            0.0,
            "whole numbers: no layer of m units has more",
            wrong=Wrong("2^m regions", measured=float(np.abs(found[:, 4] - 2.0**widths).max())),
        ),
    ]
    head = [
        "hidden layers",
        "parameters",
        "regions, deep",
        "units of one layer",
        "regions, one layer",
    ]
    table = Table([*head, "regions, deep with random weights"], rows)
    return Finding(checks, table, {"rows": found})


def with_one_output(network: nn.Module) -> nn.Module:
    """The same hidden layers, and an output that hears all of the last one differently."""
    assert isinstance(network, nn.Sequential)
    out = sequential((np.sqrt([[2.0, 3.0, 5.0, 7.0]]), [0.0]))
    return nn.Sequential(network[:-1], out)


def one_layer(m: int) -> nn.Module:
    """m lines in general position that all meet inside the unit square."""
    if m <= WIDTH:
        planes = crossing_planes(2, m)
        return sequential(planes, (np.ones((1, m)), [0.0]))
    # Tangents of a small circle, by unequal steps, meet near it if none are parallel.
    angle = np.pi * (np.arange(m) + 0.3 * np.sin(np.arange(m) ** 2)) / m
    W = np.column_stack([np.cos(angle), np.sin(angle)])
    b = -W @ np.full(2, 0.5) + 0.003 * (1 + 0.3 * np.cos(3.0 * np.arange(m) ** 2))
    return sequential((W, b), (np.sqrt(2.0 + np.arange(m))[None], [0.0]))


def random_regions(generator: torch.Generator, depth: int) -> int:
    """Regions on [-3, 3]² of a network of the same shape with normal weights and biases."""
    sizes = [2, *[WIDTH] * depth, 1]
    maps = []
    for inside, outside in pairwise(sizes):
        W = torch.randn(outside, inside, generator=generator, dtype=torch.float64).numpy()
        b = torch.randn(outside, generator=generator, dtype=torch.float64).numpy()
        maps.append((W * np.sqrt(2 / inside), b / 2))
    return count_linear_regions(sequential(*maps), (-3, 3))


def draw(paper: Figure, finding: Finding) -> None:
    """Regions over parameters."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    axes = paper.subplots()
    rows = finding.data["rows"]
    size = np.arange(rows[0, 1], rows[-1, 1] + 1)
    m = (size - 1) // 4
    axes.plot(size, 1 + m + m * (m - 1) / 2, color=LINEAR, lw=0.9, label="one layer, at most")
    axes.plot(
        rows[:, 1], 11 * 4.0 ** (rows[:, 0] - 1), color=INK, lw=0.9, label="deep: 11 · 4^(L-1)"
    )
    axes.plot(rows[:, 1], rows[:, 2], "o", color=MODEL, label="deep, folding: counted")
    axes.plot(rows[:, 1], rows[:, 4], "s", color=LINEAR, label="one layer: counted")
    axes.plot(rows[:, 1], rows[:, 5], "v", color=THIRD, label="deep, random weights")
    for row in rows:
        axes.annotate(
            f"L = {row[0]:.0f}",
            (row[1], row[2]),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.set(xlabel="parameters", ylabel="regions on a square")
    axes.set_title("depth can buy more regions; random weights do not")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    axes.margins(x=0.1, y=0.15)
    logarithmic(axes.yaxis)


claim = Claim(
    id="regions-per-parameter",
    title="Regions per parameter, deep and shallow",
    statement=(
        "With four units a layer and two inputs each further layer of 20 parameters can multiply "
        "the number of regions by 4, while one layer with as many parameters grows like a square: "
        "from three layers on the deep network has more regions per parameter. That it can does "
        "not mean that it does: networks drawn at random show no such gain."
    ),
    formula=(
        r"R_{\text{deep}} = 11 \cdot 4^{L-1}, \quad p = 20 L - 3, \qquad "
        r"R_{\text{one layer}} \le 1 + m + \tbinom m2, \quad p = 4 m + 1"
    ),
    sources=("M079",),
    measure=measure,
    reference=(
        "Montúfar et al. (2014), On the number of linear regions of deep neural networks; Hanin "
        "and Rolnick (2019), Deep ReLU networks have surprisingly few activation patterns."
    ),
    full={"deepest": 6, "random": 20},
    draw=draw,
)
