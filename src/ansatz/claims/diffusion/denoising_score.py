"""What the simple loss of a diffusion estimates, and that its reverse equation leads back."""

import math

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.generative.diffusion import Process, ReverseSDE

Array = np.ndarray


def measure(generator: torch.Generator, *, points: int = 2_001, steps: int = 400) -> Finding:
    """Quadrature for a mixture of two normal distributions, and a recursion for a normal one."""
    process = Process("linear")
    t = 0.2 + 0.6 * float(torch.rand((), generator=generator, dtype=torch.float64))
    alpha, sigma = float(process.alpha(t)), float(process.sigma(t))
    x = np.linspace(-9, 9, points)
    score, density = score_of(x, alpha, sigma)
    noise = expected_noise(x, alpha, sigma, points)
    inside = density > 1e-6
    bump = 0.1 * np.cos(x)
    excess = float(density @ ((noise + bump) ** 2 - noise**2 - 2 * bump * noise) * (x[1] - x[0]))
    by_bump = float(density @ bump**2 * (x[1] - x[0]))
    gaps = [objective_gap(x, density, score, slope) for slope in (-0.5, -2.0)]
    rounding = points * 2.0**-52 * 64 / sigma
    half, whole = (final_variance(process, k) for k in (steps // 2, steps))
    checks = [
        Check(
            "largest error of -σ times the score as E[ε | x_t]",
            float(np.abs(noise + sigma * score)[inside].max()),
            0.0,
            rounding / 1e-6,
            "rounding of sums over the grid, over the least density looked at",
            wrong=Wrong(
                "the score over σ", measured=float(np.abs(noise + score / sigma)[inside].max())
            ),
        ),
        Check(
            "what a departure δ from E[ε | x_t] adds to the simple loss, minus E δ²",
            excess - by_bump,
            0.0,
            rounding,
            "rounding of sums over the grid",
            wrong=Wrong("E δ² counted twice", measured=excess - 2 * by_bump),
        ),
        Check(
            "E[s²/2 + s'] minus half the Fisher divergence, for one s minus for another",
            gaps[0][0] - gaps[1][0],
            0.0,
            rounding,
            "rounding of sums over the grid",
            wrong=Wrong("without the half", measured=gaps[0][1] - gaps[1][1]),
        ),
        Check(
            "variance at the end of the reverse equation, for data of variance 1/4",
            whole,
            0.25,
            1.5 * abs(whole - half),
            f"first order: {steps} steps err by about what {steps // 2} change",
            wrong=Wrong(
                "half the score, as in the flow", measured=final_variance(process, steps, 0.5)
            ),
        ),
    ]
    table = Table(
        ["quantity", "value"], [["t", t], ["α", alpha], ["σ", sigma], ["variance", whole]]
    )
    return Finding(checks, table)


MEANS, DEVIATIONS, SHARES = np.array([-1.5, 1.0]), np.array([0.4, 0.7]), np.array([0.4, 0.6])


def score_of(x: Array, alpha: float, sigma: float) -> tuple[Array, Array]:
    """Score and density of x_t."""
    variance = alpha**2 * DEVIATIONS**2 + sigma**2
    gap = x[:, None] - alpha * MEANS
    parts = SHARES * np.exp(-(gap**2) / (2 * variance)) / np.sqrt(2 * math.pi * variance)
    density = parts.sum(1)
    return (parts * -gap / variance).sum(1) / density, density


def expected_noise(x: Array, alpha: float, sigma: float, points: int) -> Array:
    """E[ε | x_t = x] by Bayes' rule, summed over a grid of starts."""
    start = np.linspace(-8, 8, 2 * points)
    prior = (
        SHARES * np.exp(-((start[:, None] - MEANS) ** 2) / (2 * DEVIATIONS**2)) / DEVIATIONS
    ).sum(1)
    found = np.empty(len(x))
    for k, place in enumerate(x):
        noise = (place - alpha * start) / sigma
        weight = prior * np.exp(-(noise**2) / 2)
        found[k] = weight @ noise / max(weight.sum(), 1e-300)
    return found


def objective_gap(x: Array, density: Array, score: Array, slope: float) -> tuple[float, float]:
    """The objective of score matching minus the divergence of s(x) = slope x: half, and whole."""
    width = x[1] - x[0]
    value = float(density @ ((slope * x) ** 2 / 2 + slope) * width)
    divergence = float(density @ (slope * x - score) ** 2 * width)
    return value - divergence / 2, value - divergence


def final_variance(process: Process, steps: int, share: float = 1.0) -> float:
    """The variance that the reverse equation's steps make of noise, with the exact score."""
    sampler = ReverseSDE(process, process.times(steps))
    variance = 1.0
    for now, later in zip(sampler.levels, sampler.levels[1:], strict=False):
        total = 2 * (math.log(later.alpha) - math.log(now.alpha))
        scale = now.alpha**2 * 0.25 + now.sigma**2  # the score is -x / scale
        gain = 1 + total / 2 - share * total / scale
        variance = gain**2 * variance + (total if later.t else 0.0)
    return variance


claim = Claim(
    id="denoising-score",
    title="What the simple loss of a diffusion estimates",
    statement=(
        "The simple loss is least at E[ε | x_t], which is -σ_t times the score of the density of "
        "x_t; a departure δ adds E δ². The objective of score matching, which knows no density, is "
        "half the Fisher divergence up to a constant. With the exact score the reverse stochastic "
        "equation leads back to the variance of the data."
    ),
    formula=(
        r"\arg\min_f E \|\varepsilon - f(x_t)\|^2 = E[\varepsilon \mid x_t] = "
        r"-\sigma_t \nabla \log q_t(x_t), \qquad "
        r"E\bigl[\tfrac12 s^2 + s'\bigr] = \tfrac12 E (s - \nabla \log q)^2 + c"
    ),
    sources=("M390", "M391", "M392"),
    measure=measure,
    reference=(
        "Song et al. (2021), Score-based generative modeling through stochastic differential "
        "equations, section 3. https://arxiv.org/abs/2011.13456"
    ),
    full={"points": 4_001, "steps": 2_000},
)
