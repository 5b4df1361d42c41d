"""The n-fold tent map has 2^n pieces: 3n + 1 nodes in depth, exponentially many side by side."""

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import lebesgue, sequential, values
from ansatz.networks import count_linear_regions


def measure(generator: torch.Generator, *, largest: int = 8) -> Finding:
    """Pieces of the deep network, its nodes, and the units that one hidden layer needs."""
    folds = range(1, largest + 1)
    deep = {n: tent(n) for n in folds}
    pieces = {n: count_linear_regions(network, (0, 1)) for n, network in deep.items()}
    nodes = {n: count_nodes(network) for n, network in deep.items()}
    x = torch.rand(500, generator=generator, dtype=torch.float64).numpy()
    far = max(float(np.abs(values(deep[n], x) - iterate(x, n)).max()) / 2**n for n in folds)
    corners = np.arange(2**largest + 1) / 2**largest
    flat = lebesgue(corners, iterate(corners, largest))  # one unit per piece
    same = float(np.abs(values(flat, x) - iterate(x, largest)).max())
    most = max(shallow_pieces(generator, m) - (m + 1) for m in (1, 2, 4, 8, 16, 32))
    eps = np.finfo(float).eps
    checks = [
        Check(
            f"largest distance of the pieces from 2^n, n up to {largest}",
            max(abs(found - 2**n) for n, found in pieces.items()),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "2n pieces", measured=max(abs(found - 2 * n) for n, found in pieces.items())
            ),
        ),
        Check(
            "largest distance of the nodes from 3n + 1",
            max(abs(found - 3 * n - 1) for n, found in nodes.items()),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "three units a fold, which it takes to be 0 outside [0, 1] as well",
                measured=max(abs(found - 4 * n - 1) for n, found in nodes.items()),
            ),
        ),
        Check(
            "largest distance from the iterated map, over 2^n",
            far,
            0.0,
            4 * eps * largest,
            "rounding of each fold, doubled by each that follows",
            wrong=Wrong(
                "a fold too many",
                measured=float(np.abs(values(deep[2], x) - iterate(x, 1)).max()) / 4,
            ),
        ),
        Check(
            f"largest distance of one hidden layer of {2**largest} units",
            same,
            0.0,
            eps * 2**largest * 2 * 4**largest,
            "rounding of a sum of 2^n kinks of size 2^(n+1)",
        ),
        Check(
            "largest excess of a hidden layer of m units over m + 1 pieces",
            most,
            0,
            0,
            "whole numbers: each unit has one kink, so 2^n pieces take 2^n - 1 of them",
            "<=",
            wrong=Wrong("m pieces at most", measured=most + 1),
        ),
    ]
    rows = [[n, pieces[n], nodes[n], 2**n - 1] for n in folds]
    table = Table(["folds n", "pieces", "nodes in depth", "units side by side"], rows)
    return Finding(checks, table)


def iterate(x: np.ndarray, n: int) -> np.ndarray:
    """m(m(... x)), with m(x) = 2x below 1/2 and 2 - 2x above."""
    for _ in range(n):
        x = np.where(x < 0.5, 2 * x, 2 - 2 * x)
    return x


def tent(n: int) -> nn.Module:
    """n copies of m(x) = 2(x)₊ - 4(x - 1/2)₊, each two units and one that adds them."""
    maps: list[nn.Module] = []
    for _ in range(n):
        maps.append(sequential(([[1.0], [1.0]], [0.0, -0.5]), ([[2.0, -4.0]], [0.0])))
    return nn.Sequential(*maps)


def count_nodes(network: nn.Module) -> int:
    """The input, and the outputs of every affine map."""
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    return layers[0].in_features + sum(layer.out_features for layer in layers)


def shallow_pieces(generator: torch.Generator, m: int) -> int:
    """Pieces on the line of a random hidden layer of m units, all of whose kinks lie in the box."""
    W, b, c = torch.randn(3, m, generator=generator, dtype=torch.float64).numpy()
    return count_linear_regions(sequential((W[:, None], W * b), (c[None], [0.0])), (-10, 10))


def draw(paper: Figure, finding: Finding) -> None:
    """Three folds, and their cost in deep and in shallow networks."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL, THIRD

    left, right = paper.subplots(1, 2)
    x = np.linspace(0, 1, 1025)
    for k, colour, width in ((1, LINEAR, 1.0), (2, THIRD, 1.0), (4, MODEL, 1.2)):
        left.plot(x, values(tent(k), x), color=colour, lw=width, label=f"{k} fold{'s' * (k > 1)}")
    left.set(xlabel="x", ylabel="tent map", ylim=(0, 1.28), title="each fold doubles the pieces")
    left.legend(ncols=3, fontsize=7.5, loc="upper center")
    rows = np.array(finding.table.rows) if finding.table else np.empty((0, 4))
    n = rows[:, 0]
    right.plot(n, 2**n, color=MODEL, label="2^n")
    right.plot(n, rows[:, 1], "o", color=MODEL, label="pieces, counted")
    right.plot(n, 2**n - 1, "--", color=LINEAR, lw=0.9, label="units, one layer")
    right.plot(n, rows[:, 2], "s-", color=THIRD, label="nodes, deep: 3n + 1")
    right.set(xlabel="folds n", ylabel="number", title="depth pays 3 nodes for a doubling")
    right.legend(fontsize=7.5)
    logarithmic(right.yaxis)


claim = Claim(
    id="tent-map",
    title="Depth separation by the tent map",
    statement=(
        "The tent map 2x, 2 - 2x composed n times has exactly 2^n straight pieces on [0, 1]; a "
        "deep network of width 2 and 3n + 1 nodes computes it. One hidden layer has at most one "
        "piece more than units, so it needs 2^n - 1. Two units a fold suffice on [0, 1]; a map "
        "that is 0 outside takes three."
    ),
    formula=(
        r"m(x) = 2 (x)_+ - 4 (x - \tfrac12)_+, \qquad "
        r"\#\text{pieces}(m^{(n)}) = 2^n, \qquad 3n + 1 \ll 2^n - 1"
    ),
    sources=("M075",),
    measure=measure,
    reference=(
        "Telgarsky (2016), Benefits of depth in neural networks. https://arxiv.org/abs/1602.04485"
    ),
    full={"largest": 12},
    draw=draw,
)
