"""Forward mode costs a pass per parameter, reverse mode a pass per output."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL


class Counter:
    """Multiply-adds of matrix products so far."""

    def __init__(self) -> None:
        self.total = 0

    def product(self, A: Tensor, B: Tensor) -> Tensor:
        """AB, counted."""
        self.total += A.shape[0] * A.shape[1] * B.shape[1]
        return A @ B


class Product(torch.autograd.Function):
    """Wh with the two products of its way back, all counted; autograd decides which it needs."""

    @staticmethod
    def forward(ctx: Any, W: Tensor, h: Tensor, counter: Counter) -> Tensor:
        """Wh."""
        ctx.save_for_backward(W, h)
        ctx.counter = counter
        return counter.product(W, h)

    @staticmethod
    def backward(ctx: Any, *deltas: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """δhᵀ to the matrix, Wᵀδ to the input."""
        W, h = ctx.saved_tensors
        to_matrix = ctx.counter.product(deltas[0], h.T) if ctx.needs_input_grad[0] else None
        to_input = ctx.counter.product(W.T, deltas[0]) if ctx.needs_input_grad[1] else None
        return to_matrix, to_input, None


class Cost(NamedTuple):
    """The cost of the Jacobian of the outputs in all parameters."""

    passes: int
    multiply_adds: int
    network: int  # multiply-adds of the values alone
    jacobian: Tensor  # (outputs, parameters)


def measure(
    generator: torch.Generator,
    *,
    widths: tuple[int, ...] = (2, 3, 5, 8),
    inputs: int = 3,
    outputs: int = 2,
) -> Finding:
    """Jacobians of growing networks by both modes, with every multiplication counted."""
    rows, gap = [], 0.0
    scale = 1.0
    for width in widths:
        layers = network(inputs, width, outputs, generator)
        x = torch.randn(inputs, generator=generator, dtype=torch.float64)
        back, ahead = reverse(layers, x), forward(layers, x)
        gap = max(gap, float((back.jacobian - ahead.jacobian).abs().max()))
        scale = max(scale, float(back.jacobian.abs().max()))
        sizes = [W.numel() for W in layers]
        reverse_law = outputs * (2 * sum(sizes) - sizes[0])
        forward_law = sum(size * sum(sizes[i:]) for i, size in enumerate(sizes))
        counts = [back.multiply_adds, reverse_law, ahead.multiply_adds, forward_law]
        rows.append([sum(sizes), back.passes, ahead.passes, back.network, *counts])
    largest = [max(abs(row[i] - row[j]) for row in rows) for i, j in ((4, 5), (6, 7))]
    checks = [
        Check(
            "largest difference of the two Jacobians",
            gap,
            0.0,
            8 * max(widths) * EPS * scale,
            "rounding: sums over the widest layer",
        ),
        Check(
            "passes of forward mode: largest difference to the number of parameters",
            max(abs(row[2] - row[0]) for row in rows),
            0,
            0,
            "whole numbers: one per direction",
            wrong=Wrong("one per output", measured=max(abs(row[2] - outputs) for row in rows)),
        ),
        Check(
            "passes of reverse mode: largest difference to the number of outputs",
            max(abs(row[1] - outputs) for row in rows),
            0,
            0,
            "whole numbers: one per output",
            wrong=Wrong("one per parameter", measured=max(abs(row[1] - row[0]) for row in rows)),
        ),
        Check(
            "multiply-adds of reverse mode: largest difference to outputs × (2 Σ - first layer)",
            largest[0],
            0,
            0,
            "whole numbers: per matrix one product to its input and one to its entries",
            wrong=Wrong(
                "as many as the network's own, per output",
                measured=max(abs(row[4] - outputs * row[3]) for row in rows),
            ),
        ),
        Check(
            "multiply-adds of forward mode: largest difference to Σ mᵢ (mᵢ + ... + m_L)",
            largest[1],
            0,
            0,
            "whole numbers: a tangent of a matrix runs through it and all that follow",
            wrong=Wrong(
                "as many as reverse mode", measured=max(abs(row[6] - row[4]) for row in rows)
            ),
        ),
        Check(
            "multiply-adds of one reverse pass, in units of the network's own",
            max(row[4] / row[1] / row[3] for row in rows),
            2.0,
            0.0,
            "at most two products per matrix",
            relation="<=",
            wrong=Wrong("no more than the network itself", predicted=1.0),
        ),
    ]
    head = ["parameters", "reverse passes", "forward passes", "network"]
    head += ["reverse", "predicted", "forward", "predicted "]
    return Finding(checks, Table(head, rows))


def network(inputs: int, width: int, outputs: int, generator: torch.Generator) -> list[Tensor]:
    """Three matrices, tanh between them."""
    sizes = (inputs, width, width, outputs)
    return [
        torch.randn(k, m, generator=generator, dtype=torch.float64) / m**0.5
        for m, k in pairwise(sizes)
    ]


def run(layers: list[Tensor], x: Tensor, counter: Counter) -> Tensor:
    """The outputs, (outputs, 1)."""
    h = x.unsqueeze(1)
    for W in layers[:-1]:
        h = Product.apply(W, h, counter).tanh()
    y: Tensor = Product.apply(layers[-1], h, counter)
    return y


def reverse(layers: list[Tensor], x: Tensor) -> Cost:
    """One vector-Jacobian product by autograd for each output."""
    leaves, counter = [W.clone().requires_grad_() for W in layers], Counter()
    y = run(leaves, x, counter)
    own, rows = counter.total, []
    for value in y.flatten():
        found = torch.autograd.grad(value, leaves, retain_graph=True)
        rows.append(torch.cat([part.flatten() for part in found]))
    return Cost(len(rows), counter.total - own, own, torch.stack(rows))


def forward(layers: list[Tensor], x: Tensor) -> Cost:
    """One Jacobian-vector product for each parameter: the tangent beside the values."""
    counter, values = Counter(), [x.unsqueeze(1)]
    for W in layers[:-1]:
        values.append(counter.product(W, values[-1]).tanh())
    own, columns = counter.total, []
    for which, W in enumerate(layers):
        for place in range(W.numel()):
            direction = torch.zeros_like(W)
            direction.view(-1)[place] = 1.0
            columns.append(tangent(layers, values, which, direction, counter))
    return Cost(len(columns), counter.total - own, own, torch.cat(columns, 1))


def tangent(
    layers: list[Tensor], values: list[Tensor], which: int, direction: Tensor, counter: Counter
) -> Tensor:
    """The movement of the outputs with one matrix: d(Wh) = dW h + W dh, from there on."""
    move = counter.product(direction, values[which])
    for i in range(which, len(layers) - 1):
        move = counter.product(layers[i + 1], (1 - values[i + 1] ** 2) * move)
    return move


def draw(paper: Figure, finding: Finding) -> None:
    """Multiply-adds of a whole Jacobian against the number of parameters."""
    assert finding.table is not None
    axes = paper.subplots()
    parameters, _, _, plain, back, back_law, ahead, ahead_law = np.array(finding.table.rows).T
    axes.plot(parameters, ahead, "s", color=LINEAR, label="forward mode")
    axes.plot(parameters, ahead_law, color=LINEAR, lw=0.8, label="Σ mᵢ (mᵢ + … + m_L)")
    axes.plot(parameters, back, "o", color=MODEL, label="reverse mode")
    axes.plot(parameters, back_law, color=MODEL, lw=0.8, label="outputs × (2 Σ mᵢ − m₁)")
    axes.plot(parameters, plain, ":", color=INK, label="the network itself")
    axes.set(xlabel="number of parameters", ylabel="multiply-adds")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("the Jacobian of two outputs: reverse mode costs a pass per output only")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="forward-and-reverse-mode",
    title="The cost of forward and reverse mode",
    statement=(
        "For the derivatives of all outputs in all parameters, forward mode needs one pass per "
        "parameter and reverse mode one per output; a reverse pass costs at most twice the "
        "multiplications of the network itself. Both give the same numbers."
    ),
    formula=(
        r"J \in \mathbb{R}^{k \times P}: \quad \text{forward } P \times (J v), \quad "
        r"\text{reverse } k \times (u^\top J), \quad "
        r"\mathrm{cost}(u^\top J) \le 2\, \mathrm{cost}(f)"
    ),
    sources=("M118", "M119"),
    measure=measure,
    reference="Griewank and Walther (2008), Evaluating Derivatives, chapters 3 and 4.",
    full={"widths": (2, 4, 8, 16, 32)},
    draw=draw,
)
