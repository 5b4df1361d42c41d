"""Equivariant: outputs follow the order of the inputs. Invariant: they ignore it."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import MultiHeadAttention, SinusoidalPositions


def measure(generator: torch.Generator, *, elements: int = 7, trials: int = 20) -> Finding:
    """Attention under permutations, and its sum and maximum over the elements."""
    X = torch.randn(1, elements, 4, generator=generator, dtype=torch.float64)
    attention = MultiHeadAttention(4, 2, generator=generator).double().requires_grad_(False)
    positions = SinusoidalPositions(4)
    follows, ignores, pooled, placed = [], [], [], []
    for _ in range(trials):
        order = torch.randperm(elements, generator=generator)
        while (order == torch.arange(elements)).all():
            order = torch.randperm(elements, generator=generator)
        plain, mixed = attention(X), attention(X[:, order])
        follows.append(gap(mixed, plain[:, order]))
        ignores.append(gap(mixed, plain))
        for pool in (torch.sum, torch.amax):
            pooled.append(gap(pool(mixed, 1), pool(plain, 1)))
        seen, turned = attention(positions(X)), attention(positions(X[:, order]))
        placed.append(gap(turned, seen[:, order]))
    rounding = 64 * elements * 2.0**-52
    because = "rounding: 64 n eps for an exponential and sums over the elements"
    checks = [
        Check(
            "largest |f(PX) - P f(X)| of attention: equivariance",
            max(follows),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "the order does not influence the output: f(PX) = f(X)",
                measured=max(ignores),
                erratum="E32",
            ),
        ),
        Check(
            "largest change of its sum and its maximum: invariance",
            max(pooled),
            0.0,
            rounding,
            because,
            wrong=Wrong("without pooling", measured=max(ignores)),
        ),
        Check(
            "least |f(PX) - P f(X)| with positions: the order is seen",
            min(placed),
            rounding,
            0.0,
            "beyond rounding for every new order",
            ">=",
            Wrong("without positions", measured=min(follows)),
        ),
    ]
    data = {"P f(X)": follows, "f(X)": ignores, "P f(X), with positions": placed,
            "pooled f(X)": pooled}  # fmt: skip
    return Finding(checks, data=data)


def gap(one: Tensor, other: Tensor) -> float:
    """The largest difference."""
    return float((one - other).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """Differences from f(PX) under random permutations."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL

    axes = paper.subplots()
    rows = ("P f(X)", "pooled f(X)", "f(X)", "P f(X), with positions")
    for place, name in enumerate(rows):
        values = [max(value, 1e-17) for value in finding.data[name]]
        color = MODEL if place < 2 else LINEAR
        axes.plot(values, [place] * len(values), "o", color=color, ms=4, alpha=0.6)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xscale("log")
    logarithmic(axes.xaxis)
    axes.set(xlabel="largest difference from f(PX) (pooled: from its pooled self)")
    axes.set_title("attention follows a new order exactly, until positions show it the order")


claim = Claim(
    id="equivariance-or-invariance",
    title="Attention is equivariant, its sum is invariant",
    statement=(
        "Under a new order of the inputs the outputs of attention come in the new order "
        "(equivariance), and their sum or maximum stays the same (invariance). A common slip "
        "explains equivariance as the order not influencing the output, which is invariance. "
        "Positions added to the inputs break the symmetry: that is their purpose."
    ),
    formula=r"f(PX) = P f(X) \;\text{(equivariant)}, \qquad g(PX) = g(X) \;\text{(invariant)}",
    sources=("E32", "M267", "M278"),
    measure=measure,
    reference="Bronstein et al. (2021), Geometric deep learning. https://arxiv.org/abs/2104.13478",
    full={"elements": 100, "trials": 100},
    errata=(
        Erratum(
            "E32",
            "equivariant: the order does not influence the output",
            "that is invariance; equivariant outputs follow the order",
        ),
    ),
    draw=draw,
)
