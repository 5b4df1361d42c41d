"""The change of measure behind PAC-Bayes, with equality at the tilted distribution."""

import numpy as np
import torch
from scipy.special import rel_entr
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(generator: torch.Generator, *, atoms: int = 30, distributions: int = 300) -> Finding:
    """Random distributions q on a finite set, the tilted one, and the gradient there."""
    p = draw_distribution(atoms, generator)
    x = 1.5 * torch.randn(atoms, generator=generator, dtype=torch.float64)
    right = float(torch.logsumexp(p.log() + x, 0))
    tilted = torch.softmax(p.log() + x, 0)
    others = [draw_distribution(atoms, generator) for _ in range(distributions)]
    others += [torch.softmax(p.log() + t * x, 0) for t in np.linspace(0, 3, 61)]
    values = [value(q, p, x) for q in others]
    distances = [kl(q, tilted) for q in others]
    rest = max(abs(right - v - d) for v, d in zip(values, distances, strict=True))
    bare = max(float(q @ x) for q in others) - right
    twice = torch.softmax(p.log() + 2 * x, 0)
    turned = max(abs(right - v - kl(tilted, q)) for v, q in zip(values, others, strict=True))
    rounding = 32 * EPS * atoms * max(1.0, float(x.abs().max()))
    because = "rounding: 32 eps times the atoms and the largest value"
    checks = [
        Check(
            "largest excess of E_q X - KL(q‖p) over log E_p exp X",
            max(values) - right,
            0.0,
            rounding,
            because,
            "<=",
            wrong=Wrong("without KL", measured=bare),
        ),
        Check(
            "distance from equality at q ∝ p exp X",
            right - value(tilted, p, x),
            0.0,
            rounding,
            because,
            wrong=Wrong("at q ∝ p exp 2X", measured=right - value(twice, p, x)),
        ),
        Check(
            "largest distance of the gap from KL(q‖q*)",
            rest,
            0.0,
            rounding,
            because,
            wrong=Wrong("from KL(q*‖q)", measured=turned),
        ),
        Check(
            "largest slope of E_q X - KL(q‖p) in the logits of q at the tilted distribution",
            slope(p.log() + x, p, x),
            0.0,
            rounding,
            because,
            wrong=Wrong("at p itself", measured=slope(p.log(), p, x)),
        ),
    ]  # fmt: skip
    grid = np.linspace(0, 2.5, 26)
    path = [torch.softmax(p.log() + t * x, 0) for t in grid]
    data = {
        "t": grid, "value": [value(q, p, x) for q in path],
        "mean": [float(q @ x) for q in path], "right": right,
    }  # fmt: skip
    table = Table(
        ["t", "E_q X", "KL(q‖p)", "E_q X - KL"],
        [
            [t, float(q @ x), kl(q, p), value(q, p, x)]
            for t, q in zip(grid[::5], path[::5], strict=True)
        ],
    )
    return Finding(checks, table, data)


def draw_distribution(atoms: int, generator: torch.Generator) -> Tensor:
    """Uniform on the simplex: exponentials, normalised."""
    e = -torch.rand(atoms, generator=generator, dtype=torch.float64).clamp(min=1e-12).log()
    return e / e.sum()


def kl(q: Tensor, p: Tensor) -> float:
    """By scipy."""
    return float(rel_entr(q.numpy(), p.numpy()).sum())


def value(q: Tensor, p: Tensor, x: Tensor) -> float:
    """The bounded side of the inequality."""
    return float(q @ x) - kl(q, p)


def slope(logits: Tensor, p: Tensor, x: Tensor) -> float:
    """Of the bounded side, by autograd."""
    logits = logits.clone().requires_grad_()
    q = torch.softmax(logits, 0)
    (gradient,) = torch.autograd.grad(q @ x - (q * (q / p).log()).sum(), logits)
    return float(gradient.abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """Along the distributions p exp(tX)."""
    axes = paper.subplots()
    data = finding.data
    axes.axhline(data["right"], color=INK, label="log E_p exp X")
    axes.plot(data["t"], data["value"], "o", color=MODEL, label="E_q X − KL(q‖p)")
    axes.plot(data["t"], data["mean"], "--", color=LINEAR, linewidth=0.9, label="E_q X alone")
    axes.axvline(1, color=INK, linewidth=0.6, linestyle=":")
    axes.set(xlabel="tilt t of q ∝ p exp(tX)", ylabel="nats")
    axes.set_title("the bound is touched at t = 1, where q is p tilted by exp X")
    axes.legend()


claim = Claim(
    id="donsker-varadhan",
    title="The inequality of Donsker and Varadhan",
    statement=(
        "For every distribution q, the mean of X under q is at most KL(q‖p) plus the log of the "
        "mean of exp X under p. The gap is KL(q‖q*), where q* is p tilted by exp X."
    ),
    formula=(
        r"\mathrm{E}_q X \le KL(q \| p) + \log \mathrm{E}_p e^X, \qquad \text{equality at } "
        r"q^* \propto p\, e^X"
    ),
    sources=("M356",),
    measure=measure,
    reference="Donsker and Varadhan (1975), Asymptotic evaluation of Markov process expectations.",
    full={"atoms": 500, "distributions": 3000},
    draw=draw,
)
