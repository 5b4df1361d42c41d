"""Weight normalisation: the gradient of the direction is orthogonal to it."""

from typing import Any

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import normalize


def measure(
    generator: torch.Generator, *, inputs: int = 6, units: int = 4, steps: int = 40
) -> Finding:
    """Gradients by autograd through torch's parametrisation, and the length of v on the way."""
    rate = 0.5
    layer: Any = nn.Linear(inputs, units, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(units, inputs, generator=generator, dtype=torch.float64))
        layer.bias.zero_()
    normalize(layer, "weight")
    gain = layer.parametrizations.weight.original0
    direction = layer.parametrizations.weight.original1
    with torch.no_grad():
        direction.mul_(1.5)  # the length of v is not the gain
    x = torch.randn(50, inputs, generator=generator, dtype=torch.float64)
    y = torch.randn(50, units, generator=generator, dtype=torch.float64)
    rule = torch.optim.SGD([direction], lr=rate)
    errors: list[float] = []
    without, cosines, tilted, grown, stayed, moved = (list(errors) for _ in range(6))
    lengths = [float(direction.detach().norm())]
    for _ in range(steps):
        rule.zero_grad()
        weight = layer.weight
        weight.retain_grad()
        loss = (nn.functional.linear(x, weight, layer.bias) - y).square().mean()
        loss.backward()
        v, g, dw, dv = direction.detach(), gain.detach(), weight.grad, direction.grad
        length = v.norm(dim=1, keepdim=True)
        w = weight.detach()
        radial = (dw * w).sum(1, keepdim=True) / w.square().sum(1, keepdim=True) * w
        errors.append(float((dv - g / length * (dw - radial)).abs().max()))
        without.append(float((dv - g / length * dw).abs().max()))
        cosines.append(cosine(dv, w))
        tilted.append(cosine(dw, w))
        moved.append(rate**2 * float(dv.square().sum()))
        squared = float(v.square().sum() + rate**2 * dv.square().sum())
        rule.step()
        lengths.append(float(direction.detach().norm()))
        grown.append(abs(lengths[-1] ** 2 - squared))
        stayed.append(abs(lengths[-1] ** 2 - lengths[-2] ** 2))
    rounding = 32 * EPS * inputs * 50**0.5
    small = float(dv.norm(dim=1).min())
    checks = [
        Check(
            "largest distance of ∂v from (γ/‖v‖)(I - wwᵀ/‖w‖²) ∂w",
            max(errors),
            0.0,
            rounding,
            "rounding: 32 eps times the inputs and √n",
            wrong=Wrong("without the projection", measured=max(without)),
        ),
        Check(
            "largest cosine of the angle between ∂v and w",
            max(cosines),
            0.0,
            rounding / small,
            "rounding, over the smallest gradient",
            wrong=Wrong("between ∂w and w", measured=max(tilted)),
        ),
        Check(
            "largest distance of ‖v‖² after a step from ‖v‖² + η²‖∂v‖²",
            max(grown),
            0.0,
            rounding * max(lengths) ** 2,
            "rounding: Pythagoras, times the squared length",
            wrong=Wrong("a length that stays", measured=max(stayed)),
        ),
    ]  # fmt: skip
    table = Table(["step", "length of v"], [[t, n] for t, n in enumerate(lengths) if t % 10 == 0])
    return Finding(checks, table, {"lengths": np.array(lengths), "moved": np.array(moved)})


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest, over the rows, of the angles' cosines."""
    return float(nn.functional.cosine_similarity(one, other, dim=1).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The length of v only grows."""
    axes = paper.subplots()
    lengths = finding.data["lengths"]
    t = np.arange(len(lengths))
    predicted = np.sqrt(lengths[0] ** 2 + np.cumsum([0.0, *finding.data["moved"]]))
    axes.plot(t, predicted, color=INK, label="√(‖v₀‖² + η² Σ ‖∂v‖²)")
    axes.plot(t, lengths, "o", color=MODEL, label="‖v‖ under gradient descent")
    axes.axhline(lengths[0], color=LINEAR, linestyle="--", linewidth=0.9, label="first length")
    axes.set(xlabel="step", ylabel="length of the direction v")
    axes.set_title("each step is orthogonal to v, so by Pythagoras v only grows")
    axes.legend(loc="center right")


claim = Claim(
    id="weight-norm",
    title="Weight normalisation projects the gradient",
    statement=(
        "With w = γv/‖v‖, the gradient for v is that for w without its part along w, times γ/‖v‖. "
        "It is orthogonal to w, so gradient descent never shortens v."
    ),
    formula=(
        r"w = \gamma \frac{v}{\|v\|}, \qquad \nabla_v = \frac{\gamma}{\|v\|} \Big( I - "
        r"\frac{w w^\top}{\|w\|^2} \Big) \nabla_w, \qquad \nabla_v^\top w = 0"
    ),
    sources=("M166",),
    measure=measure,
    reference="Salimans and Kingma (2016), Weight normalization, eq. 3. https://arxiv.org/abs/1602.07868",
    full={"inputs": 50, "units": 20, "steps": 400},
    draw=draw,
)
