"""Bernstein's polynomials prove Weierstrass' theorem, with a rate."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import stats

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure

GRID = np.linspace(0, 1, 201)


def measure(generator: torch.Generator, *, degrees: Sequence[int] = (16, 64, 256, 1024)) -> Finding:
    """Errors for a kink, for random Lipschitz functions, and for a smooth function."""
    n = np.asarray(degrees, dtype=np.float64)
    error = np.array([np.abs(bernstein(kink, k) - kink(GRID)).max() for k in degrees])
    exact = np.array([math.exp(_log_choose(k) - (k + 1) * math.log(2)) for k in degrees])
    slope = float(np.log(error[-1] / error[0]) / np.log(n[-1] / n[0]))
    nodes = np.linspace(0, 1, 12)
    ratio = float((error * 2 * np.sqrt(n)).max())
    for _ in range(10):  # straight lines of slopes up to 1
        steps = 2 * torch.rand(11, generator=generator, dtype=torch.float64).numpy() - 1
        heights = np.append(0, steps.cumsum()) / 11
        found = bernstein(partial(np.interp, xp=nodes, fp=heights), degrees[0])
        far = np.abs(found - np.interp(GRID, nodes, heights)).max()
        ratio = max(ratio, float(far * 2 * math.sqrt(degrees[0])))
    last, x = degrees[-1], GRID
    limit = -9 * x * (1 - x) * np.cos(3 * x) / 2
    smooth = last * (bernstein(lambda x: np.cos(3 * x), last) - np.cos(3 * x))
    following = np.abs(
        x * (1 - x) * (1 - 2 * x) * 27 * np.sin(3 * x) / 6
        + (x * (1 - x)) ** 2 * 81 * np.cos(3 * x) / 8
    ).max()
    checks = [
        Check(
            "slope of log error against log degree for |x - 1/2|",
            slope,
            -0.5,
            1 / (4 * n[0]) / math.log(n[-1] / n[0]) * 1.1,
            "the next term, 1/(4n), of the mean deviation of a binomial distribution",
            wrong=Wrong("the rate 1/n of smooth functions", predicted=-1.0),
        ),
        Check(
            "largest relative distance from the mean deviation of a binomial distribution",
            float(np.abs(error / exact - 1).max()),
            0.0,
            64 * np.finfo(float).eps * n[-1],
            "rounding: log-gamma of numbers near n, times n",
            wrong=Wrong(
                "2ⁿ in place of 2ⁿ⁺¹ in De Moivre's formula",
                measured=float(np.abs(error / (2 * exact) - 1).max()),
            ),
        ),
        Check(
            "largest ratio of error and L/(2√n)",
            ratio,
            1.0,
            0.0,
            "a bound",
            "<=",
            wrong=Wrong("half of it, L/(4√n)", measured=2 * ratio),
        ),
        Check(
            "n (Bₙf - f) against x(1 - x)f''/2 for cos 3x",
            float(np.abs(smooth - limit).max()),
            0.0,
            1.1 * following / last,
            "the following term of the expansion, of order 1/n",
            wrong=Wrong("without the 1/2", measured=float(np.abs(smooth - 2 * limit).max())),
        ),
    ]
    table = Table(
        ["degree", "error", "exact", "L/(2√n)"],
        list(zip(degrees, error, exact, 0.5 / np.sqrt(n), strict=True)),
    )
    return Finding(checks, table, {"n": n, "error": error})


def kink(x: np.ndarray) -> np.ndarray:
    """Lipschitz with constant 1, and the hardest such function for x = 1/2."""
    return np.abs(x - 0.5)


def bernstein(f: Callable[[np.ndarray], Any], n: int) -> np.ndarray:
    """E f(S/n) with S binomial(n, x), at the points of the grid."""
    k = np.arange(n + 1)
    weights = stats.binom.pmf(k, n, GRID[:, None])  # (G, n + 1)
    found: np.ndarray = weights @ f(k / n)
    return found


def _log_choose(n: int) -> float:
    return math.lgamma(n + 1) - 2 * math.lgamma(n / 2 + 1)


def draw(paper: Figure, finding: Finding) -> None:
    """Polynomials that close in on a kink, and the rate."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, PALETTE

    left, right = paper.subplots(1, 2)
    left.plot(GRID, kink(GRID), color=INK, label="|x - 1/2|")
    for n, colour in ((4, PALETTE[3]), (16, PALETTE[2]), (64, MODEL)):
        left.plot(GRID, bernstein(kink, n), color=colour, label=f"degree {n}")
    left.set(xlabel="x", ylabel="f(x)", title="polynomials close in on a kink")
    left.legend(fontsize=7.5)
    n = finding.data["n"]
    right.loglog(n, 0.5 / np.sqrt(n), color=INK, label="bound L/(2√n)")
    right.loglog(n, 1 / np.sqrt(2 * np.pi * n), color=MODEL, label="1/√(2πn)")
    right.loglog(n, finding.data["error"][0] * n[0] / n, "--", color=LINEAR, lw=0.9, label="1/n")
    right.loglog(n, finding.data["error"], "o", color=MODEL, label="measured")
    right.set(xlabel="degree n", ylabel="largest error", title="the error falls as 1/√n")
    right.legend(fontsize=7.5)
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="bernstein",
    title="Weierstrass' theorem by Bernstein polynomials",
    statement=(
        "Polynomials are dense in C[0, 1]: the mean of f at a binomial frequency is a polynomial "
        "of degree n within L/(2√n) of any f with Lipschitz constant L. For |x - 1/2| the error is "
        "the mean deviation of a coin, about 1/√(2πn); for smooth f it falls as 1/n."
    ),
    formula=(
        r"B_n f(x) = \sum_{k=0}^n f(\tfrac kn) \binom nk x^k (1-x)^{n-k}, \qquad "
        r"\|B_n f - f\|_\infty \le \frac{L}{2\sqrt n}, \qquad "
        r"n\,(B_n f - f) \to \tfrac12 x(1-x) f''"
    ),
    sources=("M064",),
    measure=measure,
    reference="Bernstein (1912); DeVore and Lorentz (1993), Constructive approximation, chap. 10.",
    full={"degrees": (16, 64, 256, 1024, 4096)},
    draw=draw,
)
