"""Random patterns are stored without an error up to about n/(2 ln n) of them."""

from math import exp, log, log2

import numpy as np
import torch
from scipy.special import erfc

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator,
    *,
    neurons: int = 1000,
    patterns: tuple[int, ...] = (51, 65, 73, 81, 95),
    rows: int = 3000,
) -> Finding:
    """Unstable bits per pattern and patterns without any, by the number stored."""
    n, table = neurons, []
    for s in patterns:  # odd, and n even: no field is ever exactly 0
        found = torch.stack([unstable(generator, n, s) for _ in range(max(rows // s, 4))])
        bits, whole = found.double().mean(1), (found == 0).double().mean(1)
        deviations = [float(part.std()) / len(found) ** 0.5 for part in (bits, whole)]
        table.append([s, float(bits.mean()), deviations[0], float(whole.mean()), deviations[1]])
    few = n * tail((2 * log(n)) ** 0.5)  # unstable bits per pattern at s = n / (2 ln n)
    capacity, error = crossing(np.array(table), few)
    middle = table[len(table) // 2]
    x = random_signs(generator, patterns[0], n).double()
    network = Hopfield(n).double().store(x).fields(x)
    checks = [
        Check(
            f"patterns at which {few:.3f} of the {n} bits of a pattern are unstable",
            capacity,
            n / (2 * log(n)),
            4 * error + 1,
            "4 standard errors, and 1 for the pattern itself, which makes no cross-talk",
            wrong=Wrong("the logarithm to base 2", predicted=n / (2 * log2(n)), erratum="E17"),
        ),
        Check(
            f"share of patterns without an error, {middle[0]} stored",
            middle[3],
            exp(-n * tail(((n - 1) / (middle[0] - 1)) ** 0.5)),
            4 * middle[4],
            "4 standard errors over networks; errors come together, so at least exp(−nP) (Jensen)",
            relation=">=",
            wrong=Wrong("no pattern has an error", predicted=1.0),
        ),
        Check(
            "largest difference of these fields from the network's",
            float((fields(x) / n - network).abs().max()),
            0,
            n * float(torch.finfo(torch.float64).eps),
            "rounding of a sum of n terms: n eps",
        ),
    ]
    head = ["s", "unstable bits per pattern", "error", "patterns without", "error"]
    return Finding(checks, Table(head, table), {"n": n})


def unstable(generator: torch.Generator, n: int, s: int) -> torch.Tensor:
    """Counts the bits of each of s random patterns that would flip, (s,)."""
    x = random_signs(generator, s, n)
    return (fields(x) * x < 0).sum(1)


def random_signs(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Fair signs."""
    return torch.randint(0, 2, shape, generator=generator).float() * 2 - 1


def fields(x: torch.Tensor) -> torch.Tensor:
    """n times the fields that the patterns make for themselves, by way of their overlaps.

    (XᵀX - s I) X as X (XᵀX) - s X: whole numbers, and no matrix of n by n.
    """
    return (x @ x.T) @ x - len(x) * x


def tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return float(0.5 * erfc(z / 2**0.5))


def crossing(table: np.ndarray, level: float) -> tuple[float, float]:
    """The s at which ln(bits), a straight line in 1/s, takes the level, and its standard error."""
    s, bits, error = table[:, 0], np.maximum(table[:, 1], 1e-12), table[:, 2]
    use = bits > 5 * error
    x, y, weight = 1 / s[use], np.log(bits[use]), bits[use] / error[use]
    (slope, height), covariance = np.polyfit(x, y, 1, w=weight, cov="unscaled")
    at = (np.log(level) - height) / slope
    gradient = np.array([-at / slope, -1 / slope])
    return float(1 / at), float((gradient @ covariance @ gradient) ** 0.5 / at**2)


def draw(paper: Figure, finding: Finding) -> None:
    """Patterns without an error, by the number stored."""
    axes = paper.subplots()
    assert finding.table is not None
    n = finding.data["n"]
    s, _, _, whole, error = np.array(finding.table.rows, dtype=float).T
    grid = np.linspace(2, 1.15 * s.max(), 200)
    share = [exp(-n * tail(((n - 1) / (k - 1)) ** 0.5)) for k in grid]
    axes.plot(grid, share, color=INK, label="exp(−n P), if bits erred alone")
    axes.errorbar(s, whole, 2 * error, fmt="o", color=MODEL, capsize=2, label="measured, ±2 s.e.")
    axes.axvline(n / (2 * log(n)), color=MODEL, lw=1, label="n / (2 ln n)")
    axes.axvline(n / (2 * log2(n)), color=LINEAR, lw=0.9, ls="--", label="printed, n / (2 log₂ n)")
    axes.set(xlabel=f"patterns stored in {n} neurons", ylabel="patterns without an error")
    axes.set_title("errors set in at n/(2 ln n) patterns, not at n/(2 log₂ n)")
    axes.legend(loc="lower left")


claim = Claim(
    id="hopfield-capacity",
    title="Capacity without errors: n/(2 ln n)",
    statement=(
        "Hebb's rule stores about n/(2 ln n) random patterns such that most have no unstable bit: "
        "72 in 1,000 neurons. Often printed with the logarithm to base 2, which gives 50: a safe "
        "number, but not the threshold."
    ),
    formula=(
        r"s = \frac{n}{2 \ln n}: \quad n P\Big(N(0, 1) > \sqrt{n / s}\Big) \approx "
        r"\frac{1}{\sqrt{4 \pi \ln n}} \to 0"
    ),
    sources=("M019", "E17"),
    measure=measure,
    reference=(
        "McEliece, Posner, Rodemich and Venkatesh (1987), The capacity of the Hopfield associative "
        "memory. https://doi.org/10.1109/TIT.1987.1057328"
    ),
    full={"rows": 60_000},
    errata=(Erratum("E17", "s ≤ n / (2 log₂ n)", "s ≤ n / (2 ln n)"),),
    draw=draw,
)
