"""Prince's toy chain: cos, exp and sin, with all eight derivatives."""

import math
from collections.abc import Callable

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL

NAMES = ("β₀", "ω₀", "β₁", "ω₁", "β₂", "ω₂", "β₃", "ω₃")


def measure(generator: torch.Generator, *, instances: int = 20) -> Finding:
    """Backward passes by hand against autograd and a step into the complex plane."""
    hand, wrong, calls = [], [], []
    first: dict[str, list[float]] = {}
    for i in range(instances):
        theta = torch.randn(8, generator=generator, dtype=torch.float64)
        x, y = (float(v) for v in torch.randn(2, generator=generator, dtype=torch.float64))
        values, functions = forward(theta.tolist(), x, y)
        ours = backward(theta.tolist(), values, x, y)
        auto, stepped = autograd(theta, x, y), complex_step(theta.numpy(), x, y)
        size = max(map(abs, stepped))
        hand.append(max(abs(a - b) for a, b in zip(ours, stepped, strict=True)) / size)
        calls.append(max(abs(a - b) for a, b in zip(ours, auto, strict=True)) / size)
        slipped = backward(theta.tolist(), values, x, y, cosine=1.0)
        wrong.append(max(abs(a - b) for a, b in zip(slipped, stepped, strict=True)) / size)
        if i == 0:
            first = {"hand": ours, "autograd": auto, "slip": slipped}
    # Each derivative is a product of at most 3 slopes and 3 weights; an exponent of size 10 loses
    # ten units in the last place.
    tolerance = 64 * EPS
    because = "rounding: at most 10 factors, each within a few eps, an exponent of size up to 10"
    checks = [
        Check(
            "by hand against a complex step: largest relative difference of 8 derivatives",
            max(hand),
            0.0,
            tolerance,
            because,
            wrong=Wrong("+ sin for the derivative of cos", measured=max(wrong)),
        ),
        Check(
            "by hand against autograd: largest relative difference",
            max(calls),
            0.0,
            tolerance,
            because,
        ),
        Check(
            "evaluations of sin, exp and cos in the forward pass",
            functions,
            3,
            0,
            "whole numbers: each once, its value kept for the way back",
            wrong=Wrong("again for each of 8 parameters", predicted=3 * 8),
        ),
    ]
    rows = [[n, *(first[k][j] for k in first)] for j, n in enumerate(NAMES)]
    return Finding(checks, Table(["parameter", *first], rows))


def forward(theta: list[float], x: float, y: float) -> tuple[dict[str, float], int]:
    """The intermediate values of ℓ = (f - y)², and how many functions were evaluated."""
    b0, w0, b1, w1, b2, w2, b3, w3 = theta
    calls: list[Callable[[float], float]] = []

    def call(function: Callable[[float], float], z: float) -> float:
        calls.append(function)
        return function(z)

    f0 = b0 + w0 * x
    h1 = call(math.sin, f0)
    f1 = b1 + w1 * h1
    h2 = call(math.exp, f1)
    f2 = b2 + w2 * h2
    h3 = call(math.cos, f2)
    f3 = b3 + w3 * h3
    return {"f0": f0, "h1": h1, "f1": f1, "h2": h2, "f2": f2, "h3": h3, "f3": f3}, len(calls)


def backward(
    theta: list[float], v: dict[str, float], x: float, y: float, *, cosine: float = -1.0
) -> list[float]:
    """Backward pass 1 along f3, h3, ..., f0; backward pass 2 to the parameters."""
    _, _, _, w1, _, w2, _, w3 = theta
    d_f3 = 2 * (v["f3"] - y)
    d_f2 = d_f3 * w3 * cosine * math.sin(v["f2"])
    d_f1 = d_f2 * w2 * v["h2"]  # exp is its own derivative
    d_f0 = d_f1 * w1 * math.cos(v["f0"])
    pairs = ((d_f0, x), (d_f1, v["h1"]), (d_f2, v["h2"]), (d_f3, v["h3"]))
    return [part for d, h in pairs for part in (d, d * h)]


def autograd(theta: torch.Tensor, x: float, y: float) -> list[float]:
    """The same eight numbers by torch."""
    t = theta.clone().requires_grad_()
    f = t[6] + t[7] * torch.cos(t[4] + t[5] * torch.exp(t[2] + t[3] * torch.sin(t[0] + t[1] * x)))
    (found,) = torch.autograd.grad((f - y) ** 2, t)
    return [float(d) for d in found]


def complex_step(theta: np.ndarray, x: float, y: float, h: float = 1e-30) -> list[float]:
    """Im ℓ(θ + ih) / h, which subtracts nothing."""
    found = []
    for unit in np.eye(8):
        t = theta + 1j * h * unit
        f = t[6] + t[7] * np.cos(t[4] + t[5] * np.exp(t[2] + t[3] * np.sin(t[0] + t[1] * x)))
        found.append(float(np.imag((f - y) ** 2)) / h)
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """The eight derivatives of one example."""
    assert finding.table is not None
    axes = paper.subplots()
    names, hand, auto, slip = zip(*finding.table.rows, strict=True)
    axes.plot(names, hand, "o", color=MODEL, markersize=6, label="two backward passes, by hand")
    axes.plot(names, auto, "_", color=LINEAR, markersize=16, label="autograd")
    axes.plot(names, slip, "x", color=INK, label="with + sin for cos′")
    axes.axhline(0, color=INK, lw=0.7)
    axes.set(xlabel="parameter", ylabel="derivative of the loss")
    axes.set_title("f = β₃ + ω₃ cos(β₂ + ω₂ exp(β₁ + ω₁ sin(β₀ + ω₀ x))): all eight derivatives")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="cos-exp-sin",
    title="Prince's chain of cos, exp and sin",
    statement=(
        "For a chain of a sine, an exponential and a cosine with eight parameters, one backward "
        "pass along the intermediate values and a second one to the parameters give all eight "
        "derivatives, from three function values computed once."
    ),
    formula=(
        r"f = \beta_3 + \omega_3 \cos(\beta_2 + \omega_2 \exp(\beta_1 + \omega_1 "
        r"\sin(\beta_0 + \omega_0 x))), \qquad \frac{\partial \ell}{\partial f_{k-1}} = "
        r"\frac{\partial \ell}{\partial f_k} \, \omega_k \, a_k'(f_{k-1}), \quad "
        r"\frac{\partial \ell}{\partial \beta_k} = \frac{\partial \ell}{\partial f_k}, \quad "
        r"\frac{\partial \ell}{\partial \omega_k} = h_k \frac{\partial \ell}{\partial f_k}"
    ),
    sources=("M117",),
    measure=measure,
    reference="Prince (2023), Understanding Deep Learning, section 7.3 and notebook 7.1. "
    "https://udlbook.github.io/udlbook/",
    full={"instances": 500},
    draw=draw,
)
