"""Local entropy prefers the flat of two minima, and Entropy-SGD follows it there."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.optim import EntropySGD

CENTRES = torch.tensor([-1.0, 1.0], dtype=torch.float64)
CURVATURES = torch.tensor([40.0, 1.0], dtype=torch.float64)  # the sharp well, the flat one


def loss(x: Tensor) -> Tensor:
    """-log Σ exp(-λ (x - c)² / 2): two wells, the sharp one slightly the deeper."""
    return -torch.logsumexp(-0.5 * CURVATURES * (x.unsqueeze(-1) - CENTRES) ** 2, -1)


def measure(
    generator: torch.Generator,
    *,
    scope: float = 0.5,
    chains: int = 100,
    rounds: int = 60,
    inner: int = 20,
) -> Finding:
    """Local entropy by quadrature and by its closed form; Entropy-SGD from the sharp well."""
    x = torch.linspace(-2.0, 3.0, 201, dtype=torch.float64, requires_grad=True)
    value, mean = quadrature(x, scope)
    (slope,) = torch.autograd.grad(value.sum(), x)
    slope, value, x = slope.detach(), value.detach(), x.detach()
    along = scope * (x - mean.detach())
    exact = closed_form(x, scope)
    wall = float(CENTRES[0] + 2 / (1 + float(CURVATURES[0] / CURVATURES[1]) ** 0.5))
    ends = entropy_sgd(scope, chains, rounds, inner, generator)
    share = float((ends > wall).double().mean())
    plain = descend(torch.full((chains,), -1.0, dtype=torch.float64), rounds * inner)
    # The trapezium rule on a smooth function that vanishes at both ends errs by rounding alone.
    checks = [
        Check(
            "largest gap of ∂F/∂x to γ (x - ⟨x'⟩), by autograd",
            float((slope - along).abs().max()),
            0.0,
            1e3 * EPS,
            "rounding of a sum of a thousand weights",
            wrong=Wrong("the opposite sign", measured=float((slope + along).abs().max())),
        ),
        Check(
            "largest gap of the quadrature to the closed form",
            float((value - exact).abs().max()),
            0.0,
            1e3 * EPS * float(value.abs().max()),
            "rounding of a sum of a thousand weights",
            wrong=Wrong(
                "log(1 + λ/γ) without its half",
                measured=float((value - closed_form(x, scope, power=1.0)).abs().max()),
            ),
        ),
        Check(
            "share of chains that Entropy-SGD leads from the sharp well to the flat one",
            share,
            0.5,
            -4 * 0.5 / chains**0.5,
            f"more than half, by 4 standard errors over {chains} chains",
            relation=">=",
            wrong=Wrong("plain descent", measured=float((plain > wall).double().mean())),
        ),
        Check(
            "local entropy of the flat well less that of the sharp one, as a sign",
            float(torch.sign(closed_form(CENTRES, scope).diff())),
            -1.0,
            0.0,
            "a sign",
            wrong=Wrong(
                "that of the loss itself", measured=float(torch.sign(loss(CENTRES).diff()))
            ),
        ),
    ]
    table = Table(
        ["well", "curvature", "loss", "local entropy"],
        [
            [name, float(c), float(f), float(e)]
            for name, c, f, e in zip(
                ("sharp", "flat"),
                CURVATURES,
                loss(CENTRES),
                closed_form(CENTRES, scope),
                strict=True,
            )
        ],
    )
    data = {"x": x, "loss": loss(x), "entropy": exact, "quadrature": value, "ends": ends}
    return Finding(checks, table, data)


def quadrature(x: Tensor, scope: float) -> tuple[Tensor, Tensor]:
    """F(x) = -log ∫ exp(-f(x') - γ (x - x')² / 2) dx', and the mean of x' under that weight."""
    grid = torch.linspace(-12, 14, 2601, dtype=torch.float64)
    weight = -loss(grid) - 0.5 * scope * (x.unsqueeze(-1) - grid) ** 2
    mean = torch.softmax(weight, -1) @ grid
    return -torch.logsumexp(weight, -1) - math.log(0.01), mean


def closed_form(x: Tensor, scope: float, power: float = 0.5) -> Tensor:
    """The same: each well is a normal curve, which the window widens and lowers."""
    total = CURVATURES + scope
    height = power * torch.log(2 * math.pi / total)
    fall = 0.5 * CURVATURES * scope / total * (x.unsqueeze(-1) - CENTRES) ** 2
    return -torch.logsumexp(height - fall, -1)


def slope_of_loss(x: Tensor) -> Tensor:
    """f'(x)."""
    offset = x.unsqueeze(-1) - CENTRES
    return (torch.softmax(-0.5 * CURVATURES * offset**2, -1) * CURVATURES * offset).sum(-1)


def descend(x: Tensor, steps: int, rate: float = 0.02) -> Tensor:
    """Gradient descent."""
    for _ in range(steps):
        x = x - rate * slope_of_loss(x)
    return x


def entropy_sgd(
    scope: float, chains: int, rounds: int, inner: int, generator: torch.Generator
) -> Tensor:
    """Each round estimates ⟨x'⟩ by Langevin steps from x, and moves x half the way to it."""
    x = nn.Parameter(torch.full((chains,), -1.0, dtype=torch.float64))
    seed = int(torch.randint(2**31, (), generator=generator))
    how: dict[str, Any] = {"gamma": scope, "noise": 2**0.5, "inner": inner, "memory": 0.25}
    rule = EntropySGD([x], lr=0.02, outer=0.5, seed=seed, **how)
    for _ in range(rounds * inner):
        x.grad = slope_of_loss(x.detach())
        rule.step()
    return x.detach()


def draw(paper: Figure, finding: Finding) -> None:
    """The loss, its local entropy, and where chains from the sharp well end."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    data = finding.data
    upper, lower = paper.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    upper.plot(data["x"], data["loss"], color=LINEAR, label="loss")
    upper.plot(data["x"], data["entropy"], color=INK, label="local entropy, closed form")
    upper.plot(data["x"][::8], data["quadrature"][::8], "o", color=MODEL, label="by quadrature")
    upper.set(ylim=(-1.2, 3), ylabel="height")
    upper.set_title("local entropy is lowest in the flat well, and Entropy-SGD ends there")
    upper.legend(loc="upper left", bbox_to_anchor=(1, 1))
    lower.hist(data["ends"], bins=40, range=(-2, 3), color=MODEL)
    lower.axvline(-1, color=INK, ls="--", lw=0.8)
    lower.annotate(
        "start",
        (-1, 0.8),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
    )
    lower.set(xlabel="x", ylabel="chains", xlim=(-2, 3))


claim = Claim(
    id="entropy-sgd",
    title="Local entropy prefers flat minima",
    statement=(
        "Local entropy averages e⁻ᶠ over a window of width 1/√γ about x. It lifts a well of "
        "curvature λ by half of log(λ + γ), so of two wells of about equal depth the flat one "
        "becomes the lower. Its gradient is γ (x - ⟨x'⟩); Entropy-SGD estimates the mean by "
        "Langevin steps and leaves a sharp minimum in which plain descent stays."
    ),
    formula=(
        r"F(x) = -\log \int e^{-f(x') - \frac\gamma2 (x - x')^2} dx', \qquad "
        r"\nabla F(x) = \gamma (x - \langle x' \rangle)"
    ),
    sources=("M139",),
    measure=measure,
    reference=(
        "Chaudhari et al. (2017), Entropy-SGD: biasing gradient descent into wide valleys. "
        "https://arxiv.org/abs/1611.01838"
    ),
    full={"chains": 10_000},
    draw=draw,
)
