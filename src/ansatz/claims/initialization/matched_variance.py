"""A normal distribution and a uniform one of equal variance are the same initialisation."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import initializers

PAIRS = {
    "normal": "uniform",
    "lecun_normal": "lecun_uniform",
    "glorot_normal": "glorot_uniform",
    "he_normal": "he_uniform",
}


def measure(generator: torch.Generator, *, inputs: int = 300, outputs: int = 200) -> Finding:
    """Variances of the library's weights, in standard errors of the prediction."""
    n, m = inputs, outputs
    deviation = {
        "normal": 1.0,
        "lecun_normal": n**-0.5,
        "glorot_normal": (2 / (n + m)) ** 0.5,
        "he_normal": (2 / n) ** 0.5,
    }
    x = torch.randn(n, dtype=torch.float64, generator=generator)
    scores, rows, outside, layer = [], [], 0.0, []
    narrow = torch.empty(m, n, dtype=torch.float64).uniform_(-1, 1, generator=generator)
    for normal, uniform in PAIRS.items():
        for name, kurtosis in ((normal, 3.0), (uniform, 1.8)):
            weight = torch.empty(m, n, dtype=torch.float64)
            initializers.get(name)(weight, generator=generator)
            z = weight / deviation[normal]
            # The mean of z² over N draws: variance (kurtosis - 1) / N.
            scores.append(error_of(z, kurtosis))
            # (Wx)² / (σ² |x|²) is a square of variance 1, normal to order 1/n.
            layer.append(float(((z @ x) ** 2).mean() / (x @ x) - 1) / (2 / m) ** 0.5)
            if name == uniform:
                outside = max(outside, float(z.abs().max()))
            rows.append([name, float((weight**2).mean()), deviation[normal] ** 2])
    checks = [
        Check(
            "largest deviation of a variance, in standard errors, over 8 schemes",
            max(abs(score) for score in scores),
            0.0,
            4.5,
            f"a normal quantile for 8 comparisons of {m * n} draws: beyond it once in 20,000",
            wrong=Wrong("U[-σ, σ] for U[-√3 σ, √3 σ]", measured=abs(error_of(narrow, 1.8))),
        ),
        Check(
            "largest uniform weight over its standard deviation",
            outside,
            3**0.5,
            # The largest of N uniforms falls short of the end by about one part in N.
            20 * 3**0.5 / (m * n),
            f"the largest of {m * n} draws: short by 20 parts in as many with probability e⁻²⁰",
            wrong=Wrong("the end σ", predicted=1.0),
        ),
        Check(
            "largest deviation of Var(Wx) / (σ² |x|²) from 1, in standard errors",
            max(abs(score) for score in layer),
            0.0,
            4.5,
            f"a quantile for 8 comparisons of {m} outputs",
            wrong=Wrong(
                "U[-σ, σ]",
                measured=abs(float(((narrow @ x) ** 2).mean() / (x @ x) - 1) / (2 / m) ** 0.5),
            ),
        ),
    ]
    table = Table(["scheme", "variance", "predicted"], rows)
    return Finding(checks, table, {"scores": scores, "wrong": error_of(narrow, 1.8)})


def error_of(z: Tensor, kurtosis: float) -> float:
    """The deviation of the mean of z² from 1, in standard errors."""
    return float(((z**2).mean() - 1) / ((kurtosis - 1) / z.numel()) ** 0.5)


def draw(paper: Figure, finding: Finding) -> None:
    """The deviation of each scheme's variance, in standard errors."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    names = [name for pair in PAIRS.items() for name in pair]
    axes = paper.subplots()
    axes.axvspan(-2, 2, color=INK, alpha=0.12, lw=0, label="± 2 standard errors")
    for k, (name, score) in enumerate(zip(names, finding.data["scores"], strict=True)):
        kind, colour = ("o", MODEL) if "normal" in name else ("s", LINEAR)
        axes.plot(score, k, kind, color=colour, markersize=6)
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="(variance - prediction) / standard error", xlim=(-5, 5))
    axes.set_title("normal and uniform weights have the predicted variances")
    axes.legend(loc="upper right")


claim = Claim(
    id="matched-variance",
    title="Normal and uniform weights of equal variance",
    statement=(
        "U[-√3 σ, √3 σ] has the variance σ² of N(0, σ²), so that every scheme has a uniform twin "
        "that has the same effect on a layer's outputs: Var(Wx) = σ² |x|² for both."
    ),
    formula=(
        r"\mathrm{Var}\, U[-a, a] = \frac{a^2}{3} = \sigma^2 \iff a = \sqrt3\, \sigma, \qquad "
        r"\mathrm{Var}(w^\top x) = \sigma^2 \|x\|^2"
    ),
    sources=("M142",),
    measure=measure,
    reference="Glorot and Bengio (2010), Understanding the difficulty of training deep "
    "feedforward neural networks.",
    full={"inputs": 3000, "outputs": 2000},
    draw=draw,
)
