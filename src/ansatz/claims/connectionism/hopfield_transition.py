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

LOADS = (0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20, 0.22)
KEPT = 0.9  # overlaps are near 1 or far below; where between the line is drawn hardly matters


def measure(generator: torch.Generator, *, neurons: int = 500, networks: int = 1) -> Finding:
    """Overlap of stored patterns with where the dynamics take them, by load."""
    overlaps = [recalled(generator, neurons, load, networks) for load in LOADS]
    kept = np.array([float((m > KEPT).double().mean()) for m in overlaps])
    mean = np.array([float(m.mean()) for m in overlaps])
    half = float(np.interp(-0.5, -np.minimum.accumulate(kept), LOADS))
    critical, at_critical = mean_field()
    checks = [
        Check(
            "patterns per neuron at which half of the patterns are lost",
            half,
            critical,
            neurons**-0.5 + 0.01,
            "finite size: n neurons shift it by at most n^(-1/2); half a step between loads",
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
            float(mean[1]),
            retrieval(0.08),
            4 * float(overlaps[1].std()) / len(overlaps[1]) ** 0.5 + 1 / neurons,
            "4 standard errors over patterns, and half a bit",
            wrong=Wrong("the overlap at the transition", predicted=at_critical),
        ),
    ]
    rows = [list(row) for row in zip(LOADS, mean, kept, strict=True)]
    data: dict[str, Any] = {"mean": mean, "kept": kept, "critical": critical, "n": neurons}
    return Finding(checks, Table(["s/n", "overlap", "kept"], rows), data)


def recalled(generator: torch.Generator, n: int, load: float, networks: int) -> torch.Tensor:
    """Overlaps x·x'/n of the patterns of some networks with their fixed points."""
    found = []
    for _ in range(networks):
        x = torch.randint(0, 2, (round(load * n), n), generator=generator).double() * 2 - 1
        state = Hopfield(n).double().store(x).recall(x, 60, generator=generator).state
        found.append((state * x).mean(1))
    return torch.cat(found)


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
    """Overlap by load, and mean-field theory."""
    axes = paper.subplots()
    critical = finding.data["critical"]
    grid = np.linspace(LOADS[0], critical - 1e-5, 60)
    axes.plot(grid, [retrieval(a) for a in grid], color=INK, label="mean-field theory, n → ∞")
    axes.plot([critical] * 2, [0, retrieval(critical - 1e-5)], color=INK, ls=":", lw=0.9)
    axes.plot(LOADS, finding.data["mean"], "o", color=MODEL, label="mean overlap")
    axes.plot(LOADS, finding.data["kept"], "^", color=LINEAR, label="patterns kept, share")
    axes.annotate("0.138", (critical, 0.02), xytext=(4, 0), textcoords="offset points")
    axes.set(xlabel="patterns per neuron, s / n", ylabel="overlap or share", ylim=(0, 1.04))
    axes.set_title(f"memory collapses near 0.138 patterns per neuron (n = {finding.data['n']})")
    axes.legend(loc="lower left")


claim = Claim(
    id="hopfield-transition",
    title="The collapse at 0.138 patterns per neuron",
    statement=(
        "Beyond about 0.138 patterns per neuron the errors of a Hopfield network start an "
        "avalanche, and its patterns are lost together: mean-field theory has no retrieval state "
        "there. A common slip inverts the ratio and writes neurons per pattern."
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
    full={"neurons": 1000, "networks": 2},
    errata=(Erratum("E16", "transition at d/n ≈ 0.138", "patterns/neurons ≈ 0.138 (n/d there)"),),
    draw=draw,
)
