"""Gradient descent is the Euler method on the gradient flow."""

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.optimization._path import descent, follow


def valley(theta: Tensor) -> Tensor:
    """A curved valley, neither quadratic nor convex."""
    x, y = theta
    return 0.5 * (x - 1) ** 2 + (y - 0.5 * x**2) ** 2 + 0.3 * torch.sin(2 * x)


def measure(
    generator: torch.Generator, *, horizon: float = 1.0, halvings: int = 5, coarsest: int = 16
) -> Finding:
    """The distance to the flow at one time, for a rate that is halved again and again."""
    start = torch.tensor([-1.0, 1.5], dtype=torch.float64)
    start += 0.2 * torch.randn(2, dtype=torch.float64, generator=generator)
    rates = [horizon / (coarsest * 2**k) for k in range(halvings)]
    gaps = {"flow": np.zeros(halvings), "modified": np.zeros(halvings), "sign": np.zeros(halvings)}
    flow = end_of_flow(start, horizon)
    for k, rate in enumerate(rates):
        end = follow(valley, start, descent(rate), coarsest * 2**k)[-1]
        gaps["flow"][k] = float((end - flow).norm())
        for name, share in (("modified", rate / 4), ("sign", -rate / 4)):
            there = end_of_flow(start, horizon, share)
            gaps[name][k] = float((end - there).norm())
    orders = {name: np.log2(gap[:-1] / gap[1:]) for name, gap in gaps.items()}
    why = "the next term of the expansion: thrice the order's change at the last halving"

    def slack(name: str) -> float:
        # Orders are p + c rate + ...: what is left of c rate is as large as its last change, and
        # half as large as the one before; the larger of both, should the terms cancel in one.
        last, before = np.abs(np.diff(orders[name]))[[-1, -2]]
        return float(3 * max(last, before / 2))

    checks = [
        Check(
            "order of the distance to the flow",
            float(orders["flow"][-1]),
            1.0,
            slack("flow"),
            why,
            wrong=Wrong("the error fell as the square of the rate", predicted=2.0),
        ),
        Check(
            "order of the distance to the flow of h + (η/4) |∇h|²",
            float(orders["modified"][-1]),
            2.0,
            slack("modified"),
            why,
            wrong=Wrong("h - (η/4) |∇h|²", measured=float(orders["sign"][-1])),
        ),
    ]
    table = Table(
        ["rate", "distance to the flow", "to the modified flow"],
        [[r, a, b] for r, a, b in zip(rates, gaps["flow"], gaps["modified"], strict=True)],
    )
    return Finding(checks, table, {"rates": np.array(rates), **gaps})


def velocity(_: float, theta: np.ndarray, share: float) -> np.ndarray:
    """-∇(h + share |∇h|²) = -(1 + 2 share ∇²h) ∇h of the valley, by hand."""
    x, y = theta
    bend = y - 0.5 * x**2
    gradient = np.array([x - 1 - 2 * x * bend + 0.6 * np.cos(2 * x), 2 * bend])
    curve = 1 - 2 * bend + 2 * x**2 - 1.2 * np.sin(2 * x)
    hessian = np.array([[curve, -2 * x], [-2 * x, 2.0]])
    return -gradient - 2 * share * (hessian @ gradient)


def end_of_flow(start: Tensor, horizon: float, share: float = 0.0) -> Tensor:
    """The solution of dθ/dt = -∇(h + share |∇h|²) by an integrator of order 8."""
    span, begin = (0, horizon), start.numpy()
    found = solve_ivp(velocity, span, begin, "DOP853", args=(share,), rtol=1e-10, atol=1e-12)
    return torch.as_tensor(found.y[:, -1])


def draw(paper: Figure, finding: Finding) -> None:
    """Both distances against the rate, with lines of slope 1 and 2."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    rates, axes = finding.data["rates"], paper.subplots()
    rows = (
        ("flow", 1, MODEL, "to the gradient flow"),
        ("modified", 2, LINEAR, "to the flow of h + (η/4) |∇h|²"),
    )
    for name, order, colour, label in rows:
        gap = finding.data[name]
        axes.plot(rates, gap[-1] * (rates / rates[-1]) ** order, color=INK, lw=1)
        axes.plot(rates, gap, "o", color=colour, markersize=5, label=label)
        axes.annotate(
            f"slope {order}",
            (rates[1], gap[-1] * (rates[1] / rates[-1]) ** order),
            xytext=(6, -12),
            textcoords="offset points",
        )
    axes.set(xlabel="learning rate η", ylabel="distance at time 1")
    axes.set_title("the smaller the rate, the nearer is descent to the gradient flow")
    axes.legend()
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="gradient-flow",
    title="Gradient descent tends to the gradient flow",
    statement=(
        "As the rate η goes to 0, gradient descent after t / η steps tends to the solution of the "
        "gradient flow at time t, with an error of the first order in η. The flow of "
        "h + (η/4) |∇h|² is nearer: there the error is of the second order."
    ),
    formula=(
        r"\frac{d\theta}{dt} = -\nabla h(\theta), \qquad "
        r"\|\theta_{t/\eta}^{\mathrm{GD}} - \theta(t)\| = O(\eta)"
    ),
    sources=("M123",),
    measure=measure,
    reference=(
        "Barrett and Dherin (2021), Implicit gradient regularization, section 3. "
        "https://arxiv.org/abs/2009.11162"
    ),
    full={"halvings": 9},
    draw=draw,
)
