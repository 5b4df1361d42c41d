"""A recurrence forgets at the rate of its spectral radius, not of its norm."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(
    generator: torch.Generator, *, units: int = 12, steps: int = 400, radius: float = 0.9
) -> Finding:
    """Derivatives of a late state in the first, of a linear recurrence and of a tanh network."""
    W = torch.randn(units, units, generator=generator, dtype=torch.float64)
    W = W * radius / spectral_radius(W)
    V, b = 1.5 * W / radius, torch.randn(units, generator=generator, dtype=torch.float64)
    while spectral_radius(J := tangent(V, rest := fixed_point(V, b))) > radius:
        V = 0.9 * V  # until the fixed point is stable
    free = decay(lambda _: W, steps, units)
    states = path(V, b, rest + 0.01, steps)
    bent = decay(lambda t: tangent(V, states[t + 1]), steps, units)
    checks = []
    for name, matrix, logs in (("linear", W, free), ("tanh, at its fixed point", J, bent)):
        rate = float(logs[-1] - logs[steps // 2]) / (steps - steps // 2)
        norm = log(float(torch.linalg.matrix_norm(matrix, 2)))
        checks.append(
            Check(
                f"decay rate of the derivative per step: {name}",
                rate,
                log(spectral_radius(matrix)),
                2 * log(units * bauer_fike(matrix)) / (steps - steps // 2),
                "powers stay within the condition of the eigenvectors; twice, over the steps",
                wrong=Wrong("the log of the spectral norm", predicted=norm),
            )
        )
    table = Table(["step", "log of the derivative, linear", "tanh"], [
        [t, float(free[t]), float(bent[t])] for t in range(0, steps + 1, steps // 8)
    ])  # fmt: skip
    data = {"free": free, "bent": bent, "rates": [log(spectral_radius(m)) for m in (W, J)]}
    return Finding(checks, table, data)


def spectral_radius(W: Tensor) -> float:
    """The largest modulus of an eigenvalue."""
    return float(torch.linalg.eigvals(W).abs().max())


def tangent(W: Tensor, h: Tensor) -> Tensor:
    """W' = diag(1 - h²) W, the derivative of tanh(W h + b) where it is h."""
    return (1 - h.square())[:, None] * W


def bauer_fike(W: Tensor) -> float:
    """The condition number of the eigenvectors."""
    return float(torch.linalg.cond(torch.linalg.eig(W).eigenvectors))


def fixed_point(W: Tensor, b: Tensor) -> Tensor:
    """The state that tanh(W h + b) leaves as it is, by Newton's method from many small steps."""
    h = torch.zeros_like(b)
    for _ in range(2_000):
        h = 0.9 * h + 0.1 * torch.tanh(W @ h + b)
    for _ in range(50):
        value = torch.tanh(W @ h + b)
        slope = tangent(W, value) - torch.eye(len(b), dtype=torch.float64)
        h = h - torch.linalg.solve(slope, value - h)
    return h


def path(W: Tensor, b: Tensor, start: Tensor, steps: int) -> list[Tensor]:
    """States of the network from a start."""
    states = [start]
    for _ in range(steps):
        states.append(torch.tanh(W @ states[-1] + b))
    return states


def decay(jacobian: Callable[[int], Tensor], steps: int, units: int) -> Tensor:
    """Log of the norm of the product of Jacobians after 0, 1, ... steps."""
    product, total = torch.eye(units, dtype=torch.float64), 0.0
    logs = [0.0]
    for t in range(steps):
        product = jacobian(t) @ product
        size = float(torch.linalg.matrix_norm(product, 2))
        total += log(size)
        product = product / size
        logs.append(total)
    return torch.tensor(logs, dtype=torch.float64)


def draw(paper: Figure, finding: Finding) -> None:
    """Logs of the derivatives, and lines of slope log ρ."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes = paper.subplots()
    for name, colour, rate in zip(
        ("free", "bent"), (MODEL, LINEAR), finding.data["rates"], strict=True
    ):
        logs = finding.data[name]
        t = torch.arange(len(logs))
        label = "linear recurrence" if name == "free" else "tanh network"
        axes.plot(t, logs, color=colour, label=label)
        axes.plot(t, rate * t, ":", color=INK, label="slope log ρ" if name == "free" else None)
    axes.set(xlabel="step", ylabel="log of the derivative in the first state")
    axes.set_title("memory fades at the rate of the spectral radius")
    axes.legend()


claim = Claim(
    id="spectral-radius",
    title="Memory fades with the spectral radius",
    statement=(
        "In a linear recurrence the derivative of a late state in an early one decays like ρ(W)^t: "
        "with a spectral radius below 1 memory vanishes, whatever the norm of W. Near a fixed "
        "point h* of a tanh network the same holds for W' = diag(1 - h*²) W."
    ),
    formula=(
        r"\tfrac1t \log \Bigl\| \frac{\partial h_t}{\partial h_0} \Bigr\| \to \log \rho(W'), "
        r"\qquad W' = \mathrm{diag}(1 - h^{*2})\, W"
    ),
    sources=("M439",),
    measure=measure,
    reference=(
        "Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural "
        "networks. https://arxiv.org/abs/1211.5063"
    ),
    full={"units": 50, "steps": 4_000},
    draw=draw,
)
