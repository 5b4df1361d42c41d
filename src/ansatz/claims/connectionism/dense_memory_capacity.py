"""An energy of order k holds patterns in proportion to n^(k-1)."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import binom, norm

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.connectionism.hopfield_descent import random_signs
from ansatz.connectionism import DenseAssociativeMemory
from ansatz.figures.style import FOURTH, INK, LINEAR, MODEL, THIRD

SIZES = {2: (48, 192), 3: (24, 72), 4: (16, 36)}  # neurons by order
LEVEL = 3**0.5  # standard deviations; there the kurtosis of the noise does not matter (Edgeworth)


class Point(NamedTuple):
    """The capacity of one size: patterns at which a share P(N > √3) of the bits is unstable."""

    neurons: int
    capacity: float
    error: float
    exact: float


def measure(generator: torch.Generator, *, bits: int = 8_000) -> Finding:
    """Unstable bits of stored patterns: growth of the capacity by powers, and at 2^(n/2)."""
    found = {k: [point(generator, k, n, bits) for n in sizes] for k, sizes in SIZES.items()}
    checks = []
    for k, points in found.items():
        slope, error, exact = growth(points)
        checks.append(
            Check(
                f"growth of the capacity with n, order {k}",
                slope,
                k - 1,
                4 * error + abs(exact - (k - 1)),
                "4 standard errors, and the O(1/n) of the exact moments of the overlaps",
                wrong=Wrong("n^k", predicted=k),
            )
        )
    n = 20
    share, error = exponential(generator, n, 2 ** (n // 2), "log_sum_exp")
    cubic, _ = exponential(generator, n, 2 ** (n // 2), "polynomial")
    # Chebyshev: noise variance over signal squared is (cosh 2 / e²)^(n - 1) for each pattern.
    bound = 2 ** (n // 2) * (np.cosh(2) / np.e**2) ** (n - 1)
    checks.append(
        Check(
            f"share of unstable bits, 2^(n/2) patterns in n = {n} neurons",
            share,
            bound,
            4 * error,
            "4 standard errors over patterns, on Chebyshev's bound",
            relation="<=",
            wrong=Wrong("a cubic energy does as well", measured=cubic),
        )
    )
    rows = [[k, *each] for k, points in found.items() for each in points]
    table = Table(["order", "neurons", "capacity", "error", "exact moments"], rows)
    return Finding(checks, table, {"found": found})


def point(generator: torch.Generator, k: int, n: int, bits: int) -> Point:
    """Measures near the capacity, and moves to it by P = Q(√(A/K))."""
    exact = 1 + signal_to_noise(k, n) / LEVEL**2
    count = round(exact)
    shares = []
    for _ in range(max(bits // (n * 40), 4)):
        x = random_signs(generator, count, n)
        memory = DenseAssociativeMemory(x, energy="polynomial", order=k, states="binary")
        shares.append(unstable(memory, x[:40]).mean())
    share = torch.stack(shares)
    z = norm.isf(float(share.mean()))
    # dz = dP / density; K z² is what stays.
    error = float(share.std()) / len(share) ** 0.5 / norm.pdf(z)
    return Point(n, count * z**2 / LEVEL**2, count * 2 * z * error / LEVEL**2, exact)


def signal_to_noise(k: int, n: int) -> float:
    """(F(n) - F(n - 2))² over the variance of F(Z + 1) - F(Z - 1), Z a sum of n - 1 signs."""
    z = 2.0 * np.arange(n) - (n - 1)
    noise = binom.pmf(np.arange(n), n - 1, 0.5) @ ((z + 1) ** k - (z - 1) ** k) ** 2
    return float((float(n) ** k - float(n - 2) ** k) ** 2 / noise)


def unstable(memory: DenseAssociativeMemory, x: torch.Tensor) -> torch.Tensor:
    """Share of the bits of each pattern whose flip lowers the energy, (B,)."""
    flipped = x.unsqueeze(1) * (1 - 2 * torch.eye(x.shape[1], dtype=x.dtype))  # (B, n, n)
    return (memory.energy(flipped) < memory.energy(x).unsqueeze(1)).double().mean(1)


def growth(points: list[Point]) -> tuple[float, float, float]:
    """d ln K / d ln n between the sizes, its standard error, and that of the exact moments."""
    ((small, large),) = pairwise(points)
    span = np.log(large.neurons / small.neurons)
    error = np.hypot(small.error / small.capacity, large.error / large.capacity) / span
    exact = np.log(large.exact / small.exact) / span
    return float(np.log(large.capacity / small.capacity) / span), float(error), float(exact)


def exponential(generator: torch.Generator, n: int, count: int, energy: Any) -> tuple[float, float]:
    """Share of unstable bits of 100 of the patterns, and its standard error."""
    x = random_signs(generator, count, n)
    share = unstable(DenseAssociativeMemory(x, energy=energy, order=3, states="binary"), x[:100])
    return float(share.mean()), float(share.std() / len(share) ** 0.5)


def draw(paper: Figure, finding: Finding) -> None:
    """Capacity by neurons, for three orders."""
    from ansatz.figures.decades import logarithmic

    axes = paper.subplots()
    for (k, points), colour in zip(
        finding.data["found"].items(), (MODEL, LINEAR, THIRD, FOURTH), strict=False
    ):
        n = np.array([each.neurons for each in points])
        grid = np.arange(n.min(), n.max() + 1)
        exact = [1 + signal_to_noise(k, int(each)) / LEVEL**2 for each in grid]
        power = {2: "n", 3: "n²", 4: "n³"}[k]
        axes.plot(grid, exact, color=colour, lw=1, label=f"order {k}: grows as {power}")
        capacity = [each.capacity for each in points]
        errors = [2 * each.error for each in points]
        axes.errorbar(n, capacity, errors, fmt="o", color=colour, capsize=2)
    axes.errorbar([], [], [], fmt="o", color=INK, label="measured, ±2 s.e.")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="neurons n", ylabel="patterns, 4 % of bits unstable")
    axes.set_title("steeper energies hold more patterns")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="dense-memory-capacity",
    title="Dense memories hold n^(k-1) patterns",
    statement=(
        "With an energy of order k, the number of random patterns that n neurons hold at a given "
        "share of errors grows as n to the power k − 1 (k = 2 is Hopfield's network). With the "
        "exponential energy, 2^(n/2) patterns are stable except for a share that vanishes."
    ),
    formula=(
        r"E(x) = -\sum_{t=1}^K (x_t^\top x)^k: \quad K \propto n^{k-1}; \qquad "
        r"E(x) = -\sum_t e^{x_t^\top x}: \quad K \ge 2^{n/2}"
    ),
    sources=("M020",),
    measure=measure,
    reference=(
        "Krotov and Hopfield (2016), Dense associative memory for pattern recognition, eq. 6. "
        "https://arxiv.org/abs/1606.01164"
    ),
    full={"bits": 200_000},
    draw=draw,
)
