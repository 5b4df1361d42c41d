"""Hidden units may be put in any order: many weight vectors, one function."""

import itertools
import math

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP
from ansatz.theory import log10_equivalent_weights


def measure(generator: torch.Generator, *, width: int = 3, kinds: int = 12) -> Finding:
    """All orders of the units of two layers, and all networks made of a few kinds of units."""
    network = MLP(2, 1, widths=(width, width), activation="tanh", generator=generator).double()
    x = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    weights, outputs, broken = [], [], []
    orders = list(itertools.permutations(range(width)))
    for first, second in itertools.product(orders, orders):
        vector, output = permuted(network, x, first, second)
        weights.append(vector)
        outputs.append(output)
        if first != orders[0]:
            broken.append(permuted(network, x, first, second, follow=False)[1])
    found = torch.stack(outputs)
    moved = float((torch.stack(broken) - found[0]).abs().amax(1).min())
    distinct = len(torch.unique(torch.stack(weights), dim=0))
    counted = [functions(k, width, generator) for k in range(1, kinds + 1)]
    last = math.comb(kinds + width - 1, width)
    checks = [
        Check(
            f"largest change of the function over {len(weights)} orders of the units",
            float((found - found[0]).abs().max()),
            0.0,
            32 * EPS * width,
            "rounding: sums in another order, 32 eps times the width",
            wrong=Wrong("the weights behind the units do not follow", measured=moved),
        ),
        Check(
            "weight vectors of that one function",
            distinct,
            round(10 ** log10_equivalent_weights((width, width))),
            0,
            "whole numbers",
            wrong=Wrong("the orders of one layer only", predicted=math.factorial(width)),
        ),
        Check(
            f"functions among the {kinds**width} networks of {width} units of {kinds} kinds",
            counted[-1],
            last,
            0,
            "whole numbers, compared at 20 points",
            wrong=Wrong("one function for each weight vector", predicted=kinds**width),
        ),
    ]
    ratios = [k**width / c for k, c in enumerate(counted, 1)]
    table = Table(
        ["kinds", "weight vectors", "functions", "ratio"],
        [[k, k**width, c, r] for k, (c, r) in enumerate(zip(counted, ratios, strict=True), 1)],
    )
    return Finding(checks, table, {"ratios": ratios, "width": width})


def permuted(
    network: MLP, x: Tensor, first: tuple[int, ...], second: tuple[int, ...], *, follow: bool = True
) -> tuple[Tensor, Tensor]:
    """Weights and outputs with the units of both layers in another order."""
    one, two = (as_pair(layer) for layer in network.hidden)
    last = network.output
    a, b = list(first), list(second)
    behind = (a, b) if follow else (list(range(len(a))),) * 2
    parts = [
        one[0][a], one[1][a], two[0][b][:, behind[0]], two[1][b], last.weight[:, behind[1]],
        last.bias,
    ]  # fmt: skip
    h = torch.tanh(x @ parts[0].T + parts[1])
    h = torch.tanh(h @ parts[2].T + parts[3])
    output = (h @ parts[4].T + parts[5]).detach()[:, 0]
    return torch.cat([part.flatten() for part in parts]).detach(), output


def as_pair(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Weights and biases of a linear layer."""
    assert isinstance(layer, nn.Linear)
    return layer.weight, layer.bias


def functions(kinds: int, width: int, generator: torch.Generator) -> int:
    """Different functions among sums of ``width`` units, each of one of ``kinds`` kinds."""
    x = torch.linspace(-2, 2, 20, dtype=torch.float64)
    w, b, a = torch.randn(3, kinds, 1, generator=generator, dtype=torch.float64)
    # Rounded to few digits, so that sums are exact and do not depend on their order.
    unit = (2**20 * a * torch.tanh(w * x + b)).round()  # (kinds, points)
    choices = torch.cartesian_prod(*[torch.arange(kinds)] * width).reshape(-1, width)
    outputs = unit[choices].sum(1)  # (kinds^width, points)
    return len(torch.unique(outputs, dim=0))


def draw(paper: Figure, finding: Finding) -> None:
    """Weight vectors per function, on the way to d!."""
    axes = paper.subplots()
    ratios, width = finding.data["ratios"], finding.data["width"]
    k = np.arange(1, len(ratios) + 1)
    exact = [i**width / math.comb(i + width - 1, width) for i in k]
    axes.plot(k, exact, color=INK, label="Kᵈ / C(K + d − 1, d)")
    axes.plot(k, ratios, "o", color=MODEL, markersize=5, label="counted")
    axes.axhline(
        math.factorial(width), color=INK, linestyle=":", label=f"d! = {math.factorial(width)}"
    )
    axes.plot(k, np.ones(len(k)), "--", color=LINEAR, linewidth=0.9, label="no equivalence")
    axes.set(
        xlabel="kinds K of a unit (values its weights may take)",
        ylabel="weight vectors per function",
    )
    axes.set_title(
        f"{width} hidden units: almost {math.factorial(width)} weight vectors for each function"
    )
    axes.legend(loc="center right")


claim = Claim(
    id="functional-equivalence",
    title="d₁!…d_L! weight vectors compute one function",
    statement=(
        "Putting the units of a hidden layer in another order, with the weights behind them, does "
        "not change the function: a generic network with widths d₁, …, d_L has d₁!…d_L! weight "
        "vectors. On a grid of weights, functions are fewer by nearly that."
    ),
    formula=(
        r"f_{P_L \cdots P_1 \theta} = f_\theta, \qquad |\{\theta' : f_{\theta'} = f_\theta\}| \ge "
        r"d_1! \cdots d_L!"
    ),
    sources=("M366",),
    measure=measure,
    reference=(
        "Hecht-Nielsen (1990), On the algebraic structure of feedforward network weight spaces; "
        "Shen (2024), Exploring the complexity of deep neural networks through functional "
        "equivalence, section 2. https://arxiv.org/abs/2305.11417"
    ),
    full={"kinds": 30},
    draw=draw,
)
