"""Beyond 0.138 patterns per neuron a Hopfield network forgets everything at once."""

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import erf

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.style import INK, LINEAR, MODEL

LOADS = (0.08, 0.12, 0.14, 0.16, 0.18)
KEPT = 0.9  # overlaps are near 1 or far below; where between the line is drawn hardly matters


def measure(
    generator: torch.Generator, *, small: int = 64, large: int = 256, networks: int = 16
) -> Finding:
    """The share of patterns that stay where they were stored, by load, in two sizes."""
    sizes = {small: networks * large // small, large: networks}
    overlaps = {
        n: [recalled(generator, n, load, count) for load in LOADS] for n, count in sizes.items()
    }
    shares = {n: [(m > KEPT).double().mean(1) for m in each] for n, each in overlaps.items()}
    kept = {n: np.array([float(k.mean()) for k in each]) for n, each in shares.items()}
    error = {
        n: np.array([float(k.std()) / len(k) ** 0.5 for k in each]) for n, each in shares.items()
    }
    turn, deviation = crossing(kept[large] - kept[small], np.hypot(error[large], error[small]))
    critical, at_critical = mean_field()
    low = overlaps[large][0].mean(1)
    checks = [
        Check(
            "patterns per neuron beyond which a larger network keeps fewer of its patterns",
            turn,
            critical,
            4 * deviation + 0.01,
            "4 standard errors over networks; half a step between loads",
            wrong=Wrong("neurons per pattern ≈ 0.138", predicted=1 / critical, erratum="E16"),
        ),
        Check(
            "load up to which the mean-field equations have a retrieval state",
            critical,
            0.138,
            0.5e-3,
            "a number of three decimals",
            wrong=Wrong("n/(2 ln n) patterns, at n = 1,000", predicted=1 / (2 * np.log(1000))),
        ),
        Check(
            "mean overlap at 0.08 patterns per neuron",
            float(low.mean()),
            retrieval(LOADS[0]),
            4 * float(low.std()) / networks**0.5 + 1 / large,
            "4 standard errors over networks, and half a bit",
            wrong=Wrong("the overlap at the transition", predicted=at_critical),
        ),
    ]
    head = ["s/n", *(f"kept, n = {n}" for n in sizes)]
    rows = [list(row) for row in zip(LOADS, *kept.values(), strict=True)]
    data: dict[str, Any] = {"kept": kept, "error": error, "critical": critical}
    return Finding(checks, Table(head, rows), data)


def crossing(gain: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The load at which a line through the gains is 0, and its standard error; not the first."""
    (slope, height), covariance = np.polyfit(
        LOADS[1:], gain[1:], 1, w=1 / error[1:], cov="unscaled"
    )
    at = -height / slope
    gradient = np.array([-at / slope, -1 / slope])
    return float(at), float((gradient @ covariance @ gradient) ** 0.5)


def recalled(generator: torch.Generator, n: int, load: float, networks: int) -> torch.Tensor:
    """Overlaps x·x'/n of the patterns with their fixed points, ``(networks, patterns)``."""
    found = []
    for _ in range(networks):
        x = torch.randint(0, 2, (round(load * n), n), generator=generator).double() * 2 - 1
        state = Hopfield(n).double().store(x).recall(x, 60, generator=generator).state
        found.append((state * x).mean(1))
    return torch.stack(found)


def noise(y: float) -> float:
    """√(2α) as a function of y: y (√(2α) + (2/√π) exp(-y²)) = erf y."""
    return float(erf(y) / y - 2 / np.pi**0.5 * np.exp(-(y**2)))


def mean_field() -> tuple[float, float]:
    """The largest load with a retrieval state at temperature 0, and its overlap."""
    best = minimize_scalar(lambda y: -noise(y), bounds=(0.5, 4), method="bounded")
    return noise(best.x) ** 2 / 2, float(erf(best.x))


def retrieval(load: float) -> float:
    """The overlap of the retrieval state at a load below the transition."""
    y = np.linspace(1.5, 8, 100_000)
    curve = erf(y) / y - 2 / np.pi**0.5 * np.exp(-(y**2))
    below = y[curve >= (2 * load) ** 0.5]
    return float(erf(below[-1]))


def draw(paper: Figure, finding: Finding) -> None:
    """Shares kept by load in two sizes, the overlap of the larger, and mean-field theory."""
    axes = paper.subplots()
    critical = finding.data["critical"]
    grid = np.linspace(LOADS[0], critical - 1e-5, 60)
    axes.plot(grid, [retrieval(a) for a in grid], color=INK, label="mean-field theory, n → ∞")
    axes.plot([critical] * 2, [0, retrieval(critical - 1e-5)], color=INK, ls=":", lw=0.9)
    for (n, kept), colour, mark in zip(
        finding.data["kept"].items(), (LINEAR, MODEL), "^o", strict=True
    ):
        error = finding.data["error"][n]
        axes.errorbar(
            LOADS, kept, 2 * error, fmt=f"{mark}-", lw=0.8, capsize=2, color=colour,
            label=f"patterns kept, n = {n}, ±2 s.e.",
        )  # fmt: skip
    axes.annotate("0.138", (critical, 0.02), xytext=(4, 0), textcoords="offset points")
    axes.set(xlabel="patterns per neuron, s / n", ylabel="overlap or share", ylim=(0, 1.04))
    axes.set_title("beyond 0.138 patterns per neuron more neurons keep fewer of them")
    axes.legend(loc="lower left")


claim = Claim(
    id="hopfield-transition",
    title="The collapse at 0.138 patterns per neuron",
    statement=(
        "Beyond about 0.138 patterns per neuron the errors of a Hopfield network start an "
        "avalanche, and its patterns are lost together: mean-field theory has no retrieval state "
        "there: below it a larger network keeps more of its patterns, above it fewer. A common "
        "slip inverts the ratio and writes neurons per pattern."
    ),
    formula=(
        r"\alpha = \frac{s}{n}: \quad y \Big(\sqrt{2 \alpha} + \tfrac{2}{\sqrt{\pi}} e^{-y^2}\Big) "
        r"= \mathrm{erf}(y), \; m = \mathrm{erf}(y) \text{ has a solution } y > 0 "
        r"\iff \alpha \le \alpha_c \approx 0.138"
    ),
    sources=("M018", "E16"),
    measure=measure,
    reference=(
        "Amit, Gutfreund and Sompolinsky (1985), Storing infinite numbers of patterns in a "
        "spin-glass model of neural networks. https://doi.org/10.1103/PhysRevLett.55.1530"
    ),
    full={"small": 256, "large": 1024, "networks": 24},
    errata=(Erratum("E16", "transition at d/n ≈ 0.138", "patterns/neurons ≈ 0.138 (n/d there)"),),
    draw=draw,
)
