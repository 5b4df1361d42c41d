"""Half-spaces of R^d label d + 1 points at will, and never d + 2."""

import itertools

import numpy as np
import torch
from scipy.optimize import linprog

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, PALETTE
from ansatz.theory import half_space_growth, sauer_bound


def measure(generator: torch.Generator, *, beyond: int = 2, sets: int = 5) -> Finding:
    """Labellings of random points, each tried by a linear program, in 1, 2 and 3 dimensions."""
    counts: dict[tuple[int, int], int] = {}
    for d in (1, 2, 3):
        for n in range(d, d + 2 + beyond):
            points = torch.randn(n, d, generator=generator, dtype=torch.float64).numpy()
            counts[d, n] = count(points)
    found = {d: max(n for e, n in counts if e == d and counts[d, n] == 2**n) for d in (1, 2, 3)}
    radon = sum(separable(*split) for d in (1, 2, 3) for split in radon_splits(d, sets, generator))
    smaller = sum(
        separable(x[1:], y[1:]) for d in (1, 2, 3) for x, y in radon_splits(d, sets, generator)
    )
    intervals = {n: count_intervals(n) for n in range(1, 9)}
    third = max(abs(c - sauer_bound(n, 3)) for n, c in intervals.items())
    checks = [
        Check(
            "largest distance of the number of labellings from 2 Σ C(n - 1, k), k <= d",
            max(abs(c - half_space_growth(n, d)) for (d, n), c in counts.items()),
            0,
            0,
            "whole numbers, each labelling decided by a linear program",
            wrong=Wrong(
                "half-spaces through the origin, k < d",
                measured=max(abs(c - half_space_growth(n, d - 1)) for (d, n), c in counts.items()),
            ),
        ),
        Check(
            "most points with all 2ⁿ labellings less the dimension, d = 1, 2, 3",
            sum(found[d] - d for d in found) / 3,
            1,
            0,
            "whole numbers",
            wrong=Wrong("a VC dimension of d", predicted=0),
        ),
        Check(
            f"Radon's labelling of d + 2 points separated, of {3 * sets} sets",
            radon,
            0,
            0,
            "whole numbers: the hulls of its two parts meet",
            wrong=Wrong("the same with one point less", measured=smaller),
        ),
        Check(
            "largest share of Sauer's bound, with v = d + 1, that is used",
            max(c / sauer_bound(n, d + 1) for (d, n), c in counts.items()),
            1.0,
            0.0,
            "a bound on whole numbers",
            "<=",
            wrong=Wrong(
                "the bound with v = d",
                measured=max(c / sauer_bound(n, d) for (d, n), c in counts.items()),
            ),
        ),
        Check(
            "largest distance of the labellings by intervals from Sauer's bound with v = 2",
            max(abs(c - sauer_bound(n, 2)) for n, c in intervals.items()),
            0,
            0,
            "whole numbers: intervals attain the bound",
            wrong=Wrong("v = 3", measured=third),
        ),
    ]  # fmt: skip
    table = Table(
        ["dimension", "points", "labellings", "2ⁿ", "Cover", "Sauer"],
        [
            [d, n, c, 2**n, half_space_growth(n, d), sauer_bound(n, d + 1)]
            for (d, n), c in counts.items()
        ],
    )
    return Finding(checks, table, {"counts": counts})


def separable(points: np.ndarray, labels: np.ndarray) -> bool:
    """Whether a half-space has exactly the points labelled 1: y (w·x + b) >= 1 for some w, b."""
    signed = labels[:, None] * np.column_stack([points, np.ones(len(points))])
    answer = linprog(
        np.zeros(signed.shape[1]), A_ub=-signed, b_ub=-np.ones(len(signed)), bounds=(None, None)
    )
    return bool(answer.status == 0)


def count(points: np.ndarray) -> int:
    """Separable labellings; the mirror image of one is another."""
    halves = itertools.product((-1.0, 1.0), repeat=len(points) - 1)
    return 2 * sum(separable(points, np.array([1.0, *half])) for half in halves)


def radon_splits(
    d: int, sets: int, generator: torch.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sets of d + 2 points with the labels that no half-space has: signs of an affine relation."""
    found = []
    for _ in range(sets):
        x = torch.randn(d + 2, d, generator=generator, dtype=torch.float64).numpy()
        relation = np.linalg.svd(np.vstack([x.T, np.ones(d + 2)]))[2][-1]
        found.append((x, np.sign(relation)))
    return found


def count_intervals(n: int) -> int:
    """Labellings of n points on a line by one interval, the empty one included."""
    ends = itertools.combinations_with_replacement(range(n + 1), 2)
    return len({tuple(a <= i < b for i in range(n)) for a, b in ends})


def draw(paper: Figure, finding: Finding) -> None:
    """Labellings against points, beside 2ⁿ."""
    axes = paper.subplots()
    counts = finding.data["counts"]
    most = max(n for _, n in counts)
    n = np.arange(1, most + 1)
    axes.plot(n, 2.0**n, "--", color=LINEAR, linewidth=0.9, label="2ⁿ: all of them")
    for d, colour in zip((1, 2, 3), (PALETTE[0], PALETTE[2], PALETTE[3]), strict=True):
        axes.plot(n, [half_space_growth(int(k), d) for k in n], color=colour, linewidth=0.9)
        here = [(k, c) for (e, k), c in counts.items() if e == d]
        axes.plot(
            *zip(*here, strict=True),
            "o",
            color=colour,
            markersize=5,
            label=f"half-spaces of R{'¹²³'[d - 1]}",
        )
    axes.plot([], [], color=INK, linewidth=0.9, label="Cover's count")
    logarithmic(axes.yaxis)
    axes.set(xlabel="points", ylabel="labellings", xticks=n)
    axes.set_title("half-spaces of d dimensions leave 2ⁿ behind after d + 1 points")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="vc-dimension",
    title="Half-spaces have VC dimension d + 1",
    statement=(
        "Half-spaces give n points in general position 2 Σₖ C(n − 1, k), k ≤ d, labellings: all of "
        "them up to n = d + 1, the VC dimension, and polynomially many beyond, as Sauer's lemma "
        "says of every class. Intervals, of VC dimension 2, attain his bound."
    ),
    formula=(
        r"F(n) = 2 \sum_{k=0}^{d} \binom{n-1}{k} \le \sum_{k=0}^{v} \binom{n}{k}, \qquad "
        r"v = \max \{ n : F(n) = 2^n \} = d + 1"
    ),
    sources=("M352", "M353"),
    measure=measure,
    reference=(
        "Cover (1965), Geometrical and statistical properties of systems of linear inequalities. "
        "https://doi.org/10.1109/PGEC.1965.264137"
    ),
    full={"beyond": 5, "sets": 100},
    draw=draw,
)
