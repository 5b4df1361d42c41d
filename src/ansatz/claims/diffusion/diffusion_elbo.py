"""The evidence bound of a diffusion, term by term."""

import math
from typing import NamedTuple

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.diffusion._chain import Schedule, schedule


class Model(NamedTuple):
    """A linear way back: p(x_{t-1} | x_t) = N(gain x_t + shift, variance), x_T ~ N(0, 1)."""

    gain: np.ndarray
    shift: np.ndarray
    variance: np.ndarray


def measure(generator: torch.Generator, *, steps: int = 6, start: float = 1.2) -> Finding:
    """The whole bound from the joint normal distribution, the sum of KL terms, and log p(x_0)."""
    noising = schedule(steps)
    draws = torch.rand(3, steps, generator=generator, dtype=torch.float64).numpy()
    model = Model(0.7 + 0.4 * draws[0], draws[1] - 0.5, noising.beta * (0.8 + 0.4 * draws[2]))
    mean, covariance = joint(noising, start)
    whole = direct(model, mean, covariance, start)
    parts = terms(noising, model, mean, covariance, start)
    printed = terms(noising, model, mean, covariance, start, printed=True)
    evidence = log_evidence(model, start)
    rounding = 64 * steps * 2.0**-52 * float(np.linalg.cond(covariance)) * (1 + abs(whole))
    weights = noise_weight_error(noising, generator)
    checks = [
        Check(
            "sum of the terms minus the bound",
            float(sum(parts)) - whole,
            0.0,
            rounding,
            "rounding times the condition number of the joint covariance",
            wrong=Wrong(
                "q(x_t | x_{t-1}, x₀) in the KL terms",
                measured=float(sum(printed)) - whole,
                erratum="E12",
            ),
        ),
        Check(
            "bound",
            float(sum(parts)),
            evidence,
            rounding,
            "rounding, as above",
            "<=",
            Wrong("the loss with its sign flipped", measured=-float(sum(parts)), erratum="E12"),
        ),
        Check(
            "largest error of the weight β²/(2σ²α(1-ᾱ)) of ‖ε-ε̂‖²",
            weights,
            0.0,
            256 * 2.0**-52 / float(noising.beta.min()),
            "rounding, magnified by 1/β in the difference of two means",
            wrong=Wrong(
                "without the half", measured=noise_weight_error(noising, generator, factor=1.0)
            ),
        ),
        Check(
            "largest β̃ - β: the range of σ² is [β̃, β]",
            float((noising.posterior_variance - noising.beta).max()),
            0.0,
            2.0**-52,
            "rounding",
            "<=",
            Wrong(
                "the range [β, β̃]",
                measured=float((noising.beta - noising.posterior_variance).max()),
                erratum="E12",
            ),
        ),
    ]
    table = Table(["term", "right", "printed"], [
        [f"t = {t}", parts[t], printed[t]] for t in range(steps + 1)
    ])  # fmt: skip
    return Finding(checks, table)


