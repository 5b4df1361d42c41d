"""Covering numbers of networks: a grid of weights covers them, and d! of its points are one."""

import math

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP
from ansatz.theory import log10_covering_deep, log10_covering_shallow

SHALLOW, DEEP = (4, 20), (3, 8, 8)
STEEP = 100.0  # the slope of a rectifier that is not 1-Lipschitz


def measure(generator: torch.Generator, *, radius: float = 0.1, networks: int = 60) -> Finding:
    """Networks rounded to the grids of the theorems, and the factorials by whole numbers."""
    log_full = log10_covering_shallow(64, 128, radius=radius, discount=False)
    discount = log_full - log10_covering_shallow(64, 128, radius=radius)
    exact = math.log10(math.factorial(128))
    stirling = (128 * math.log(128) - 128) / math.log(10)
    size = round(
        log10_covering_shallow(64, 128, radius=radius / 10, discount=False) - log_full
    )  # a tenth of the radius needs ten times the values of each weight
    counted = sum(p.numel() for p in MLP(64, 1, widths=(128,)).parameters())
    levels = {
        widths: 10
        ** (log10_covering_deep(widths, radius=radius, discount=False) / parameters(widths))
        for widths in (SHALLOW, DEEP)
    }
    levels[SHALLOW] = 10 ** (
        log10_covering_shallow(*SHALLOW, radius=radius, discount=False) / parameters(SHALLOW)
    )
    narrow = {SHALLOW: levels[SHALLOW] / SHALLOW[1], DEEP: 16 * 2 * 3**0.5 * 8 / radius}
    inside = 10 ** (
        log10_covering_deep(DEEP, radius=radius, lipschitz=STEEP, discount=False) / parameters(DEEP)
    )
    outside = levels[DEEP] * STEEP ** (1 - (DEEP[-1] + 1) / parameters(DEEP))
    errors = {w: worst_error(w, levels[w], networks, generator) for w in levels}
    broken = {w: worst_error(w, narrow[w], networks, generator) for w in levels}
    rounding = 4 * EPS * log_full
    checks = [
        Check(
            "decimal digits that 128 hidden units save",
            discount,
            exact,
            rounding,
            "rounding: 4 eps times the logarithm they are subtracted from",
            wrong=Wrong("Stirling without √(2πn)", predicted=stirling),
        ),
        Check(
            "weights S of a network with 64 inputs and 128 hidden units",
            size,
            counted,
            0,
            "whole numbers, against the parameters of the network itself",
            wrong=Wrong("without biases, d₀d₁ + d₁", predicted=64 * 128 + 128),
        ),
        Check(
            "largest error of shallow networks on the theorem's grid, over ε",
            errors[SHALLOW] / radius,
            1.0,
            0.0,
            "a bound on every network and input",
            "<=",
            wrong=Wrong("a grid without the factor d₁", measured=broken[SHALLOW] / radius),
        ),
        Check(
            "largest error of deep networks on the theorem's grid, over ε",
            errors[DEEP] / radius,
            1.0,
            0.0,
            "a bound on every network and input",
            "<=",
            wrong=Wrong("the grid of one hidden layer", measured=broken[DEEP] / radius),
        ),
        Check(
            f"the same with a rectifier of slope ρ = {STEEP:g}",
            worst_error(DEEP, inside, networks, generator, STEEP) / radius,
            1.0,
            0.0,
            "a bound on every network and input",
            "<=",
            wrong=Wrong(
                "ρ^S_h behind the power in place of ρ^L within",
                measured=worst_error(DEEP, outside, networks, generator, STEEP) / radius,
            ),
        ),
    ]
    widths = [2**k for k in range(1, 11)]
    saved = [
        log10_covering_shallow(64, d, radius=radius, discount=False)
        - log10_covering_shallow(64, d, radius=radius)
        for d in widths
    ]
    table = Table(
        ["hidden units", "log10 covering number", "log10 d!"],
        [
            [d, log10_covering_shallow(64, d, radius=radius), s]
            for d, s in zip(widths, saved, strict=True)
        ],
    )
    return Finding(checks, table, {"widths": widths, "saved": saved})


def parameters(widths: tuple[int, ...]) -> int:
    """Weights and biases, the output's included."""
    return sum(p.numel() for p in MLP(widths[0], 1, widths=widths[1:]).parameters())


