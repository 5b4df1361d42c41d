"""Many steps of noise at once: the distribution of x_t given x_0."""

import numpy as np
import torch
from scipy import stats

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.diffusion._chain import schedule


def measure(
    generator: torch.Generator, *, steps: int = 20, runs: int = 4_000, start: float = 3.0
) -> Finding:
    """Simulates the chain and compares mean, variance and energy at each step."""
    noising = schedule(steps)
    x = torch.full((runs,), start, dtype=torch.float64)
    mean, variance, energy = np.empty(steps), np.empty(steps), np.empty(steps)
    for t in range(steps):
        noise = torch.randn(runs, generator=generator, dtype=torch.float64)
        before = float((x**2).mean())
        x = np.sqrt(noising.alpha[t]) * x + np.sqrt(noising.beta[t]) * noise
        mean[t], variance[t] = float(x.mean()), float(x.var())
        deviation = np.sqrt(
            4 * noising.alpha[t] * before * noising.beta[t] + 2 * noising.beta[t] ** 2
        )
        gain = float((x**2).mean()) - noising.alpha[t] * before - noising.beta[t]
        energy[t] = gain / (deviation / np.sqrt(runs))
    none, one = torch.zeros(steps, dtype=torch.float64), torch.ones(steps, dtype=torch.float64)
    closed = noising.process.add_noise(start * one, none, noising.times).numpy()
    sd = noising.process.add_noise(none, one, noising.times).numpy()
    right = np.abs(mean - closed) / (sd / np.sqrt(runs))
    printed = np.abs(mean - np.sqrt(noising.total)) / (sd / np.sqrt(runs))
    width = np.abs(variance / sd**2 - 1) / np.sqrt(2 / (runs - 1))
    limit = float(stats.norm.isf(1e-6 / (2 * steps)))
    because = "normal quantile at 1e-6, shared by all steps (Bonferroni)"
    checks = [
        Check(
            "largest deviation of the mean, in standard errors",
            float(right.max()),
            0.0,
            limit,
            because,
            wrong=Wrong("mean √ᾱ without x₀", measured=float(printed.max()), erratum="E11"),
        ),
        Check(
            "largest deviation of the variance from 1-ᾱ, in standard errors",
            float(width.max()),
            0.0,
            limit + 2 / np.sqrt(runs) * limit**2,
            f"{because}; the second term for the skew of a chi-squared distribution",
        ),
        Check(
            "largest deviation of E x² from α x² + β, in standard errors",
            float(np.abs(energy).max()),
            0.0,
            limit + 2 / np.sqrt(runs) * limit**2,
            f"{because}; the second term for the skew of a chi-squared distribution",
        ),
    ]
    table = Table(["t", "mean", "√ᾱ x₀", "variance", "1-ᾱ"], [
        [t + 1, mean[t], np.sqrt(noising.total[t]) * start, variance[t], sd[t] ** 2]
        for t in range(steps)
    ])  # fmt: skip
    data = {"mean": mean, "sd": sd, "right": np.sqrt(noising.total) * start, "runs": runs}
    return Finding(checks, table, {**data, "printed": np.sqrt(noising.total)})


def draw(paper: Figure, finding: Finding) -> None:
    """The mean and the standard deviation of x_t over t."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    t = np.arange(1, len(data["mean"]) + 1)
    low, high = data["right"] - data["sd"], data["right"] + data["sd"]
    axes.fill_between(t, low, high, color=MODEL, alpha=0.15, lw=0, label="± √(1-ᾱ)")
    axes.plot(t, data["right"], color=MODEL, label="√ᾱ x₀")
    axes.plot(t, data["printed"], "--", color=LINEAR, lw=1, label="printed: √ᾱ")
    axes.errorbar(t, data["mean"], data["sd"], fmt="o", color=INK, lw=0.8,
                  label="simulated: mean and sd")  # fmt: skip
    axes.set(xlabel="step t", ylabel="x_t, started at 3")
    axes.locator_params(axis="x", integer=True)
    axes.set_title("many small noisy steps are one large one")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="ddpm-closed-form",
    title="The distribution of a diffusion after t steps",
    statement=(
        "After t steps of x ← √(1-β) x + √β ε, x_t is normal with mean √ᾱ_t x_0 and variance "
        "1-ᾱ_t, and each step maps the energy x² to (1-β) x² + β on average. A common slip leaves "
        "x_0 out of the mean."
    ),
    formula=(
        r"q(x_t \mid x_0) = \mathcal{N}\bigl(\sqrt{\bar\alpha_t}\, x_0, (1 - \bar\alpha_t) I\bigr),"
        r" \qquad \bar\alpha_t = \prod_{s \le t} (1 - \beta_s)"
    ),
    sources=("E11", "M382", "M383"),
    measure=measure,
    reference=(
        "Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, eq. 4. "
        "https://arxiv.org/abs/2006.11239"
    ),
    full={"runs": 200_000},
    errata=(Erratum("E11", "N(√ᾱ_t, (1-ᾱ_t) I)", "N(√ᾱ_t x₀, (1-ᾱ_t) I)"),),
    draw=draw,
)
