"""Cover: how many ways a hyperplane through the origin can split points in general position."""

import itertools
from math import comb

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import version_space
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD


def measure(generator: torch.Generator, *, points: int = 6, features: int = 3) -> Finding:
    """Every labelling of random points, tried by a linear program."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    rows, counted = [], {}
    for n in range(2, features + 1):
        X = random.normal(size=(points, n))
        for s in range(max(1, n - 1), points + 1):
            counted[s, n] = count(X[:s])
            rows.append([s, n, counted[s, n], closed_form(s, n), 2**s])
    flat = random.normal(size=(4, 2))
    flat[1] = 2 * flat[0]  # two points on one line through the origin
    pairs = [(s, n) for s in range(1, 20) for n in range(1, 20)]
    checks = [
        Check(
            "largest difference of the count from the formula",
            max(abs(c - closed_form(*key)) for key, c in counted.items()),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "one term more, i ≤ n",
                measured=max(abs(c - closed_form(s, n + 1)) for (s, n), c in counted.items()),
            ),
        ),
        Check(
            "splits of 4 points in the plane",
            counted[4, 2],
            8,
            0,
            "whole numbers",
            wrong=Wrong("points that are not in general position", measured=count(flat)),
        ),
        Check(
            f"share of the labellings of {2 * features} points in {features} dimensions",
            counted[2 * features, features] / 4**features,
            0.5,
            0,
            "whole numbers over powers of two",
            wrong=Wrong("half at s = n", predicted=closed_form(features, features) / 2**features),
        ),
        Check(
            "largest difference of recurrence and closed form, s, n < 20",
            max(abs(recurrence(s, n) - closed_form(s, n)) for s, n in pairs),
            0,
            0,
            "whole numbers",
        ),
    ]
    return Finding(
        checks, Table(["s", "n", "counted", "C(s, n)", "all"], rows), {"counted": counted}
    )


def count(X: np.ndarray) -> int:
    """Labellings that some hyperplane through the origin realizes; each with its negative."""
    halves = itertools.product([-1.0, 1.0], repeat=len(X) - 1)
    return 2 * sum(not version_space(X, (1.0, *y), fit_intercept=False).empty for y in halves)


def closed_form(s: int, n: int) -> int:
    """C(s, n) = 2 Σ_{i<n} (s - 1 over i)."""
    return 2 * sum(comb(s - 1, i) for i in range(n))


def recurrence(s: int, n: int) -> int:
    """C(s + 1, n) = C(s, n) + C(s, n - 1), from C(1, n) = C(s, 1) = 2."""
    row = [0] + [2] * n  # C(1, 0..n)
    for _ in range(s - 1):
        row = [0] + [row[k] + row[k - 1] for k in range(1, n + 1)]
    return row[n]


def draw(paper: Figure, finding: Finding) -> None:
    """The share of labellings that can be realized, by points per dimension."""
    axes = paper.subplots()
    for n, colour in ((2, MODEL), (3, THIRD), (30, LINEAR), (300, INK)):
        s = np.arange(max(1, n // 2), 4 * n + 1)
        share = [closed_form(int(k), n) / 2 ** int(k) for k in s]
        axes.plot(s / n, share, color=colour, lw=1.0, label=f"n = {n}")
        found = [(k / n, c / 2**k) for (k, m), c in finding.data["counted"].items() if m == n]
        if found:
            axes.plot(*np.array(found).T, "o", color=colour, ms=5)
    axes.axvline(2, color=INK, lw=0.6, ls=":")
    axes.set(xlabel="points per dimension, s / n", ylabel="share of labellings realized")
    axes.set_title("a unit can learn any labels of n points, and half of those of 2n")
    axes.plot([], [], "o", color=INK, label="counted")
    axes.legend(loc="upper right")


claim = Claim(
    id="cover-count",
    title="Cover's count of linearly separable labellings",
    statement=(
        "Of the 2ˢ labellings of s points in general position in n dimensions, hyperplanes through "
        "the origin realize C(s, n): all of them up to s = n, half at s = 2n, and beyond that a "
        "vanishing share. A common slip is to speak of a vanishing number."
    ),
    formula=(
        r"C(s + 1, n) = C(s, n) + C(s, n - 1), \quad C(1, n) = C(s, 1) = 2 \;\Rightarrow\; "
        r"C(s, n) = 2 \sum_{i=0}^{n-1} \binom{s - 1}{i}"
    ),
    sources=("M010", "M011"),
    measure=measure,
    reference=(
        "Cover (1965), Geometrical and statistical properties of systems of linear inequalities. "
        "https://doi.org/10.1109/PGEC.1965.264137"
    ),
    full={"points": 10, "features": 5},
    draw=draw,
)
