"""The gradient at a state sums the losses of all later steps; the whole past passes through it."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import Elman


def measure(
    generator: torch.Generator, *, inputs: int = 3, units: int = 5, steps: int = 12
) -> Finding:
    """Gradients of a plain recurrent layer by autograd beside sums of products of Jacobians."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layer = Elman(inputs, units, generator=generator).double()
    x, y, V = normal(1, steps, inputs).requires_grad_(), normal(steps, 2), normal(2, units)
    states = [torch.zeros(1, units, dtype=torch.float64, requires_grad=True)]
    for t in range(steps):
        states.append(layer.step(states[-1], x[:, t])[0])
    h = torch.cat(states[1:])  # (T, H)
    loss = 0.5 * (h @ V.T - y).square().sum()
    U = layer.weight_hh_l0
    exact, grad_U = torch.autograd.grad(loss, [states[1], U], retain_graph=True)

    with torch.no_grad():
        slopes = [(1 - z.square())[:, None] * U for z in h]  # diag(phi') U of each step
        own = (h @ V.T - y) @ V  # of loss i in state i
        J = products(slopes)  # J[i][t], derivative of state i in state t
        parts = {(i, t): J[i][t].T @ own[i] for i in range(steps) for t in range(i + 1)}
        summed = sum((parts[i, 0] for i in range(steps)), torch.zeros(units).double())
        twice = sum((J[i][0].T @ parts[i, 0] for i in range(steps)), torch.zeros(units).double())
        arriving = [sum(parts[i, t] for i in range(t, steps)) for t in range(steps)]
        terms = [
            torch.outer((1 - h[t].square()) * arriving[t], states[t].squeeze(0))
            for t in range(steps)
        ]
        of_U, truncated = torch.stack(terms).sum(0), torch.stack(terms[-3:]).sum(0)
    last = torch.stack([torch.autograd.grad(z, x, retain_graph=True)[0][0] for z in h[-1]], 1)
    with torch.no_grad():
        W = layer.weight_ih_l0
        chain = [J[-1][t] @ ((1 - h[t].square())[:, None] * W) for t in range(steps)]
        bare = [J[-1][t] @ W for t in range(steps)]
    half = steps // 2
    later = torch.stack(
        [torch.autograd.grad(z, x, retain_graph=True)[0][0, :half].flatten()
         for z in h[half:].flatten()]
    )  # fmt: skip
    rank = int(torch.linalg.matrix_rank(later))
    size = max(1.0, float(own.abs().max())) * max(float(m.abs().max()) for row in J for m in row)
    rounding = 16 * steps**2 * units**2 * EPS * size
    because = "rounding: 16 eps for the terms of all sums and their size"
    checks = [
        Check(
            "largest difference at the first state: Σ_i ∂ℓ_i/∂ŷ_i ∂ŷ_i/∂z_i Π diag(φ')U",
            float((exact[0] - summed).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "∂ŷ_i/∂z_t before the product, which counts the way twice",
                measured=float((exact[0] - twice).abs().max()),
            ),
        ),
        Check(
            "largest difference of the gradient in U, a sum over all steps",
            float((grad_U - of_U).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "the last three steps only", measured=float((grad_U - truncated).abs().max())
            ),
        ),
        Check(
            "largest difference of ∂S_T/∂x_t from Π diag(φ')U · diag(φ')W",
            max(gap(last[t], chain[t]) for t in range(steps)),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "without the slope of its own step",
                measured=max(gap(last[t], bare[t]) for t in range(steps)),
            ),
        ),
        Check(
            f"rank of the derivative of all later states in the first {half} inputs",
            rank,
            min(units, half * inputs),
            0,
            "whole numbers: everything passes through one state",
            wrong=Wrong(
                "as many as there are inputs and outputs",
                predicted=min(half * inputs, (steps - half) * units),
            ),
        ),
    ]
    heat = torch.full((steps, steps), torch.nan, dtype=torch.float64)
    for (i, t), part in parts.items():
        heat[i, t] = part.norm()
    return Finding(checks, data={"heat": heat})


def products(slopes: list[Tensor]) -> list[list[Tensor]]:
    """For each step i the derivatives of its state in the states 0 to i."""
    rows: list[list[Tensor]] = []
    for i, slope in enumerate(slopes):
        before = [slope @ each for each in rows[-1]] if i else []
        rows.append([*before, torch.eye(len(slope), dtype=slope.dtype)])
    return rows


def gap(one: Tensor, other: Tensor) -> float:
    """The largest difference."""
    return float((one.T if one.shape != other.shape else one).sub(other).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The size of each loss's part of the gradient at each state."""
    import numpy as np

    axes, heat = paper.subplots(), finding.data["heat"].numpy()
    image = axes.imshow(np.log10(heat), origin="lower", cmap="viridis", aspect="auto")
    paper.colorbar(image, ax=axes, label="log₁₀ |part of the gradient|")
    axes.set(xlabel="state t", ylabel="loss of step i")
    axes.set_title("the gradient at a state sums the losses of all later steps; far ones fade")


claim = Claim(
    id="backpropagation-through-time",
    title="Backpropagation through time",
    statement=(
        "The gradient at state z_t sums, over all later steps i, the slope of loss i at its own "
        "state times the product of Jacobians from t to i. The factor is ∂ŷ_i/∂z_i; with the "
        "∂ŷ_i/∂z_t that is sometimes printed, the product is counted twice. Whatever later states "
        "know of the past passes through one state, so its derivative has at most its rank."
    ),
    formula=(
        r"\frac{\partial L}{\partial z_t} = \sum_{i \ge t} \frac{\partial \ell_i}{\partial \hat "
        r"y_i} \frac{\partial \hat y_i}{\partial z_i} \prod_{j=t+1}^{i} \mathrm{diag}(\varphi'_j)"
        r"\, U, \qquad \frac{\partial S_T}{\partial x_t} = \prod_{j=t+1}^{T} \frac{\partial S_j}"
        r"{\partial S_{j-1}} \cdot \frac{\partial S_t}{\partial x_t}"
    ),
    sources=("M241", "M242", "M243", "M245"),
    measure=measure,
    reference=(
        "Werbos (1990), Backpropagation through time: what it does and how to do it. "
        "https://doi.org/10.1109/5.58337"
    ),
    full={"units": 16, "steps": 40},
    draw=draw,
)
