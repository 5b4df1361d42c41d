"""Small facts that proofs use: logarithms, powers, series, maxima."""

import math
from collections.abc import Callable

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(generator: torch.Generator, *, instances: int = 2_000) -> Finding:
    """Each fact over random numbers, its error beside the term that the fact leaves out."""
    x = 2.0 ** -np.arange(4.0, 16.0)
    error = x - np.log1p(x)
    order = float(np.polyfit(np.log(x), np.log(error), 1)[0])
    rng = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    e = 10.0 ** rng.uniform(-4, 0, instances)
    n = rng.integers(1, 10_000, instances)
    with np.errstate(divide="ignore"):
        gap = n * np.log1p(-e) + n * e  # log of (1 - ε)ⁿ over e^(-nε)
    wrong_gap = n * np.log1p(-e) + 1.01 * n * e
    r, k = rng.uniform(-0.99, 0.99, instances), rng.integers(0, 60, instances)
    sums = np.array([math.fsum(a**j for j in range(b + 1)) for a, b in zip(r, k, strict=True)])
    series = (1 - r ** (k + 1)) / (1 - r)
    short = (1 - r**k) / (1 - r)
    scale = EPS * (k + 4) / (1 - np.abs(r))
    g = rng.normal(size=(instances, 12))
    functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "exp": np.exp,
        "cubic": lambda v: v**3 + v,
        "falling": lambda v: -v,
    }
    moved = {name: int((f(g).argmax(1) != g.argmax(1)).sum()) for name, f in functions.items()}
    itself = int((np.arange(12)[None].argmax(1) != g.argmax(1)).sum())
    checks = [
        Check(
            "order of the error of log(1 + x) ≈ x as x → 0",
            order,
            2.0,
            float(x.max()),
            "x - log(1 + x) = x²/2 - x³/3 + ...: the slope differs from 2 by the order of x",
            wrong=Wrong("an error of first order", predicted=1.0),
        ),
        Check(
            "largest error of log(1 + x) ≈ x, over x²/2",
            float((error / (x**2 / 2)).max()),
            1.0,
            float(4 * EPS / x.min()),
            "rounding of x - log(1 + x) at the smallest x",
            relation="<=",
            wrong=Wrong("over x²/3", measured=float((error / (x**2 / 3)).max())),
        ),
        Check(
            "largest log of (1 - ε)ⁿ over e^(-nε)",
            float(gap.max()),
            0.0,
            float(4 * EPS * (n * e).max()),
            "rounding: 4 eps × the largest nε",
            relation="<=",
            wrong=Wrong("e^(-1.01 nε)", measured=float(wrong_gap.max())),
        ),
        Check(
            "geometric series: largest error, over its rounding",
            float((np.abs(sums - series) / scale).max()),
            0.0,
            1.0,
            "rounding: one per power, divided by 1 - |r|",
            wrong=Wrong("rᵏ for rᵏ⁺¹", measured=float((np.abs(sums - short) / scale).max())),
        ),
        Check(
            "maxima that an increasing function moves",
            moved["exp"] + moved["cubic"],
            0,
            0,
            "whole numbers",
            wrong=Wrong("a decreasing function", measured=moved["falling"]),
        ),
        Check(
            "maxima of g that are not maxima of f∘g, f increasing",
            moved["exp"],
            0,
            0,
            "whole numbers",
            wrong=Wrong("argmax x for argmax g(x), as printed", measured=itself),
        ),
    ]
    rows = [[float(a), float(b), float(a) ** 2 / 2] for a, b in zip(x, error, strict=True)]
    return Finding(checks, Table(["x", "x - log(1 + x)", "x²/2"], rows))


def draw(paper: Figure, finding: Finding) -> None:
    """The error of the approximation, with its rate."""
    assert finding.table is not None
    axes = paper.subplots()
    x, error, expected = np.array(finding.table.rows).T
    axes.plot(x, error, "o", color=MODEL, label="x − log(1 + x)")
    axes.plot(x, expected, color=LINEAR, label="x²/2")
    axes.plot(x, x * error[0] / x[0], "--", color=INK, lw=0.8, label="an error of first order")
    axes.set(xlabel="x", ylabel="error of log(1 + x) ≈ x")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("log(1 + x) is x, up to half of its square")
    axes.legend(loc="upper left")


claim = Claim(
    id="small-facts",
    title="Small facts that proofs use",
    statement=(
        "The logarithm of 1 + x is x up to half its square; a power of 1 - ε is at most the "
        "exponential of -nε; a geometric sum has a closed form; and an increasing function of g "
        "has its maximum where g has. The last is sometimes printed as argmax x = argmax f(x)."
    ),
    formula=(
        r"\log(1 + x) = x - \tfrac{x^2}{2} + O(x^3), \qquad (1 - \varepsilon)^n \le "
        r"e^{-n \varepsilon}, \qquad \sum_{j=0}^k r^j = \frac{1 - r^{k+1}}{1 - r}, \qquad "
        r"\arg\max g = \arg\max f \circ g"
    ),
    sources=("M034",),
    measure=measure,
    reference="Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, appendix A.",
    full={"instances": 50_000},
    draw=draw,
)
