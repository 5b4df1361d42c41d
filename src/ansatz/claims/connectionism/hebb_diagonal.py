"""Hebb's rule has no self-connections once the identity is subtracted for every pattern."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.connectionism.hopfield_descent import random_signs
from ansatz.connectionism import Hopfield
from ansatz.figures.style import FOURTH, LINEAR, MODEL


def measure(
    generator: torch.Generator, *, neurons: int = 200, patterns: int = 10, most: int = 40
) -> Finding:
    """The diagonal as patterns are stored, and whether few patterns are fixed points."""
    x = random_signs(generator, most, neurons)
    counts = list(range(1, most + 1, 3))
    diagonals = {"ours": [], "never": [], "once": []}  # type: dict[str, list[float]]
    for count in [*counts, patterns]:
        outer = x[:count].T @ x[:count]
        diagonals["ours"].append(diagonal(Hopfield(neurons).double().store(x[:count]).weight))
        diagonals["never"].append(diagonal(outer / neurons))
        diagonals["once"].append(
            diagonal((outer - torch.eye(neurons, dtype=torch.float64)) / neurons)
        )
    few = random_signs(generator, patterns, 3 * neurons)
    many = random_signs(generator, 3 * neurons, 3 * neurons)
    checks = [
        Check(
            f"diagonal after {patterns} patterns in {neurons} neurons",
            diagonals["ours"][-1],
            0,
            0,
            "whole numbers, subtracted before the division",
            wrong=Wrong(
                "the identity subtracted once", measured=diagonals["once"][-1], erratum="E15"
            ),
        ),
        Check(
            "stored patterns that are fixed points, share",
            stable(few),
            1,
            0,
            f"a bit flips with probability Q(√({3 * neurons}/{patterns})), below 10⁻¹⁰",
            wrong=Wrong("any number of patterns", measured=stable(many)),
        ),
    ]
    data = {name: values[:-1] for name, values in diagonals.items()} | {"counts": counts}
    return Finding(checks, data=data | {"neurons": neurons})


def diagonal(weight: torch.Tensor) -> float:
    """The largest entry of the diagonal."""
    return float(weight.diagonal().abs().max())


def stable(patterns: torch.Tensor) -> float:
    """The share of patterns that their own network keeps."""
    memory = Hopfield(patterns.shape[1]).double().store(patterns)
    return float((memory.recall(patterns, 1).state == patterns).all(1).double().mean())


def draw(paper: Figure, finding: Finding) -> None:
    """The diagonal by number of patterns."""
    axes = paper.subplots()
    counts, neurons = np.array(finding.data["counts"]), finding.data["neurons"]
    axes.plot(counts, finding.data["never"], "s", color=FOURTH, label="identity never subtracted")
    axes.plot(counts, counts / neurons, color=FOURTH, lw=0.8)
    axes.plot(counts, finding.data["once"], "^", color=LINEAR, label="subtracted once")
    axes.plot(counts, (counts - 1) / neurons, color=LINEAR, lw=0.8)
    axes.plot(counts, finding.data["ours"], "o", color=MODEL, label="subtracted for each pattern")
    axes.set(xlabel=f"patterns stored in {neurons} neurons", ylabel="self-connection wᵢᵢ")
    axes.set_title("only the identity for every pattern leaves no self-connection")
    axes.legend(loc="upper left")


claim = Claim(
    id="hebb-diagonal",
    title="Hebb's rule: the identity is subtracted for every pattern",
    statement=(
        "Hebb's weights have no self-connection if the identity is subtracted once for each of the "
        "n patterns. It is often not subtracted, which leaves n/d on the diagonal, or subtracted "
        "only once, which leaves (n − 1)/d. A few random patterns are then fixed points."
    ),
    formula=r"W = \frac{1}{d} \Big(\sum_{t=1}^n x_t x_t^\top - n I\Big), \qquad w_{ii} = 0",
    sources=("M015", "E15"),
    measure=measure,
    reference="Hopfield (1982), Neural networks and physical systems with emergent collective "
    "computational abilities. https://doi.org/10.1073/pnas.79.8.2554",
    full={"neurons": 400, "patterns": 19, "most": 80},
    errata=(Erratum("E15", "W = (1/d) (Σ xxᵀ − I)", "W = (1/d) (Σ xxᵀ − n I)"),),
    draw=draw,
)
