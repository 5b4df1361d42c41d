"""Training on the PAC-Bayes bound gives a classifier with a certificate."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD
from ansatz.theory import gaussian_kl, pac_bayes_gap, pac_bayes_risk

LEVEL = 0.05


class Path(NamedTuple):
    """Numbers of a training run, one per step."""

    train: list[float]
    test: list[float]
    certificate: list[float]
    without: list[float]  # the bound with KL left out


def measure(generator: torch.Generator, *, steps: int = 80, samples: int = 20_000) -> Finding:
    """A random linear classifier N(m, s²) trained on its bound, on labels and on coin flips."""
    real = train(*rows(400, 10, generator, 1.5), *rows(2000, 10, generator, 1.5), steps, 1.0)
    noise = rows(40, 80, generator, 0.0)
    coin_test = rows(2000, 80, generator, 0.0)
    coin = train(*noise, *coin_test, steps, 1.0)
    fitted = train(*noise, *coin_test, steps, 0.0)
    mean, sd = torch.randn(5, generator=generator).double(), torch.tensor([0.5, 0.8, 1.0, 1.5, 0.3])
    closed, sampled, error, swapped = divergence(mean, sd.double(), samples, generator)
    error_test = 0.5 / 2000**0.5
    checks = [
        Check(
            "true error of the trained classifier, against its certificate",
            real.test[-1],
            real.certificate[-1],
            4 * error_test,
            "4 standard errors over 2000 rows",
            "<=",
            wrong=Wrong(
                "KL left out, on coin flips fitted without it",
                measured=fitted.test[-1],
                predicted=fitted.without[-1],
            ),
        ),
        Check(
            "the certificate, against a coin's error",
            real.certificate[-1],
            0.5,
            0.0,
            "a certificate below ½ beats a coin",
            "<=",
            wrong=Wrong("on labels that are coin flips", measured=coin.certificate[-1]),
        ),
        Check(
            "true error on coin flips, against the certificate",
            coin.test[-1],
            coin.certificate[-1],
            4 * error_test,
            "4 standard errors over 2000 rows",
            "<=",
        ),
        Check(
            "KL of two Gaussians in closed form",
            closed,
            sampled,
            5 * error,
            f"5 standard errors over {samples} draws",
            wrong=Wrong("prior and posterior exchanged", measured=swapped),
        ),
    ]  # fmt: skip
    table = Table(
        ["data", "training error", "true error", "certificate"],
        [
            ["labels", real.train[-1], real.test[-1], real.certificate[-1]],
            ["coin flips", coin.train[-1], coin.test[-1], coin.certificate[-1]],
            ["coin flips, no KL", fitted.train[-1], fitted.test[-1], fitted.certificate[-1]],
        ],
    )
    return Finding(checks, table, {"real": real, "fitted": fitted})


def rows(n: int, d: int, generator: torch.Generator, signal: float) -> tuple[Tensor, Tensor]:
    """Two normal clouds, and their labels -1 and 1."""
    y = 2.0 * torch.randint(2, (n,), generator=generator).double() - 1
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    x[:, 0] += signal * y
    return x, y


def error_of(mean: Tensor, sd: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Mean error of the classifiers w ~ N(m, s² I): Φ(-y m·x / (s ‖x‖)), exactly."""
    return torch.special.ndtr(-y * (x @ mean) / (sd * x.norm(dim=1))).mean()


def train(x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor, steps: int, weight: float) -> Path:
    """Adam on E_q ℓ̂ + √((weight · KL + log(2√n/ε)) / 2n), with the prior N(0, I)."""
    mean = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    log_sd = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    rule = torch.optim.Adam([mean, log_sd], lr=0.1)
    n, one = len(x), torch.ones(1, dtype=torch.float64)
    path = Path([], [], [], [])
    for _ in range(steps + 1):
        risk = error_of(mean, log_sd.exp(), x, y)
        kl = gaussian_kl(mean, log_sd.exp().expand_as(mean), 0 * one, one)
        bound = ((weight * kl + math.log(2 * n**0.5 / LEVEL)) / (2 * n)).sqrt()
        with torch.no_grad():
            path.train.append(float(risk))
            path.test.append(float(error_of(mean, log_sd.exp(), new_x, new_y)))
            path.certificate.append(pac_bayes_risk(float(risk), float(kl), n, LEVEL))
            path.without.append(float(risk) + pac_bayes_gap(0.0, n, LEVEL))
        rule.zero_grad()
        (risk + bound).backward()
        rule.step()
    return path


def divergence(
    mean: Tensor, sd: Tensor, samples: int, generator: torch.Generator
) -> tuple[float, float, float, float]:
    """KL from N(m, s²) to N(0, 1): closed, by sampling, its standard error; and the other way."""
    zero, one = torch.zeros_like(mean), torch.ones_like(mean)
    w = mean + sd * torch.randn(samples, len(mean), generator=generator, dtype=torch.float64)
    normal = torch.distributions.Normal
    ratio = (normal(mean, sd).log_prob(w) - normal(zero, one).log_prob(w)).sum(1)
    closed, other = gaussian_kl(mean, sd, zero, one), gaussian_kl(zero, one, mean, sd)
    return float(closed), float(ratio.mean()), float(ratio.std() / samples**0.5), float(other)


def draw(paper: Figure, finding: Finding) -> None:
    """Errors and certificates on the way, on labels and on coin flips."""
    panels = paper.subplots(1, 2, sharey=True)
    titles = ("labels, trained on the bound", "coin flips, trained without KL")
    for axes, path, title in zip(
        panels, (finding.data["real"], finding.data["fitted"]), titles, strict=True
    ):
        t = np.arange(len(path.train))
        axes.plot(t, path.certificate, color=INK, label="certificate")
        axes.plot(t, path.test, color=MODEL, label="true error")
        axes.plot(t, path.train, color=THIRD, label="training error")
        axes.plot(t, path.without, "--", color=LINEAR, linewidth=0.9, label="bound without KL")
        axes.set(xlabel="step", ylim=(0, 1.02))
        axes.set_title(title)
    panels[0].set_ylabel("error")
    panels[0].legend()


claim = Claim(
    id="pac-bayes-training",
    title="Training on the PAC-Bayes bound",
    statement=(
        "Training error plus bound is an objective: with Gaussian prior and posterior its KL has a "
        "closed form. A random linear classifier trained on it gets a certificate below ½ that its "
        "true error respects; on coin flips the certificate is above ½, as it must be, and the "
        "bound without KL is false."
    ),
    formula=(
        r"\min_{m, s}\; \mathrm{E}_q \hat\ell + \sqrt{\tfrac{1}{2n} \big( KL(q \| p) + "
        r"\log \tfrac{2 \sqrt n}{\epsilon} \big)}, \quad KL = \sum_i \log \tfrac{s_{0i}}{s_i} + "
        r"\tfrac{s_i^2 + (m_i - m_{0i})^2}{2 s_{0i}^2} - \tfrac12"
    ),
    sources=("M358",),
    measure=measure,
    reference="Dziugaite and Roy (2017), Computing nonvacuous generalization bounds. https://arxiv.org/abs/1703.11008",
    full={"steps": 1500, "samples": 1_000_000},
    draw=draw,
)
