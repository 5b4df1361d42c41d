"""Identities of matrix calculus, each against differences or simulation."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.finding import EPS

STEP = 2.0**-17  # near the third root of eps, where central differences are most exact


def measure(generator: torch.Generator, *, d: int = 4, rows: int = 40_000) -> Finding:
    """The gradient in a weight matrix, slopes of |x| and ReLU, covariance, integration by parts."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    W, x, y = normal(3, d), normal(d), normal(3)

    def loss(W: Tensor) -> Tensor:
        return 0.5 * (torch.tanh(W @ x) - y).square().sum()

    a = torch.tanh(W @ x)
    delta = (a - y) * (1 - a.square())
    slopes = differences(loss, W)
    points = normal(50).sign() * (0.1 + normal(50).abs())
    bent = differences(lambda z: z.abs().sum() + z.relu().sum(), points)
    A, z = normal(3, d), normal(rows, d) @ normal(d, d)
    moved = torch.cov((z @ A.T + 5).T)
    inside = A @ torch.cov(z.T) @ A.T
    t = torch.linspace(-8, 8, 4_001, dtype=torch.float64)
    u, v = torch.exp(-t.square()), torch.sin(t) + t
    du, dv = -2 * t * u, torch.cos(t) + 1
    by_parts = float(torch.trapezoid(du * v, t) + torch.trapezoid(u * dv, t))
    size = float(slopes.abs().max() + 1)
    exact = 100 * STEP**2 * size + 8 * EPS / STEP * size
    because = "central differences: h² times a third derivative, and eps / h"
    checks = [
        Check(
            "largest error of dL/dW = δ xᵀ",
            float((torch.outer(delta, x) - slopes).abs().max()),
            0.0,
            exact,
            because,
            wrong=Wrong(
                "without the slope of the activation",
                measured=float((torch.outer(a - y, x) - slopes).abs().max()),
            ),
        ),
        Check(
            "largest error of d|x| = sign x and ReLU' = 1(x > 0)",
            float((points.sign() + (points > 0).double() - bent).abs().max()),
            0.0,
            64 * EPS * len(points) / STEP,
            "rounding of a sum over the step; the functions are linear on both sides of 0",
            wrong=Wrong(
                "ReLU' = x", measured=float((points.sign() + points.relu() - bent).abs().max())
            ),
        ),
        Check(
            "largest difference of Cov(Az + b) from A Cov(z) Aᵀ",
            float((moved - inside).abs().max()),
            0.0,
            64 * EPS * rows**0.5 * float(inside.abs().max() + 25),
            "rounding of sums over the rows",
            wrong=Wrong(
                "A Cov(z)", measured=float((moved - (A @ torch.cov(z.T))[:, :3]).abs().max())
            ),
        ),
        Check(
            "∫ u'v + ∫ uv' for functions that vanish at the ends",
            by_parts,
            0.0,
            len(t) * EPS + 1e-20,
            "rounding; exp(-64) at the ends is below it",
            wrong=Wrong(
                "with the sign of the second term turned",
                measured=float(torch.trapezoid(du * v, t) - torch.trapezoid(u * dv, t)),
            ),
        ),
    ]
    return Finding(checks)


def differences(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """The gradient by central differences, entry by entry."""
    found = torch.empty_like(at)
    for k in range(at.numel()):
        move = torch.zeros_like(at).flatten()
        move[k] = STEP
        move = move.reshape(at.shape)
        found.view(-1)[k] = (function(at + move) - function(at - move)) / (2 * STEP)
    return found


claim = Claim(
    id="matrix-calculus",
    title="Identities of matrix calculus",
    statement=(
        "The gradient of a loss in a weight matrix is δ xᵀ, δ its gradient in Wx; |x| and ReLU "
        "have the slopes sign x and 1(x > 0) away from 0; Cov(Az + b) = A Cov(z) Aᵀ; and "
        "∫ u'v = -∫ uv' for functions that vanish at the ends."
    ),
    formula=(
        r"\frac{\partial L}{\partial W} = \delta x^\top, \quad "
        r"\mathrm{Cov}(Az + b) = A\, \mathrm{Cov}(z)\, A^\top, \quad \int u' v = -\int u v'"
    ),
    sources=("M443",),
    measure=measure,
    reference="Petersen and Pedersen (2012), The matrix cookbook.",
    full={"d": 20, "rows": 1_000_000},
)
