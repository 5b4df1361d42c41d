"""A step back is less uncertain than a step forward only while the entropy grows."""

import math

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.diffusion._chain import backward


def measure(generator: torch.Generator, *, beta: float = 0.3) -> Finding:
    """Both conditional entropies for normal data of several variances, the backward by Bayes."""
    x = float(torch.randn((), generator=generator, dtype=torch.float64))
    forward = 0.5 * math.log(2 * math.pi * math.e * beta)
    variances = np.geomspace(0.1, 10, 21)
    excess = np.array([backward(0.0, v, beta, x).entropy - forward for v in variances])
    growth = 0.5 * np.log(((1 - beta) * variances + beta) / variances)  # H(x_t) - H(x_{t-1})
    wide = backward(0.0, 4.0, beta, x).entropy
    rounding = 4_001 * 2.0**-52 * 16
    because = "rounding of a sum over 4001 grid points, log density up to 16"
    checks = [
        Check(
            "H(x_{t-1} | x_t) - H(x_t | x_{t-1}) for data N(0, 4)",
            wide - forward,
            0.5 * math.log(4 / ((1 - beta) * 4 + beta)),
            rounding,
            because,
            wrong=Wrong("at most 0, always", predicted=0.0, erratum="E13"),
        ),
        Check(
            "largest |H(x_{t-1}|x_t) - H(x_t|x_{t-1}) + H(x_t) - H(x_{t-1})| over variances",
            float(np.abs(excess + growth).max()),
            0.0,
            rounding,
            because,
        ),
        Check(
            "largest excess where the entropy grows",
            float(excess[growth >= -1e-12].max()),
            0.0,
            rounding,
            because,
            "<=",
            Wrong("the condition dropped", measured=float(excess.max()), erratum="E13"),
        ),
    ]
    table = Table(["variance", "back - forward", "H(x_t) - H(x_{t-1})"], [
        [v, e, g] for v, e, g in zip(variances, excess, growth, strict=True)
    ])  # fmt: skip
    fine = np.geomspace(0.1, 10, 200)
    line = -0.5 * np.log(((1 - beta) * fine + beta) / fine)
    data = {"variances": variances, "excess": excess, "fine": fine, "line": line}
    return Finding(checks, table, data)


def draw(paper: Figure, finding: Finding) -> None:
    """The excess over the variance of the data."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.semilogx(data["fine"], data["line"], color=MODEL, label="H(x before) - H(x after)")
    axes.plot(data["variances"], data["excess"], "o", color=INK, label="by Bayes' rule")
    axes.axhline(0, color=LINEAR, lw=1, ls="--", label="printed bound: never above")
    axes.set(xlabel="variance of the data (noise has 1)", ylabel="back minus forward, nats")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title("a step back is the less certain one when noise narrows the data")
    axes.legend(loc="lower right")


claim = Claim(
    id="diffusion-entropy",
    title="When a step back is no more uncertain than the step forward",
    statement=(
        "H(x_{t-1} | x_t) ≤ H(x_t | x_{t-1}) holds exactly when the entropy of x_t is at least "
        "that of x_{t-1}. The condition is often left out, but data N(0, 4) with β = 0.3 have "
        "0.944 against 0.817."
    ),
    formula=(r"H(x_{t-1} \mid x_t) - H(x_t \mid x_{t-1}) = H(x_{t-1}) - H(x_t)"),
    sources=("E13", "M393"),
    measure=measure,
    reference="Cover and Thomas (2006), Elements of Information Theory, theorem 2.2.1.",
    errata=(Erratum("E13", "H(x_{t-1}|x_t) ≤ H(x_t|x_{t-1})", "only if H(x_t) ≥ H(x_{t-1})"),),
    draw=draw,
)
