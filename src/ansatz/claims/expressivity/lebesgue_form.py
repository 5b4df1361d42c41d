"""Every piecewise-linear function on the line is one hidden layer of kinks."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import lebesgue, values
from ansatz.networks import count_linear_regions


def measure(generator: torch.Generator, *, runs: int = 5, pieces: int = 20) -> Finding:
    """Random piecewise-linear functions, rewritten as networks and compared on a grid."""
    worst, missing, counted = 0.0, np.inf, []
    for _ in range(runs):
        nodes, heights = random_function(generator, pieces)
        x = np.linspace(0, 1, 401)
        truth = np.interp(x, nodes, heights)
        network = lebesgue(nodes, heights)
        bends = np.abs(np.diff(np.diff(heights) / np.diff(nodes), prepend=0.0))
        rounding = np.finfo(float).eps * pieces * (bends.sum() + np.abs(heights).max())
        worst = max(worst, float(np.abs(values(network, x) - truth).max()) / rounding)
        counted.append(count_linear_regions(network, (0, 1)))
        # Leaving out the flattest kink: the nearest function without it, in the mean.
        missing = min(missing, without_one(nodes, heights, x, truth) / rounding)
    checks = [
        Check(
            "largest error of the network, in units of eps · m · Σ|cᵢ|",
            worst,
            0.0,
            4.0,
            "rounding of slopes, kinks and a sum of m products",
            wrong=Wrong("one unit fewer", measured=missing),
        ),
        Check(
            "largest distance of the counted pieces from m",
            float(max(abs(found - pieces) for found in counted)),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong(
                "m + 1 pieces of m units: the first only carries the slope",
                measured=float(max(abs(found - pieces - 1) for found in counted)),
            ),
        ),
    ]
    table = Table(
        ["functions", "pieces", "error in rounding units", "without one unit"],
        [[runs, pieces, worst, missing]],
    )
    return Finding(checks, table, {"function": random_function(generator, 6)})


def random_function(generator: torch.Generator, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of [0, 1] that are not too close, and heights that are normal."""
    gaps = 0.3 + torch.rand(pieces, generator=generator, dtype=torch.float64).numpy()
    nodes = np.append(0.0, gaps.cumsum() / gaps.sum())
    heights = torch.randn(pieces + 1, generator=generator, dtype=torch.float64).numpy()
    return nodes, heights


def without_one(nodes: np.ndarray, heights: np.ndarray, x: np.ndarray, truth: np.ndarray) -> float:
    """The smallest of the largest errors when any one kink is missing and the rest refitted."""
    basis = np.column_stack([np.ones_like(x), x, np.maximum(x[:, None] - nodes[1:-1], 0)])
    found = np.inf
    for left_out in range(2, basis.shape[1]):
        rest = np.delete(basis, left_out, axis=1)
        fit = rest @ np.linalg.lstsq(rest, truth, rcond=None)[0]
        found = min(found, float(np.abs(fit - truth).max()))
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """A function, and the units that it is the sum of."""
    from ansatz.figures.style import INK, MODEL, PALETTE

    left, right = paper.subplots(1, 2)
    nodes, heights = finding.data["function"]
    x = np.linspace(0, 1, 601)
    bends = np.diff(np.diff(heights) / np.diff(nodes), prepend=0.0)
    for i, (node, bend) in enumerate(zip(nodes[:-1], bends, strict=True)):
        left.plot(x, bend * np.maximum(x - node, 0), color=PALETTE[i % len(PALETTE)], lw=1)
    left.set(xlabel="x", ylabel="cᵢ (x - xᵢ)₊", title="six units with one kink each")
    right.plot(x, values(lebesgue(nodes, heights), x), color=MODEL, label="their sum")
    right.plot(nodes, heights, "o", color=INK, label="nodes")
    right.set(xlabel="x", ylabel="g(x)", title="join any points exactly")
    right.legend()


claim = Claim(
    id="lebesgue-form",
    title="Lebesgue's form of a piecewise-linear function",
    statement=(
        "A continuous function on an interval with m straight pieces is a straight line plus one "
        "rectified unit per kink, m - 1 of them, with the change of slope as its weight. The refit "
        "is exact; without any one of the kinks it is not."
    ),
    formula=(
        r"g(x) = a x + b + \sum_{i=1}^{m-1} c_i (x - x_i)_+, \qquad "
        r"c_i = g'(x_i^+) - g'(x_i^-)"
    ),
    sources=("M073",),
    measure=measure,
    reference="Lebesgue (1898), Sur l'approximation des fonctions.",
    full={"runs": 30, "pieces": 40},
    draw=draw,
)
