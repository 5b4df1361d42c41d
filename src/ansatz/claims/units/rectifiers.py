"""ReLU and its leaky relatives, by their cases and not by a maximum."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import activations

STEEP = 1.5  # a slope that a learnt one may reach


def measure(generator: torch.Generator, *, points: int = 1000) -> Finding:
    """The library's activations at random points: homogeneity, slopes, the gradient in a."""
    x = 3 * torch.randn(points, generator=generator, dtype=torch.float64)
    x = torch.cat([x, torch.zeros(1, dtype=torch.float64)])
    c = 10 * torch.rand(points + 1, generator=generator, dtype=torch.float64)
    relu, leaky = activations.create("relu"), activations.create("leaky_relu")
    homogeneous = relative(relu(c * x), c * relu(x))
    softplus = activations.create("softplus")
    below = x[x < 0]
    values, slope = prelu(x, STEEP)
    difference = prelu(x, STEEP + 0.5)[0] - prelu(x, STEEP - 0.5)[0]  # exact: linear in a
    cases = torch.where(x > 0, x, STEEP * x)
    checks = [
        Check(
            "ReLU: largest relative |ReLU(cx) - c ReLU(x)|, c > 0",
            homogeneous,
            0.0,
            EPS,
            "one rounding of the product",
            wrong=Wrong("softplus", measured=relative(softplus(c * x), c * softplus(x))),
        ),
        Check(
            "leaky ReLU: largest |slope below 0 - 0.01|",
            float((leaky(below) / below - 0.01).abs().max()),
            0.0,
            EPS,
            "a product and a quotient round by less than eps",
            wrong=Wrong("ReLU", measured=float((relu(below) / below - 0.01).abs().max())),
        ),
        Check(
            f"PReLU with a = {STEEP}: largest |torch - (x if x > 0 else ax)|",
            float((values - cases).abs().max()),
            0.0,
            0.0,
            "exact: the same product",
            wrong=Wrong(
                "max(ax, x), which fails for a > 1",
                measured=float((torch.maximum(STEEP * x, x) - cases).abs().max()),
                erratum="E54",
            ),
        ),
        Check(
            "PReLU with a = 0.25: largest |torch - max(ax, x)|",
            float((prelu(x, 0.25)[0] - torch.maximum(0.25 * x, x)).abs().max()),
            0.0,
            0.0,
            "exact: for a <= 1 the maximum is right",
        ),
        Check(
            "PReLU: |gradient in a by autograd - Σ min(x, 0)|",
            abs(slope - float(x.clamp(max=0).sum())),
            0.0,
            points * EPS * float(x.abs().sum()),
            "rounding of the sum",
            wrong=Wrong("Σ max(x, 0)", measured=abs(slope - float(x.clamp(min=0).sum()))),
        ),
        Check(
            "PReLU: largest |difference quotient in a - min(x, 0)|",
            float((difference - x.clamp(max=0)).abs().max()),
            0.0,
            4 * EPS * float(x.abs().max()),
            "the function is linear in a; rounding of two products",
        ),
    ]
    return Finding(checks)


def prelu(x: Tensor, a: float) -> tuple[Tensor, float]:
    """Values of torch's PReLU, and the gradient of their sum in a."""
    layer = nn.PReLU(init=a, dtype=torch.float64)
    values = layer(x)
    (slope,) = torch.autograd.grad(values.sum(), layer.weight)
    return values.detach(), float(slope)


def relative(a: Tensor, b: Tensor) -> float:
    """The largest difference over the size of b; where b is 0, a must be."""
    size = b.abs()
    return float(((a - b).abs() / torch.where(size > 0, size, 1.0)).max())


def draw(paper: Figure, finding: Finding) -> None:
    """PReLU with a steep slope, right and as a maximum."""
    axes = paper.subplots()
    x = torch.linspace(-2, 2, 81, dtype=torch.float64)
    few = x[::4]
    axes.plot(few, prelu(few, STEEP)[0], "o", color=MODEL, label=f"PReLU, a = {STEEP}")
    axes.plot(x, torch.where(x > 0, x, STEEP * x), color=LINEAR, label="x if x > 0 else ax")
    axes.plot(
        x, torch.maximum(STEEP * x, x), "--", color=INK, lw=0.8, label="max(ax, x), as printed"
    )
    axes.set(xlabel="x", ylabel="activation")
    axes.set_title("once a exceeds 1, the maximum bends the wrong side")
    axes.legend(loc="upper left")


claim = Claim(
    id="rectifiers",
    title="ReLU and its leaky relatives",
    statement=(
        "ReLU commutes with positive factors; leaky and parametric ReLU have the slope a below "
        "zero, and the gradient in a is min(x, 0). Often printed as max(ax, x), which is wrong "
        "once a learnt slope exceeds one."
    ),
    formula=(
        r"\mathrm{ReLU}(cx) = c\, \mathrm{ReLU}(x) \;\; (c > 0), \qquad "
        r"\mathrm{PReLU}_a(x) = \begin{cases} x & x > 0 \\ a x & x \le 0 \end{cases}, \qquad "
        r"\frac{\partial}{\partial a} \mathrm{PReLU}_a(x) = \min(x, 0)"
    ),
    sources=("M049", "M050", "M051", "E54"),
    measure=measure,
    reference="He et al. (2015), Delving deep into rectifiers. https://arxiv.org/abs/1502.01852",
    full={"points": 100_000},
    errata=(Erratum("E54", "PReLU(x) = max(ax, x)", "x if x > 0 else ax"),),
    draw=draw,
)
