"""Gradient descent meets a gradient of size ε within 2L (h₀ - h*) / ε² steps."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.optimization._path import rotation

Loss = Callable[[Tensor], Tensor]


def measure(
    generator: torch.Generator, *, longest: int = 60, random: int = 3, size: int = 8
) -> Finding:
    """Counts steps until the gradient is small: on teeth built for it, and on random cosines."""
    hard = [teeth(count) for count in range(longest // 5, longest + 1, longest // 5)]
    easy = [cosines(size, generator) for _ in range(random)]
    used = [steps / scale for steps, scale in hard + easy]  # in units of L (h₀ - h*) / ε²
    checks = [
        Check(
            "largest number of steps, in units of L (h₀ - h*) / ε²",
            max(used),
            2.0,
            0.0,
            "whole numbers of steps below a bound",
            relation="<=",
            wrong=Wrong("the bound L (h₀ - h*) / ε²", predicted=1.0),
        ),
        Check(
            "steps on the longest row of teeth, in the same units",
            used[len(hard) - 1],
            4 / 3,
            4 / 3 * (1 / longest + 2e-3),
            "the way from 0 to the floor is less than one tooth more; ε is 0.1 % below the slope",
            wrong=Wrong("the bound is reached: 2", predicted=2.0),
        ),
    ]
    rows = [["teeth", s, 2 * u] for s, u in hard] + [["cosines", s, 2 * u] for s, u in easy]
    table = Table(["problem", "steps", "2L (h₀ - h*) / ε²"], rows)
    return Finding(checks, table, {"hard": hard, "easy": easy})


def steps_until(loss: Loss, start: Tensor, eps: float, most: int) -> int:
    """Of gradient descent with L = 1, until the gradient is of size eps."""
    theta = nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([theta], lr=1.0)
    for step in range(most + 1):
        optimizer.zero_grad()
        loss(theta).backward()
        if theta.grad is not None and float(theta.grad.norm()) <= eps:
            return step
        optimizer.step()
    return most + 1


def teeth(count: int) -> tuple[int, float]:
    """Steps, and L (h₀ - h*) / ε², on a slope whose gradient sags between the iterates.

    With L = 1 the gradient is 1 at x = 0, 1, 2, ...: steps of 1 lead from one to the next. In
    between it falls with slope 1 to 1/2 and rises again, so that a step gains 3/4 in place of 1.
    At the left end a parabola leads to the floor at -1. All iterates are whole numbers: exact.
    """
    eps = 0.999

    def loss(x: Tensor) -> Tensor:
        tooth = torch.floor(x)
        u = x - tooth
        rise = torch.where(u < 0.5, u - u**2 / 2, 0.25 + u**2 / 2)  # ∫ max(1 - u, u) du
        return torch.where(x < 0, x + x**2 / 2, 0.75 * tooth + rise).sum()

    start = torch.tensor([float(count)], dtype=torch.float64)
    scale = float(loss(start) + 0.5) / eps**2
    return steps_until(loss, start, eps, count + 2), scale


def cosines(size: int, generator: torch.Generator) -> tuple[int, float]:
    """Steps, and L (h₀ - h*) / ε², on Σ λ (1 - cos) along random directions; L = 1."""
    Q = rotation(size, generator)
    weight = torch.logspace(-2, 0, size, dtype=torch.float64)

    def loss(x: Tensor) -> Tensor:
        return (weight * (1 - torch.cos(Q @ x))).sum()

    start, eps = 2 * torch.randn(size, dtype=torch.float64, generator=generator), 0.25
    scale = float(loss(start)) / eps**2
    return steps_until(loss, start, eps, int(2 * scale) + 1), scale


def draw(paper: Figure, finding: Finding) -> None:
    """Steps against the scale, with the bound and the slope of the teeth."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    axes = paper.subplots()
    hard, easy = (torch.tensor(finding.data[name]) for name in ("hard", "easy"))
    far = 1.1 * float(hard[:, 1].max())
    line = torch.tensor([0.0, far])
    axes.plot(line, 2 * line, color=INK, label="2L (h₀ - h*) / ε²: the bound")
    axes.plot(line, line, "--", lw=0.8, color=LINEAR, label="L (h₀ - h*) / ε²: too small")
    axes.plot(line, 4 / 3 * line, ":", lw=1, color=MODEL, label="slope 4/3")
    axes.plot(hard[:, 1], hard[:, 0], "o", markersize=6, color=MODEL, label="teeth")
    near = easy[easy[:, 1] <= far]
    if len(near):
        axes.plot(near[:, 1], near[:, 0], "s", color=THIRD, label="random cosines")
    axes.set(xlabel="L (h₀ - h*) / ε²", ylabel="steps until |∇h| ≤ ε", xlim=(0, far))
    axes.set_title("a critical point is near after 2L (h₀ - h*) / ε² steps")
    axes.legend()


claim = Claim(
    id="epsilon-critical-point",
    title="An ε-critical point within 2L (h₀ - h*) / ε² steps",
    statement=(
        "Gradient descent at the rate 1/L on any L-smooth loss that is bounded below by h* meets a "
        "gradient of size at most ε within 2L (h₀ - h*) / ε² steps: each step before gains ε² / "
        "(2L), and the gains add up to at most h₀ - h*. A slope with teeth needs two thirds of "
        "that number, so half of it is not a bound."
    ),
    formula=(
        r"\min_{t < T} \|\nabla h(\theta_t)\| \le \epsilon \quad \text{for} \quad "
        r"T \ge \frac{2L (h(\theta_0) - h^*)}{\epsilon^2}"
    ),
    sources=("M126",),
    measure=measure,
    reference=(
        "Nesterov (2018), Lectures on Convex Optimization, section 1.2.3; teeth: "
        "Abbaszadehpeivasti, de Klerk and Zamani (2021), The exact worst-case convergence rate of "
        "the gradient method. https://arxiv.org/abs/2104.05468"
    ),
    full={"longest": 2000, "random": 20},
    draw=draw,
)
