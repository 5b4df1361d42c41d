"""The PAC-Bayes bound holds with probability 1 - ε, with the constant 1/(2n)."""

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.theory import pac_bayes_gap, pac_bayes_risk

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.99)


def measure(
    generator: torch.Generator, *, samples: int = 4_000, rows: int = 9, functions: int = 2
) -> Finding:
    """Samples in which the bound holds for every posterior, and the constant by inversion."""
    held = {level: covered(level, samples, rows, functions, generator) for level in LEVELS}
    errors = {level: (c * (1 - c) / samples) ** 0.5 for level, c in held.items()}
    short = min(c - (1 - level) for level, c in held.items())
    most = max(LEVELS)
    kl, n, level = 5.0, 1000, 0.05
    predicted = pac_bayes_gap(kl, n, level)
    printed = math.sqrt(2 / n * (kl + math.log(2 * math.sqrt(n) / level)))
    inverted = minimize_scalar(
        lambda r: r - pac_bayes_risk(r, kl, n, level), bounds=(0.2, 0.8), method="bounded"
    )
    checks = [
        Check(
            f"share of samples in which the bound holds for all q, ε = {most}",
            held[most],
            1 - most,
            4 * errors[most],
            f"4 standard errors over {samples} samples",
            ">=",
            wrong=Wrong("holds with probability at least ε", predicted=most, erratum="E23"),
        ),
        Check(
            "that share less 1 - ε, least over five values of ε",
            short,
            0.0,
            4 * max(errors.values()),
            f"4 standard errors over {samples} samples",
            ">=",
            wrong=Wrong("less ε", measured=min(c - level for level, c in held.items())),
        ),
        Check(
            "largest gap that the divergence of two coins allows, n = 1000, KL = 5, ε = 0.05",
            -float(inverted.fun),
            predicted,
            predicted**3 / 5,
            "kl = 2δ² + 2δ⁴/3 + …: Pinsker's 2δ² leaves out δ³/6 of the gap, and higher terms",
            wrong=Wrong("the factor 2/n", predicted=printed, erratum="E23"),
        ),
    ]
    table = Table(["ε", "holds", "1 - ε"], [[level, c, 1 - level] for level, c in held.items()])
    return Finding(checks, table, {"held": held, "errors": errors})


def covered(
    level: float, samples: int, rows: int, functions: int, generator: torch.Generator
) -> float:
    """Counts the samples in which the bound holds for all posteriors, with a uniform prior.

    Each errs on half of all rows. By Donsker and Varadhan the posteriors with the largest gap for
    their divergence are p exp(t (ℓ - ℓ̂)); a fine grid of t stands for them.
    """
    losses = torch.randint(2, (samples, functions, rows), generator=generator)
    gaps = 0.5 - losses.double().mean(-1)  # (samples, functions)
    tilt = torch.cat([torch.zeros(1), torch.logspace(-1, 3, 30)]).double()
    q = torch.softmax(tilt[:, None, None] * gaps, -1)  # (tilts, samples, functions)
    divergence = torch.special.xlogy(q, q * functions).sum(-1).clamp(min=0)
    gap = (q * gaps).sum(-1)
    # The bound squared, with the divergence of each posterior.
    bound = pac_bayes_gap(0.0, rows, level) ** 2 + divergence / (2 * rows)
    return float((gap <= bound.sqrt()).all(0).double().mean())


def draw(paper: Figure, finding: Finding) -> None:
    """Coverage against ε, the guarantee and the printed one; and a closer look at large ε."""
    held, errors = finding.data["held"], finding.data["errors"]
    left, right = paper.subplots(1, 2, width_ratios=(2, 1))
    line = np.linspace(0, 1, 50)
    for axes in (left, right):
        axes.plot(line, 1 - line, color=INK, label="guaranteed: 1 − ε")
        axes.plot(line, line, "--", color=LINEAR, linewidth=0.9, label="printed: ε")
        axes.errorbar(
            list(held), list(held.values()), [2 * e for e in errors.values()], fmt="o",
            color=MODEL, markersize=5, capsize=3, label="measured, ± 2 standard errors",
        )  # fmt: skip
        axes.set(xlabel="ε")
    right.set(xlim=(0.94, 1.0), ylim=(0.94, 1.0))
    left.set(ylabel="share of samples in which it holds")
    left.set_title("the bound holds with probability 1 − ε …")
    right.set_title("… and not ε")
    paper.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)


claim = Claim(
    id="pac-bayes",
    title="The PAC-Bayes bound",
    statement=(
        "With probability at least 1 − ε over the data, for all posteriors q at once, the mean "
        "true error exceeds the mean training error by at most √((KL(q‖p) + log(2√n/ε))/(2n)). "
        'Common slips are "with probability at least ε", and 2/n for 1/(2n), which is valid but '
        "twice as large: 0.156 instead of 0.078 at n = 1000, KL = 5, ε = 0.05."
    ),
    formula=(
        r"P\Big( \forall q:\; \mathrm{E}_q \ell - \mathrm{E}_q \hat\ell \le \sqrt{\tfrac{1}{2n} "
        r"\big( KL(q \| p) + \log \tfrac{2 \sqrt n}{\epsilon} \big)} \Big) \ge 1 - \epsilon"
    ),
    sources=("M357", "E23"),
    measure=measure,
    reference="Maurer (2004), A note on the PAC Bayesian theorem. https://arxiv.org/abs/cs/0411099",
    full={"samples": 100_000},
    errata=(
        Erratum(
            "E23",
            "with probability ≥ ε: gap ≤ √((2/n)(KL + log(2√n/ε)))",
            "with probability ≥ 1 − ε: gap ≤ √((1/(2n))(KL + log(2√n/ε)))",
        ),
    ),
    draw=draw,
)
