"""The textbook forms of momentum take one path, each at its own rate."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import Rule, follow, rotation, spectrum
from ansatz.optim import momentum


def measure(
    generator: torch.Generator, *, rate: float = 0.05, beta: float = 0.9, steps: int = 80
) -> Finding:
    """The paths of four forms on a quadratic, after the change of rate."""
    Q = rotation(4, generator)
    hessian = Q @ torch.diag(spectrum(30.0, 4)) @ Q.T
    start = torch.randn(4, dtype=torch.float64, generator=generator)

    def loss(point: Tensor) -> Tensor:
        return 0.5 * point @ hessian @ point

    def run(rule: Rule) -> Tensor:
        return follow(loss, start, rule, steps)

    classical = run(lambda p: momentum(p, rate, momentum=beta))
    scaled = rate / (1 - beta)
    gaps = {
        "velocity v = βv - α∇h": velocity(hessian, start, rate, beta, steps),
        "average m = βm + (1 - β)∇h at the rate α / (1 - β)": average(
            hessian, start, scaled, beta, steps
        ),
        "torch's dampening = β at the rate α / (1 - β)": run(
            lambda p: damped(p, scaled, beta),
        ),
    }
    same_rate = average(hessian, start, rate, beta, steps)
    slower = float((same_rate - classical).abs().max())
    tolerance = 64 * EPS * float(classical.abs().max())
    wrong = Wrong("the same rate for both forms", measured=slower)
    found = {name: float((path - classical).abs().max()) for name, path in gaps.items()}
    checks = [
        Check(
            f"largest gap to v = βv + ∇h: {name}",
            gap,
            0.0,
            tolerance,
            "rounding, in a method that forgets it",
            wrong=wrong if "average" in name else None,
        )
        for name, gap in found.items()
    ]
    far = constant_step(rate, beta) / constant_step(rate, beta, dampening=beta)
    checks.append(
        Check(
            "ratio of the forms' steps under a constant gradient, at one rate",
            far,
            1 / (1 - beta),
            (1 / (1 - beta)) * (2 * beta**300 + 1000 * EPS),
            "the rest of a geometric series after 300 steps, and rounding",
            wrong=Wrong("no difference", predicted=1.0),
        )
    )
    table = Table(["form", "largest gap"], [[name, gap] for name, gap in found.items()])
    return Finding(checks, table)


def velocity(hessian: Tensor, start: Tensor, rate: float, beta: float, steps: int) -> Tensor:
    """v ← βv - α∇h, θ ← θ + v."""
    theta, v, path = start, torch.zeros_like(start), [start]
    for _ in range(steps):
        v = beta * v - rate * hessian @ theta
        theta = theta + v
        path.append(theta)
    return torch.stack(path)


def average(hessian: Tensor, start: Tensor, rate: float, beta: float, steps: int) -> Tensor:
    """m ← βm + (1 - β)∇h, θ ← θ - αm."""
    theta, m, path = start, torch.zeros_like(start), [start]
    for _ in range(steps):
        m = beta * m + (1 - beta) * hessian @ theta
        theta = theta - rate * m
        path.append(theta)
    return torch.stack(path)


def damped(parameters: Sequence[Tensor], rate: float, beta: float) -> torch.optim.Optimizer:
    """torch's exponential average; its first gradient enters whole, so that one starts it at 0."""
    optimizer = torch.optim.SGD(parameters, rate, momentum=beta, dampening=beta)
    for parameter in parameters:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


def constant_step(rate: float, beta: float, *, dampening: float = 0.0) -> float:
    """The 300th step of torch's SGD under the gradient 1."""
    theta = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.SGD([theta], rate, momentum=beta, dampening=dampening)
    for _ in range(300):
        before = theta.item()
        theta.grad = torch.ones_like(theta)
        optimizer.step()
    return before - theta.item()


claim = Claim(
    id="momentum-forms",
    title="Average, velocity and torch's momentum take the same path",
    statement=(
        "The exponential average m = βm + (1 - β)∇h at the rate α / (1 - β), the velocity v = βv - "
        "α∇h and torch's v = βv + ∇h at the rate α take the same path. At equal rates the "
        "average's steps are 1 - β times as long."
    ),
    formula=(
        r"m_{t+1} = \beta m_t + (1-\beta) \nabla h, \quad \theta_{t+1} = \theta_t - "
        r"\frac{\alpha}{1-\beta} m_{t+1} \quad\equiv\quad v_{t+1} = \beta v_t + \nabla h, \quad "
        r"\theta_{t+1} = \theta_t - \alpha v_{t+1}"
    ),
    sources=("M131",),
    measure=measure,
    reference=(
        "Sutskever et al. (2013), On the importance of initialization and momentum in deep "
        "learning, section 2."
    ),
    full={"steps": 1000},
)
