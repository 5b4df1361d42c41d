"""The distance of a function from a class, by a linear program."""

import numpy as np
import torch
from numpy.polynomial import Chebyshev, chebyshev
from scipy.optimize import linprog

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, largest: int = 7) -> Finding:
    """The distance of xⁿ from the polynomials of degree n - 1, for n up to ``largest``."""
    degrees = list(range(1, largest + 1))
    found, least = [], []
    for n in degrees:
        x = grid(n)
        distance, _ = nearest(x, x**n, n - 1)
        found.append(distance)
        fit = least_squares(n)
        least.append(float(np.abs(fit(x) - x**n).max()))
    predicted = [2.0 ** (1 - n) for n in degrees]
    off = float(np.abs(np.array(found) - predicted).max())
    member = nearest(grid(5), grid(5) ** 4, 5)[0]
    checks = [
        Check(
            "largest |distance - 2^(1-n)| over the degrees",
            off,
            0.0,
            1e-9,
            "feasibility tolerance of the linear program, whose multipliers sum to 1; the grid "
            "holds the extrema of Tₙ",
            wrong=Wrong(
                "2^(-n), the distance on an interval of half the length for n = 1",
                measured=float(np.abs(np.array(found) - 2.0 ** -np.array(degrees)).max()),
            ),
        ),
        Check("distance of a member of the class", member, 0.0, 1e-9, "as above"),
        Check(
            "smallest excess of the least squares fit in the same norm",
            float(np.min(np.array(least[1:]) - found[1:])),
            0.0,
            1e-9,
            "as above: nothing in the class is nearer",
            ">=",
        ),
    ]
    rows = list(zip(degrees, found, predicted, least, strict=True))
    return Finding(checks, Table(["n", "distance", "2^(1-n)", "least squares"], rows))


def grid(n: int) -> np.ndarray:
    """Points of [-1, 1] among which are those where Tₙ is 1 or -1."""
    return np.cos(np.pi * np.arange(24 * n + 1) / (24 * n))


def nearest(x: np.ndarray, y: np.ndarray, degree: int) -> tuple[float, np.ndarray]:
    """min t with |y - p(x)| <= t over all polynomials p of that degree, and p's coefficients."""
    basis = chebyshev.chebvander(x, degree)  # (G, degree + 1)
    one = -np.ones((len(x), 1))
    answer = linprog(
        np.append(np.zeros(degree + 1), 1.0),
        A_ub=np.block([[basis, one], [-basis, one]]),
        b_ub=np.concatenate([y, -y]),
        bounds=[(None, None)] * (degree + 1) + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    return float(answer.fun), answer.x[:-1]


def least_squares(n: int) -> Chebyshev:
    """The polynomial of degree n - 1 that is nearest to xⁿ in the mean over [-1, 1]."""
    x = np.linspace(-1, 1, 1001)
    return Chebyshev.fit(x, x**n, n - 1, domain=(-1, 1))


def draw(paper: Figure, finding: Finding) -> None:
    """The error of the nearest polynomial swings evenly; that of least squares does not."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    n, x = 5, np.linspace(-1, 1, 401)
    distance, best = nearest(grid(n), grid(n) ** n, n - 1)
    squares = least_squares(n)
    left.plot(x, x**n - chebyshev.chebval(x, best), color=MODEL, label="nearest")
    left.plot(x, x**n - squares(x), "--", color=LINEAR, label="least squares", lw=1)
    for side in (-distance, distance):
        left.axhline(side, color=INK, lw=0.7)
    left.set(
        xlabel="x",
        ylabel="error",
        ylim=(-0.15, 0.19),
        title="x⁵ less its nearest quartic swings evenly",
    )
    left.legend(ncols=2, loc="upper center")
    rows = np.array(finding.table.rows) if finding.table else np.empty((0, 4))
    right.semilogy(rows[:, 0], rows[:, 2], color=INK, label="2^(1-n)")
    right.semilogy(rows[:, 0], rows[:, 1], "o", color=MODEL, label="linear program")
    right.semilogy(
        rows[1:, 0], rows[1:, 3], "s", color=LINEAR, fillstyle="none", label="least squares"
    )
    right.set(xlabel="degree n", ylabel="distance", title="xⁿ is 2^(1-n) away")
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="function-distance",
    title="The distance of a function from a class",
    statement=(
        "The distance of f from a class G is the smallest largest error that a member of G has. "
        "For xⁿ and the polynomials of lower degree on [-1, 1] it is 2^(1-n), and the nearest "
        "member's error swings evenly between its extremes (Chebyshev); least squares is farther."
    ),
    formula=(
        r"d_K(f, G) = \inf_{g \in G} \|f - g\|_{\infty, K}, \qquad "
        r"d_{[-1,1]}(x^n, \mathcal P_{n-1}) = 2^{1-n}"
    ),
    sources=("M065",),
    measure=measure,
    reference="Cheney (1966), Introduction to approximation theory, chapter 3.",
    full={"largest": 12},
    draw=draw,
)
