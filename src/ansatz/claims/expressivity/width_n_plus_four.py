"""Deep networks of width n + 4 approximate every integrable function."""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._narrow import grid, narrow_network, uniform, width
from ansatz.claims.expressivity._sequential import values

SHAPES = {1: (4, 8, 16, 32), 2: (2, 3, 4)}
LARGER = {1: (4, 8, 16, 32, 64, 128), 2: (2, 4, 8, 12)}
LIPSCHITZ = {1: (2 * np.pi,), 2: (2 * np.pi, np.pi)}  # of the target, along each axis


def measure(
    generator: torch.Generator,
    *,
    shapes: Mapping[int, Sequence[int]] = SHAPES,
    points: int = 2500,
) -> Finding:
    """The L¹ error of sums of bumps on finer and finer grids, beside its bound."""
    rows, widest = [], []
    for n, sizes in shapes.items():
        for parts in sizes:
            low, high, middle = grid(n, parts)
            h = 1 / parts
            edge = h**2 / 4
            heights = target(middle)
            network = narrow_network(low + edge, high - edge, heights, edge)
            widest.append(width(network) - n)
            x = uniform(generator, points, n, -0.25, 1.25)
            apart = 1.5**n * np.abs(values(network, x) - target(x))
            strips = np.abs(heights).sum() * (h**n - (h - 2 * edge) ** n)
            bound = h / 4 * sum(LIPSCHITZ[n]) + strips
            rows.append(
                [
                    n,
                    parts,
                    len(heights) * (2 * n + 1),
                    apart.mean(),
                    apart.std() / sqrt(points),
                    bound,
                ]
            )
    found = np.array(rows)
    ratio, error = found[:, 3] / found[:, 5], found[:, 4] / found[:, 5]
    worst = int((ratio - 4 * error).argmax())
    first = {n: found[found[:, 0] == n][0] for n in shapes}
    faster = max(
        row[3] / (first[int(row[0])][5] * (first[int(row[0])][1] / row[1]) ** 2) for row in found
    )
    checks = [
        Check(
            "largest ratio of the error and its bound",
            float(ratio[worst]),
            1.0,
            4 * float(error[worst]),
            f"4 standard errors over {points} points",
            "<=",
            wrong=Wrong("a bound that falls as h²", measured=float(faster)),
        ),
        Check(
            "widest layer less n",
            float(max(widest)),
            4.0,
            0.0,
            "whole numbers",
            "<=",
            wrong=Wrong("n + 3 units in this construction", predicted=3.0),
        ),
    ]
    head = ["n", "parts", "hidden layers", "L¹ error", "standard error", "bound"]
    return Finding(checks, Table(head, rows), {"rows": found})


def target(x: np.ndarray) -> np.ndarray:
    """sin 2πx₁ (cos πx₂) on the unit cube, 0 outside; it does not vanish at its border."""
    inside = ((x >= 0) & (x <= 1)).all(1)
    value = np.sin(2 * np.pi * x[:, 0] + 0.5)
    if x.shape[1] == 2:
        value = value * np.cos(np.pi * x[:, 1])
    found: np.ndarray = np.where(inside, value, 0.0)
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """A network of width 5 over its target, and the errors."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    left, right = paper.subplots(1, 2)
    x = np.linspace(-0.4, 1.4, 1201)
    low, high, middle = grid(1, 16)
    edge = 1 / 16**2 / 4
    network = narrow_network(low + edge, high - edge, target(middle), edge)
    left.plot(x, target(x[:, None]), color=INK, label="target")
    left.plot(x, values(network, x), color=MODEL, lw=1, label="width 5, 48 layers")
    left.set(
        xlabel="x", ylabel="f(x)", ylim=(-1.1, 1.4), title="five units, one bump after another"
    )
    left.legend(fontsize=7.5)
    rows = finding.data["rows"]
    for n, colour, mark in ((1, MODEL, "o"), (2, THIRD, "s")):
        mine = rows[rows[:, 0] == n]
        right.plot(mine[:, 1], mine[:, 5], color=colour, lw=0.9, label=f"bound, n = {n}")
        right.errorbar(
            mine[:, 1], mine[:, 3], 2 * mine[:, 4], fmt=mark, color=colour, label=f"width {n + 4}"
        )
    size = 2 / np.pi
    right.axhline(size, ls="--", color=LINEAR, lw=0.9, label="∫|f|, the best of width 1")
    right.set(xlabel="boxes along an axis", ylabel="L¹ error", title="the error falls with depth")
    right.legend(fontsize=7, loc="lower left")
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="width-n-plus-four",
    title="Width n + 4 is enough, given depth",
    statement=(
        "Rectified networks of width n + 4 come as near as one likes to any integrable function "
        "of n variables, in the mean over all of space, if they are deep enough: n units carry x, "
        "two add up positive and negative bumps, two build the next bump side by side."
    ),
    formula=(
        r"\forall f \in L^1(\mathbb R^n),\, \varepsilon > 0 \;\exists F, "
        r"\text{ width} \le n + 4: \quad \int_{\mathbb R^n} |f - F|\, dx < \varepsilon"
    ),
    sources=("M076",),
    measure=measure,
    reference="Lu et al. (2017), The expressive power of neural networks, theorem 1.",
    full={"shapes": LARGER, "points": 40_000},
    draw=draw,
)