def joint(noising: Schedule, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of x_1..x_T given x_0, from x = A x_before + noise, solved at once."""
    steps = len(noising.beta)
    chain = np.eye(steps) - np.diag(np.sqrt(noising.alpha[1:]), -1)
    force = np.zeros(steps)
    force[0] = np.sqrt(noising.alpha[0]) * start
    inverse = np.linalg.inv(chain)
    return inverse @ force, inverse @ np.diag(noising.beta) @ inverse.T


def direct(model: Model, mean: np.ndarray, covariance: np.ndarray, start: float) -> float:
    """E_q log p(x_0..x_T) plus the entropy of q."""
    steps = len(mean)
    every = np.concatenate([[start], mean])
    padded = np.zeros((steps + 1, steps + 1))
    padded[1:, 1:] = covariance
    total = 0.5 * np.linalg.slogdet(2 * math.pi * math.e * covariance)[1]
    total -= 0.5 * (math.log(2 * math.pi) + every[-1] ** 2 + padded[-1, -1])
    for t in range(steps):
        row = np.zeros(steps + 1)
        row[t], row[t + 1] = 1, -model.gain[t]
        square = (row @ every - model.shift[t]) ** 2 + row @ padded @ row
        total -= 0.5 * (math.log(2 * math.pi * model.variance[t]) + square / model.variance[t])
    return float(total)


def terms(
    noising: Schedule,
    model: Model,
    mean: np.ndarray,
    covariance: np.ndarray,
    start: float,
    *,
    printed: bool = False,
) -> list[float]:
    """E log p(x_0 | x_1), minus each KL of a step, minus the KL of the end."""
    steps = len(mean)
    square = (start - model.gain[0] * mean[0] - model.shift[0]) ** 2
    square += model.gain[0] ** 2 * covariance[0, 0]
    found = [-0.5 * (math.log(2 * math.pi * model.variance[0]) + square / model.variance[0])]
    for t in range(1, steps):  # x_t and x_{t+1}, at the indices t - 1 and t
        gap, wide = model.shift[t], noising.posterior_variance[t]
        row = np.zeros(steps)
        if printed:  # q(x_t | x_{t-1}, x_0) = q(x_t | x_{t-1}): the step forward
            wide = noising.beta[t - 1]
            constant = np.sqrt(noising.alpha[0]) * start if t == 1 else 0.0
            if t > 1:
                row[t - 2] += np.sqrt(noising.alpha[t - 1])
        else:
            scale = 1 - noising.total[t]
            constant = np.sqrt(noising.before[t]) * noising.beta[t] / scale * start
            row[t] += np.sqrt(noising.alpha[t]) * (1 - noising.before[t]) / scale
        row[t] -= model.gain[t]
        square = (row @ mean + constant - gap) ** 2 + row @ covariance @ row
        found.append(-divergence(wide, square, model.variance[t]))
    found.append(-divergence(covariance[-1, -1], mean[-1] ** 2, 1.0))
    return found


def divergence(variance: float, square: float, other: float) -> float:
    """KL of two normals; ``square`` is the (expected) squared distance of their means."""
    return float(0.5 * (math.log(other / variance) + (variance + square) / other - 1))


def log_evidence(model: Model, start: float) -> float:
    """Log p(x_0): a linear image of normal noise is normal."""
    mean, variance = 0.0, 1.0
    for t in reversed(range(len(model.gain))):
        mean = model.gain[t] * mean + model.shift[t]
        variance = model.gain[t] ** 2 * variance + model.variance[t]
    return -0.5 * (math.log(2 * math.pi * variance) + (start - mean) ** 2 / variance)


def noise_weight_error(
    noising: Schedule, generator: torch.Generator, *, factor: float = 0.5
) -> float:
    """Largest relative error of the weight against the KL of two steps back with one variance."""
    worst = 0.0
    weights = 2 * factor * noising.process.weight(noising.times[1:], "evidence").numpy()
    for t in range(1, len(noising.beta)):
        x, noise, guess = torch.randn(3, generator=generator, dtype=torch.float64).tolist()
        means = [
            (x - noising.beta[t] / np.sqrt(1 - noising.total[t]) * e) / np.sqrt(noising.alpha[t])
            for e in (noise, guess)
        ]
        sigma2 = noising.posterior_variance[t]
        exact = divergence(sigma2, (means[0] - means[1]) ** 2, sigma2)
        weight = weights[t - 1]
        scale = weight * (noise**2 + guess**2)
        worst = max(worst, abs(weight * (noise - guess) ** 2 - exact) / scale)
    return float(worst)


claim = Claim(
    id="diffusion-elbo",
    title="The evidence bound of a diffusion",
    statement=(
        "The bound on log p(x_0) is the reconstruction term, minus a KL divergence per step "
        "between q(x_t | x_{t+1}, x_0) and p(x_t | x_{t+1}), minus that of the end. Each KL is a "
        "weighted squared error of the noise, and σ² lies between β̃ and β. Common slips condition "
        "q on x_{t-1}, print the range as [β, β̃] or flip the sign."
    ),
    formula=(
        r"\log p(x_0) \ge \mathbb{E}_q \log p(x_0 \mid x_1) - \sum_{t=1}^{T-1} \mathbb{E}_q "
        r"\mathrm{KL}\bigl(q(x_t \mid x_{t+1}, x_0) \,\|\, p(x_t \mid x_{t+1})\bigr) "
        r"- \mathrm{KL}\bigl(q(x_T \mid x_0) \,\|\, p(x_T)\bigr)"
    ),
    sources=("E12", "M387", "M388", "M389"),
    measure=measure,
    reference=(
        "Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, eqs. 5 and 12. "
        "https://arxiv.org/abs/2006.11239"
    ),
    full={"steps": 50},
    errata=(
        Erratum(
            "E12",
            "KL(q(x_t|x_{t-1},x₀) ‖ p(x_t|x_{t+1})), σ² in [β, β̃]",
            "KL(q(x_t|x_{t+1},x₀) ‖ p(x_t|x_{t+1})), σ² in [β̃, β]",
        ),
    ),
)
