"""Backpropagation: errors run back through transposed Jacobians."""

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.training.fast.numpy_mlp import Backpropagation, derivative_of

STEPS = tuple(10.0**-k for k in range(1, 10))


def measure(
    generator: torch.Generator, *, width: int = 5, depth: int = 4, rows: int = 8
) -> Finding:
    """One gradient by the recursion, the library's passes, autograd, and differences."""
    parts = network(width, depth, generator)
    x, y = torch.randn(2, rows, width, generator=generator, dtype=torch.float64)
    true = autograd(parts, x, y)
    ours = library(parts, x, y)
    rule, untransposed = (recursion(parts, x, y, transposed=t) for t in (True, False))
    size = float(true.abs().max())
    direction = torch.randn(len(true), generator=generator, dtype=torch.float64)
    direction = direction / direction.norm()
    slope = float(direction @ true)
    errors = [abs(central(parts, x, y, direction, h) - slope) for h in STEPS]
    # The central difference errs by c h² + d h⁴ + ..., and by the rounding of two losses over h.
    c = errors[1] / STEPS[1] ** 2
    higher = abs(errors[0] / (c * STEPS[0] ** 2) - 1) * (STEPS[1] / STEPS[0]) ** 2
    noise = depth * width * EPS * float(loss(parts, x, y))
    rounding = width * rows * depth * EPS * size
    because = f"rounding: sums over {width} units and {rows} rows in {depth} layers"
    checks = [
        Check(
            "recursion δ = Jᵀδ against autograd, largest difference",
            float((rule - true).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("J in place of Jᵀ", measured=float((untransposed - true).abs().max())),
        ),
        Check(
            "the library's forward and backward pass against autograd, largest difference",
            float((ours - true).abs().max()),
            0.0,
            rounding,
            because,
        ),
        Check(
            "central differences: factor of the error when h goes from 0.01 to 0.001",
            errors[1] / errors[2],
            100.0,
            100 * (4 * higher + noise / STEPS[2] / errors[2]),
            "4 times the h⁴ term at 0.01, estimated from the error at 0.1, and rounding at 0.001",
            wrong=Wrong("first order: a factor of 10", predicted=10.0),
        ),
        Check(
            "central differences at the best h, against autograd",
            min(errors),
            0.0,
            20 * c ** (1 / 3) * noise ** (2 / 3),
            "c h² + rounding / h is least at h³ = rounding / 2c; steps that are powers of ten may "
            "miss it by a factor of 10",
            wrong=Wrong(
                "the bias of the last layer left out",
                measured=abs(slope - float(direction[:-width] @ true[:-width])),
            ),
        ),
    ]
    table = Table(["h", "error"], [list(pair) for pair in zip(STEPS, errors, strict=True)])
    return Finding(checks, table)


def network(width: int, depth: int, generator: torch.Generator) -> list[Tensor]:
    """W_1, b_1, ..., square matrices, so that a missing transpose goes unnoticed by the shapes."""
    parts = []
    for _ in range(depth):
        shapes = (width, width), (width,)
        W, b = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in shapes)
        parts += [W / width**0.5, 0.1 * b]
    return parts


