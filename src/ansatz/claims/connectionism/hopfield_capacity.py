"""Random patterns are stored without an error up to about n/(2 ln n) of them."""

from math import exp, log

import numpy as np
import torch
from scipy.special import erfc

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator,
    *,
    sizes: tuple[int, ...] = (125, 250, 500, 1000, 2000),
    rows: int = 1500,
) -> Finding:
    """The number of patterns of which half have no unstable bit, by the number of neurons."""
    table = [[n, *half_stable(generator, n, rows)] for n in sizes]
    size, ratio, error = np.array(table).T
    (slope, _), covariance = np.polyfit(np.log(size), ratio, 1, w=1 / error, cov="unscaled")
    n, s = 1000, 73  # n / (2 ln n) = 72.4; an odd s and an even n make no field exactly 0
    found = torch.stack([unstable(generator, n, s) for _ in range(max(rows // s, 8))])
    whole = (found == 0).double().mean(1)
    x = random_signs(generator, s, n).double()
    network = Hopfield(n).double().store(x).fields(x)
    checks = [
        Check(
            "growth with ln n of the neurons per pattern that keep half of the patterns stable",
            float(slope),
            2.0,
            2 / float(ratio.min()) + 4 * float(covariance[0, 0]) ** 0.5,
            "2/z², the next term of the normal tail at z² neurons per pattern; 4 standard errors",
            wrong=Wrong("the logarithm to base 2", predicted=2 / log(2), erratum="E17"),
        ),
        Check(
            f"share of patterns without an error, {s} stored in {n} neurons",
            float(whole.mean()),
            exp(-n * tail(((n - 1) / (s - 1)) ** 0.5)),
            4 * float(whole.std()) / len(whole) ** 0.5,
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
    return Finding(checks, Table(["n", "neurons per pattern", "error"], table))


def half_stable(generator: torch.Generator, n: int, rows: int) -> tuple[float, float]:
    """Neurons per pattern at which half of the patterns have no unstable bit, and the error."""
    ratios, shares, errors = [], [], []
    for ratio in range(4, 17):
        s = round(n / ratio) // 2 * 2 + 1
        found = [unstable(generator, n, s) == 0 for _ in range(max(rows // s, 4))]
        whole = torch.stack(found).double().mean(1)
        ratios.append(n / s)
        shares.append(float(whole.mean()))
        errors.append(float(whole.std()) / len(whole) ** 0.5)
        if shares[-1] > 0.8:
            break
    at = max(int(np.searchsorted(np.maximum.accumulate(shares), 0.5)), 1)
    rise = (shares[at] - shares[at - 1]) / (ratios[at] - ratios[at - 1])
    error = max(errors[at - 1 : at + 1]) / rise
    return ratios[at - 1] + (0.5 - shares[at - 1]) / rise, error


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


def draw(paper: Figure, finding: Finding) -> None:
    """Neurons per pattern, by the number of neurons."""
    axes = paper.subplots()
    assert finding.table is not None
    n, ratio, error = np.array(finding.table.rows, dtype=float).T
    grid = np.geomspace(n.min(), n.max(), 50)
    for base, colour, line, name in (
        (1.0, INK, "-", "2 ln n, shifted"),
        (log(2), LINEAR, "--", "printed: 2 log₂ n, shifted"),
    ):
        shift = ratio[0] - 2 * log(n[0]) / base
        axes.plot(grid, 2 * np.log(grid) / base + shift, line, color=colour, lw=0.9, label=name)
    axes.errorbar(n, ratio, 2 * error, fmt="o", color=MODEL, capsize=2, label="measured, ±2 s.e.")
    axes.set(xlabel="neurons n", ylabel="neurons per pattern", xscale="log")
    logarithmic(axes.xaxis)
    axes.set_title("half of the patterns are stable: neurons per pattern grow with 2 ln n")
    axes.legend(loc="upper left")


claim = Claim(
    id="hopfield-capacity",
    title="Capacity without errors: n/(2 ln n)",
    statement=(
        "Hebb's rule stores about n/(2 ln n) random patterns such that most have no unstable bit: "
        "72 in 1,000 neurons. The neurons that a pattern needs grow with 2 ln n. Often printed "
        "with the logarithm to base 2, which gives 50 patterns: a safe number, but not the "
        "threshold."
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
    full={"sizes": (125, 250, 500, 1000, 2000, 4000, 8000), "rows": 20_000},
    errata=(Erratum("E17", "s ≤ n / (2 log₂ n)", "s ≤ n / (2 ln n)"),),
    draw=draw,
)
