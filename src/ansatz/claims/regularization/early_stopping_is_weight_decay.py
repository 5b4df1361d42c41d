"""Gradient descent stopped after 1/(ημ) steps shrinks as the penalty μ does."""

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from ansatz import optim
from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator, *, rate: float = 0.1, decay: float = 0.05, size: int = 25
) -> Finding:
    """Coordinates of descent on a quadratic, as shares of the minimum, beside ridge's."""
    values = torch.logspace(-4, 0.5, size, dtype=torch.float64)  # ηλ stays below 1
    basis, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    best = basis @ (1 + torch.rand(size, generator=generator, dtype=torch.float64))
    steps, printed = round(1 / (rate * decay)), round(rate / decay)
    share = descend(values, basis, best, rate, steps)
    early = descend(values, basis, best, rate, printed)
    ridge = values / (values + decay)
    # With ηT = 1/μ the two shares are functions of s = λ/μ alone, as η goes to 0.
    apart = -minimize_scalar(
        lambda s: s / (1 + s) - 1 + np.exp(-s), bounds=(0.1, 10), method="bounded"
    ).fun
    # exp(-zT) - (1 - z)^T <= z² T exp(-zT), which is largest at z = 2/T.
    lag = 4 * np.exp(-2) / steps
    low = int((values <= decay / 20).sum())
    checks = [
        Check(
            f"largest distance from ridge after T = 1/(ημ) = {steps} steps",
            float((share - ridge).abs().max()),
            float(apart),
            float(lag),
            "the largest of 1 - exp(-s) - s/(1 + s), and (ηλ)²T exp(-ηλT) <= 4/(e²T) for steps "
            "that are not infinitely small",
            "<=",
            wrong=Wrong(
                f"T = η/μ = {printed} steps",
                measured=float((early - ridge).abs().max()),
                erratum="E24",
            ),
        ),
        Check(
            "share of descent over that of ridge in the flattest directions",
            float((share / ridge)[:low].max()),
            1.0,
            (1 + rate * decay) / 40,
            "1 + λ/(2μ) at most, and λ <= μ/20; ηλ/2 for finite steps",
            wrong=Wrong(
                f"T = {printed} steps", measured=float((early / ridge)[:low].max()), erratum="E24"
            ),
        ),
        Check(
            "largest distance of descent from 1 - (1 - ηλ)^T",
            float((share - (1 - (1 - rate * values) ** steps)).abs().max()),
            0.0,
            8 * EPS * steps * float(best.norm()),
            "rounding: 8 eps per step",
        ),
    ]
    table = Table(
        ["λ", f"{steps} steps", "ridge", f"{printed} steps"],
        [list(map(float, row)) for row in zip(values, share, ridge, early, strict=True)],
    )
    data = {
        "λ": values.numpy(), "share": share.numpy(), "early": early.numpy(), "μ": decay,
        "steps": steps, "printed": printed, "rate": rate,
    }  # fmt: skip
    return Finding(checks, table, data)


def descend(
    values: torch.Tensor, basis: torch.Tensor, best: torch.Tensor, rate: float, steps: int
) -> torch.Tensor:
    """Coordinates along the eigenvectors after descent from 0, over those of the minimum."""
    hessian = basis @ torch.diag(values) @ basis.T
    theta = torch.nn.Parameter(torch.zeros_like(best))
    rule = optim.create("sgd", [theta], lr=rate)
    for _ in range(steps):
        theta.grad = hessian @ (theta.detach() - best)
        rule.step()
    return (basis.T @ theta.detach()) / (basis.T @ best)


def draw(paper: Figure, finding: Finding) -> None:
    """Both shrinkage curves."""
    axes = paper.subplots()
    data = finding.data
    values, mu = data["λ"], data["μ"]
    fine = np.geomspace(values[0], values[-1], 300)
    axes.plot(fine, fine / (fine + mu), color=INK, label="weight decay: λ / (λ + μ)")
    axes.plot(
        values, data["share"], "o", color=MODEL, markersize=5,
        label=f"stopped after 1/(ημ) = {data['steps']} steps",
    )  # fmt: skip
    axes.plot(
        values, data["early"], "s--", color=LINEAR, linewidth=0.9,
        label=f"after η/μ = {data['printed']} steps, as printed",
    )  # fmt: skip
    axes.axvline(mu, color=INK, linewidth=0.7, linestyle=":")
    axes.text(mu * 0.9, 0.97, "λ = μ", ha="right", va="top", fontsize=8.5)
    logarithmic(axes.xaxis)
    axes.set(xlabel="curvature λ of the direction", ylabel="share of the way to the minimum")
    axes.set_title(f"stopping acts like decay: η = {data['rate']}, μ = {mu}")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.55))


claim = Claim(
    id="early-stopping-is-weight-decay",
    title="Stopping after 1/(ημ) steps is like weight decay μ",
    statement=(
        "Descent from 0 with rate η has gone the share 1 − (1 − ηλ)ᵀ of the way along a direction "
        "of curvature λ. With T = 1/(ημ) that is the share λ/(λ + μ) that the penalty μ leaves, up "
        "to 0.21 in between and exactly at both ends. Often printed as T ≈ η/μ."
    ),
    formula=(
        r"1 - (1 - \eta \lambda)^T \approx \frac{\lambda}{\lambda + \mu}, \qquad "
        r"T = \frac{1}{\eta \mu}"
    ),
    sources=("M158", "E24"),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 7.8.",
    full={"size": 60, "rate": 0.02},
    errata=(Erratum("E24", "t ≈ η/μ", "T ≈ 1/(ημ)"),),
    draw=draw,
)
