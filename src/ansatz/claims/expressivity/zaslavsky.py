"""The number of regions of m hyperplanes in general position."""

from itertools import product
from math import comb

import numpy as np
import torch
from scipy.optimize import linprog

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import sequential
from ansatz.networks import count_linear_regions, linear_regions

BOX = 1e5


def measure(
    generator: torch.Generator, *, inputs: int = 3, units: int = 6, by_programs: int = 3
) -> Finding:
    """Counts for every n and m by enumeration, some by 2^m linear programs, some degenerate."""
    counts, programs = {}, {}
    for n, m in product(range(1, inputs + 1), range(1, units + 1)):
        W, b = arrangement(generator, n, m)
        counts[n, m] = count(W, b)
        if m <= by_programs:
            programs[n, m] = feasible_signs(W, b)
    off = max(abs(found - zaslavsky(n, m)) for (n, m), found in counts.items())
    apart = max(abs(found - counts[key]) for key, found in programs.items())
    W, b = arrangement(generator, 2, units)
    degenerate = {
        "all through one point": (count(W, np.zeros(units)), 2 * units),
        "all parallel": (count(np.tile(W[:1], (units, 1)), np.arange(1.0, units + 1)), units + 1),
    }
    special = max(abs(found - known) for found, known in degenerate.values())
    checks = [
        Check(
            "regions of 3 lines in the plane",
            counts[2, 3],
            7,
            0,
            "whole numbers",
            wrong=Wrong("every pattern of 3 units: 2³", predicted=8),
        ),
        Check(
            f"largest distance from the sum over n up to {inputs} and m up to {units}",
            off,
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "the sum up to n - 1",
                measured=max(abs(found - zaslavsky(n - 1, m)) for (n, m), found in counts.items()),
            ),
        ),
        Check(
            "largest distance from the sign patterns that linear programs reach",
            apart,
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "all 2^m patterns were there",
                measured=max(2**m - f for (_, m), f in programs.items()),
            ),
        ),
        Check(
            "distance from 2m through a point and m + 1 in parallel",
            special,
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "the bound were always reached",
                measured=max(abs(f - zaslavsky(2, units)) for f, _ in degenerate.values()),
            ),
        ),
    ]
    rows = [[n, m, found, zaslavsky(n, m), 2**m] for (n, m), found in counts.items()]
    table = Table(["inputs n", "units m", "regions", "sum of binomials", "2^m"], rows)
    return Finding(checks, table)


def zaslavsky(n: int, m: int) -> int:
    """Σ C(m, i) for i up to min(n, m)."""
    return sum(comb(m, i) for i in range(min(n, m) + 1))


def arrangement(generator: torch.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """m random hyperplanes near the origin: in general position with probability one."""
    W = torch.randn(m, n, generator=generator, dtype=torch.float64).numpy()
    b = torch.randn(m, generator=generator, dtype=torch.float64).numpy()
    return W, b


def count(W: np.ndarray, b: np.ndarray) -> int:
    """Of a layer of rectified units, in a box that holds where they meet."""
    layer = sequential((W, b), (np.eye(len(b)), np.zeros(len(b))))
    return count_linear_regions(layer, (-BOX, BOX), by="pattern", tolerance=1e-11)


def feasible_signs(W: np.ndarray, b: np.ndarray) -> int:
    """Counts the patterns of 2^m that hold somewhere with room: max r with s(Wx + b) >= r."""
    found = 0
    for signs in product((-1.0, 1.0), repeat=len(b)):
        s = np.array(signs)
        answer = linprog(
            np.append(np.zeros(W.shape[1]), -1.0),
            A_ub=np.column_stack([-s[:, None] * W, np.ones(len(b))]),
            b_ub=s * b,
            bounds=[(-BOX, BOX)] * W.shape[1] + [(None, 1.0)],
        )
        found += bool(answer.status == 0 and -answer.fun > 1e-7)
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """Three lines make seven regions; counts against the sum and against 2^m."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, PALETTE

    left, right = paper.subplots(1, 2)
    lines = np.array([[0.3, 1.0], [1.0, 0.35], [1.0, -0.8]]), np.array([0.1, -0.2, 0.35])
    three = sequential(lines, (np.eye(3), np.zeros(3)))
    tints = (*PALETTE, INK)
    for region, colour in zip(linear_regions(three, (-1, 1)), tints, strict=True):
        left.fill(*region.vertices.T, facecolor=colour, edgecolor=INK, alpha=0.35)
    left.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="x₁", ylabel="x₂")
    left.set_title("3 lines make 7 regions, not 8")
    rows = np.array(finding.table.rows) if finding.table else np.empty((0, 5))
    for n, colour in zip(
        sorted(set(rows[:, 0])), (MODEL, PALETTE[2], PALETTE[3], INK), strict=False
    ):
        mine = rows[rows[:, 0] == n]
        right.plot(mine[:, 1], mine[:, 3], color=colour)
        right.plot(mine[:, 1], mine[:, 2], "o", color=colour, label=f"n = {n:.0f}")
    right.plot(mine[:, 1], mine[:, 4], "--", color=LINEAR, lw=0.9, label="2^m")
    right.set(xlabel="units m", ylabel="regions", title="counted, and the sum as a line")
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="zaslavsky",
    title="Regions of one layer",
    statement=(
        "m hyperplanes in general position cut n-dimensional space into the sum of the binomials "
        "C(m, 0) to C(m, n) regions, and other hyperplanes into fewer. A layer of m rectified "
        "units has as many affine pieces. Three lines make 7 regions."
    ),
    formula=r"R(n, m) \le \sum_{i=0}^{\min(n, m)} \binom{m}{i}, \qquad R(2, 3) = 7",
    sources=("M070",),
    measure=measure,
    reference="Zaslavsky (1975), Facing up to arrangements. Memoirs of the AMS 154.",
    full={"inputs": 5, "units": 8, "by_programs": 7},
    draw=draw,
)