def worst_error(
    widths: tuple[int, ...],
    levels: float,
    networks: int,
    generator: torch.Generator,
    slope: float = 1.0,
) -> float:
    """The largest change of an output when weights in [-1, 1] are rounded to ``levels`` values.

    Random networks and inputs, and the network of ones at the largest input: there all the
    rounding errors have the same sign.
    """
    shapes = [(b, a + 1) for a, b in zip(widths, (*widths[1:], 1), strict=True)]
    worst = 0.0
    for k in range(networks + 1):
        layers = [
            torch.ones(shape, dtype=torch.float64)
            if k == 0
            else 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1
            for shape in shapes
        ]
        x = torch.randn(20, widths[0], generator=generator, dtype=torch.float64)
        top = x.norm(dim=1, keepdim=True) if len(widths) == 2 else x.abs().amax(1, keepdim=True)
        x = torch.cat([x / top, torch.ones(1, widths[0], dtype=torch.float64)])
        if len(widths) == 2:  # the shallow theorem bounds the norm, the deep one each coordinate
            x[-1] /= widths[0] ** 0.5
        rounded = [to_grid(w, levels) for w in layers]
        worst = max(
            worst, float((forward(layers, x, slope) - forward(rounded, x, slope)).abs().max())
        )
    return worst


def to_grid(w: Tensor, levels: float) -> Tensor:
    """The nearest of ``levels`` equally spaced values in [-1, 1]."""
    cell = ((w + 1) * levels / 2).floor().clamp(max=levels - 1)
    return (cell + 0.5) * 2 / levels - 1


def forward(layers: list[Tensor], x: Tensor, slope: float) -> Tensor:
    """A rectified network; the last column of a layer is its bias."""
    for k, layer in enumerate(layers):
        x = x @ layer[:, :-1].T + layer[:, -1]
        x = slope * x.relu() if k < len(layers) - 1 else x
    return x


def draw(paper: Figure, finding: Finding) -> None:
    """Digits saved against width."""
    axes = paper.subplots()
    widths, saved = np.array(finding.data["widths"]), finding.data["saved"]
    exact = [math.log10(math.factorial(int(d))) for d in widths]
    stirling = (widths * np.log(widths) - widths) / math.log(10)
    axes.plot(widths, exact, color=INK, label="log₁₀ d!, whole numbers")
    axes.plot(
        widths[2:], stirling[2:], "--", color=LINEAR, linewidth=0.9, label="(d ln d − d) / ln 10"
    )
    axes.plot(widths, saved, "o", color=MODEL, markersize=6, label="with and without the discount")
    axes.annotate(
        "128! ≈ 10²¹⁵·⁶", (128, 215.6), (20, 600), arrowprops={"arrowstyle": "-", "color": INK}
    )
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="hidden units d", ylabel="decimal digits saved")
    axes.set_title("equal functions are counted once: d hidden units save log₁₀ d! digits")
    axes.legend(loc="lower right")


claim = Claim(
    id="covering-numbers",
    title="Covering numbers of networks",
    statement=(
        "A grid of weights covers all networks with bounded weights up to ε, and every function on "
        "it appears d₁!…d_L! times, so the covering number may be divided by that: 128 hidden "
        "units save a factor 128! ≈ 10^215.6. For L hidden layers the class is F(L, …); F(1, …) is "
        "a common slip. The Lipschitz constant ρ of the activation counts once per layer, in the "
        "grid of every weight."
    ),
    formula=(
        r"N(\epsilon) \le \Big( \frac{16 B^2 (B_x + 1) \sqrt{d_0}\, d_1}{\epsilon} \Big)^{S} "
        r"\frac{\rho^{S_h}}{d_1!}, \quad N(\epsilon) \le \Big( \frac{4 (L+1) (B_x + 1) (2B)^{L+2} "
        r"\rho^L \prod_j d_j}{\epsilon} \Big)^{S} \frac{1}{d_1! \cdots d_L!}"
    ),
    sources=("M364", "M365"),
    measure=measure,
    reference=(
        "Shen (2024), Exploring the complexity of deep neural networks through functional "
        "equivalence, theorems 3 and 4. https://arxiv.org/abs/2305.11417"
    ),
    full={"networks": 2_000},
    draw=draw,
)
