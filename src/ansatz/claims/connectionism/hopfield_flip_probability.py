"""The probability that a stored bit is unstable: 0.0036 at 0.138 patterns per neuron."""

import numpy as np
import torch
from scipy.special import erf, erfc

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.style import LINEAR, MODEL

# Neurons even and patterns odd: no field is ever exactly 0.
LOADS = ((500, 69), (600, 111), (500, 51), (500, 151))  # 0.138, 0.185, 0.102, 0.302


def measure(generator: torch.Generator, *, bits: int = 120_000) -> Finding:
    """Bits of stored patterns whose field has the other sign."""
    rows = []
    for n, s in LOADS:
        shares = np.array([share(generator, n, s) for _ in range(max(bits // (n * s), 4))])
        error = float(shares.std(ddof=1) / len(shares) ** 0.5)
        rows.append((s / n, float(shares.mean()), error, probability(s / n), exact(n, s)))
    checks = []
    for (load, found, error, limit, finite), number in zip(rows, (0.0036, 0.01), strict=False):
        checks += [
            Check(
                f"share of unstable bits at s/n = {load:.3f}",
                found,
                limit,
                4 * error + abs(finite - limit),
                "4 standard errors over networks, and the O(1/s) of s − 1 other patterns",
                wrong=Wrong("√(n/s) in place of √(n/2s)", predicted=probability(load / 2)),
            ),
            Check(
                f"the formula at s/n = {load:.3f}",
                limit,
                number,
                0.5e-4,
                "a number of four decimals",
                wrong=Wrong(
                    "the integral without 1/√(2πs/n)",
                    measured=limit * (2 * np.pi * load) ** 0.5,
                ),
            ),
        ]
    return Finding(checks, Table(["s/n", "measured", "error", "formula", "finite"], rows))


def share(generator: torch.Generator, n: int, s: int) -> float:
    """Of one network with s random patterns."""
    x = torch.randint(0, 2, (s, n), generator=generator).double() * 2 - 1
    return float((Hopfield(n).double().store(x).fields(x) * x < 0).double().mean())


def probability(load: float) -> float:
    """½ (1 - erf √(n/2s))."""
    return float(0.5 * (1 - erf((0.5 / load) ** 0.5)))


def exact(n: int, s: int) -> float:
    """The same with the variance (s - 1)(n - 1)/n² and the own part (n - 1)/n."""
    return float(0.5 * erfc(((n - 1) / (s - 1) / 2) ** 0.5))


def draw(paper: Figure, finding: Finding) -> None:
    """Unstable bits by load."""
    from ansatz.figures.decades import logarithmic

    axes = paper.subplots()
    assert finding.table is not None
    load, found, error, *_ = np.array(finding.table.rows).T
    grid = np.linspace(0.08, 0.33, 200)
    axes.plot(grid, [probability(a) for a in grid], color=LINEAR, label="½ (1 − erf √(n/2s))")
    axes.errorbar(
        load, found, 2 * error, fmt="o", color=MODEL, capsize=2, label="measured, ±2 s.e."
    )
    logarithmic(axes.yaxis)
    axes.set(xlabel="patterns per neuron, s / n", ylabel="share of unstable bits")
    axes.set_title("the error function gives the share of stored bits that flip")
    axes.legend(loc="lower right")


claim = Claim(
    id="hopfield-flip-probability",
    title="The probability that a stored bit flips",
    statement=(
        "A bit of a stored random pattern is unstable with probability ½(1 − erf √(n/2s)): 0.0036 "
        "at 0.138 patterns per neuron, 0.0100 at 0.185. The integral of the normal density needs "
        "its factor 1/√(2πs/n), which is often left out."
    ),
    formula=(
        r"P = \frac{1}{\sqrt{2 \pi s / n}} \int_1^\infty e^{-\frac{n z^2}{2 s}} dz = "
        r"\tfrac{1}{2} \Big(1 - \mathrm{erf} \sqrt{n / 2 s}\Big)"
    ),
    sources=("M017",),
    measure=measure,
    reference="Hertz, Krogh and Palmer (1991), Introduction to the theory of neural computation, "
    "table 2.1.",
    full={"bits": 5_000_000},
    draw=draw,
)