def loss(parts: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """½ Σ |f(x) - y|², tanh between the layers."""
    h = x
    for i in range(0, len(parts), 2):
        h = h @ parts[i].T + parts[i + 1]
        h = h.tanh() if i < len(parts) - 2 else h
    return (h - y).square().sum() / 2


def autograd(parts: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """The gradient by torch, as one vector."""
    leaves = [part.clone().requires_grad_() for part in parts]
    return _flat(torch.autograd.grad(loss(leaves, x, y), leaves))


def _flat(parts: "tuple[Tensor, ...] | list[Tensor]") -> Tensor:
    return torch.cat([part.flatten() for part in parts])


def recursion(parts: list[Tensor], x: Tensor, y: Tensor, *, transposed: bool) -> Tensor:
    """δ^ℓ = [∂h^(ℓ+1)/∂h^ℓ]ᵀ δ^(ℓ+1), row by row with whole Jacobians; ∂ℓ/∂θ^ℓ = δ^ℓ ∂h^ℓ/∂θ^ℓ."""
    total = [torch.zeros_like(part) for part in parts]
    last = len(parts) // 2 - 1
    for xi, yi in zip(x, y, strict=True):
        h = [xi]
        for i in range(last + 1):
            z = parts[2 * i] @ h[-1] + parts[2 * i + 1]
            h.append(z.tanh() if i < last else z)
        delta = h[-1] - yi  # of h, the layer's output
        for i in range(last, -1, -1):
            inner = (1 - h[i + 1] ** 2).diag() if i < last else torch.eye(len(yi), dtype=x.dtype)
            total[2 * i] += torch.outer(inner @ delta, h[i])
            total[2 * i + 1] += inner @ delta
            J = inner @ parts[2 * i]  # ∂h^(ℓ+1)/∂h^ℓ
            delta = (J.T if transposed else J) @ delta
    return _flat(total)


def library(parts: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """The gradient by the library's analytic passes."""
    weights, biases = ([p.numpy() for p in parts[i::2]] for i in (0, 1))
    slots = [np.empty_like(p.numpy()) for p in parts]
    rule = derivative_of(nn.Tanh())
    assert rule is not None
    passes = Backpropagation(weights, biases, slots[0::2], slots[1::2], rule)
    passes.backward(passes.forward(x.numpy()) - y.numpy())
    return _flat([torch.from_numpy(slot) for slot in slots])


def central(parts: list[Tensor], x: Tensor, y: Tensor, direction: Tensor, h: float) -> float:
    """(f(θ + hv) - f(θ - hv)) / 2h."""
    ends = []
    for sign in (1, -1):
        moved, start = [], 0
        for part in parts:
            step = direction[start : start + part.numel()].reshape(part.shape)
            moved.append(part + sign * h * step)
            start += part.numel()
        ends.append(float(loss(moved, x, y)))
    return (ends[0] - ends[1]) / (2 * h)


def draw(paper: Figure, finding: Finding) -> None:
    """The error of finite differences against the step."""
    assert finding.table is not None
    axes = paper.subplots()
    h, error = np.array(finding.table.rows).T
    axes.plot(h, error, "o", color=MODEL, label="central difference − backpropagation")
    axes.plot(h, error[1] * (h / h[1]) ** 2, color=LINEAR, label="order h²")
    axes.plot(h, error[-1] * h[-1] / h, "--", color=INK, lw=0.8, label="rounding, order 1/h")
    axes.set(xlabel="step h", ylabel="difference", ylim=(error.min() / 30, error.max() * 10))
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("differences approach the backpropagated slope as h², until rounding takes over")
    axes.legend(loc="upper center")


claim = Claim(
    id="backpropagation",
    title="Backpropagation is the chain rule, run backwards",
    statement=(
        "The error of a layer is the transposed Jacobian of the next layer times its error, and "
        "the gradient of a layer's parameters is its error times the layer's own derivative. The "
        "recursion, the library's hand-written passes and automatic differentiation agree to "
        "rounding, and finite differences approach them as the square of their step. The "
        "transposes are often left out."
    ),
    formula=(
        r"\delta^\ell = \Big[ \frac{\partial h^{\ell+1}}{\partial h^\ell} \Big]^\top "
        r"\delta^{\ell+1}, \qquad \frac{\partial \mathcal{L}}{\partial \theta^\ell} = "
        r"\Big[ \frac{\partial h^\ell}{\partial \theta^\ell} \Big]^\top \delta^\ell"
    ),
    sources=("M115", "M116", "M119"),
    measure=measure,
    reference="Rumelhart, Hinton and Williams (1986), Learning representations by "
    "back-propagating errors. https://doi.org/10.1038/323533a0",
    full={"width": 12, "depth": 8, "rows": 32},
    draw=draw,
)
