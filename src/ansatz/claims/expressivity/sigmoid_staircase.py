"""A staircase of sigmoidal steps approximates any Lipschitz function at rate 1/m."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import sequential, values

LIPSCHITZ = 6.0
STEEP = 1000.0  # of a step, in steps per width of a stair


class Ndtr(nn.Module):
    """The distribution function of the normal distribution, a sigmoidal activation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.ndtr(x)


UNITS: dict[str, Callable[[], nn.Module]] = {
    "logistic": nn.Sigmoid,
    "normal": Ndtr,
    "ramp": nn.Hardsigmoid,
}


def measure(generator: torch.Generator, *, widths: Sequence[int] = (8, 16, 32, 64, 128)) -> Finding:
    """The largest error of staircases of more and more units, for three sigmoidal functions."""
    errors = {name: np.array([error(m, unit()) for m in widths]) for name, unit in UNITS.items()}
    m = np.asarray(widths, dtype=np.float64)
    tails = 4 * math.exp(-STEEP / 2) / -math.expm1(-STEEP)
    bound = LIPSCHITZ / (2 * m) * (1 + tails)
    lowest = float((np.tanh(STEEP * offsets() / 2) - 2 * offsets()).max())
    fall = errors["logistic"][-1] / errors["logistic"][0]
    slope = float(np.log(fall) / np.log(m[-1] / m[0]))
    tightest = max(float((found / bound).max()) for found in errors.values())
    checks = [
        Check(
            "slope of log error against log units",
            slope,
            -1.0,
            -math.log(lowest) / math.log(m[-1] / m[0]),
            "the error lies between 1 and max(tanh(κu/2) - 2u) of the bound at each m",
            wrong=Wrong("the rate 1/m² of smooth interpolation", predicted=-2.0),
        ),
        Check(
            "largest ratio of error and L/(2m)",
            tightest,
            1.0,
            8 * np.finfo(float).eps * m[-1],
            "rounding of a sum of m steps",
            "<=",
            wrong=Wrong("half of the bound, L/(4m)", measured=2 * tightest),
        ),
    ]
    rows = [[int(k), *(errors[name][i] for name in UNITS), bound[i]] for i, k in enumerate(m)]
    table = Table(["units", *UNITS, "L/(2m)"], rows)
    return Finding(checks, table, {"units": m, "errors": errors, "bound": bound})


def target(x: np.ndarray) -> np.ndarray:
    """A zigzag with slopes 6 and -6: Lipschitz, and nothing better."""
    return 3 * np.abs((2 * x + 0.2) % 1 - 0.5)


def offsets() -> np.ndarray:
    """Distances from a step, in stairs, among which the largest error is found."""
    return np.append(np.geomspace(1e-3, 0.02, 24), np.linspace(0.02, 0.5, 8))


def staircase(m: int, unit: nn.Module) -> nn.Module:
    """f(0) + Σ (f(x_i) - f(x_{i-1})) σ(κ m (x - c_i)), a step half-way between nodes."""
    nodes = np.arange(m + 1) / m
    middle = (nodes[1:] + nodes[:-1]) / 2
    inside = (np.full((m, 1), STEEP * m), -STEEP * m * middle)
    jumps = np.diff(target(nodes))
    return sequential(inside, (jumps[None], target(nodes[:1])), activation=unit)


def error(m: int, unit: nn.Module) -> float:
    """The largest error over points at all offsets from all steps."""
    middle = (np.arange(m) + 0.5) / m
    shift = np.concatenate([-offsets(), offsets()]) / m
    x = (middle[:, None] + shift).ravel()
    return float(np.abs(values(staircase(m, unit), x) - target(x)).max())


def draw(paper: Figure, finding: Finding) -> None:
    """A staircase over its target, and the errors along the bound."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, PALETTE

    left, right = paper.subplots(1, 2)
    x = np.linspace(0, 1, 2001)
    left.plot(x, target(x), color=INK, label="target")
    left.plot(x, values(staircase(16, nn.Sigmoid()), x), color=MODEL, label="16 units")
    left.set(xlabel="x", ylabel="f(x)", ylim=(-0.1, 1.95), title="sums of steps reach any function")
    left.legend(ncols=2, loc="upper center")
    m = finding.data["units"]
    right.loglog(m, finding.data["bound"], color=INK, label="L/(2m)")
    right.loglog(
        m, finding.data["bound"][0] * (m[0] / m) ** 2, "--", color=LINEAR, lw=0.9, label="1/m²"
    )
    marks = zip(finding.data["errors"].items(), "osv", PALETTE[:1] + PALETTE[2:4], strict=True)
    for (name, found), mark, colour in marks:
        right.loglog(m, found, mark, color=colour, label=name, fillstyle="none")
    right.set(xlabel="hidden units m", ylabel="largest error", title="the error falls as 1/m")
    right.legend(fontsize=7, loc="lower left")
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="sigmoid-staircase",
    title="Universal approximation in one dimension, by hand",
    statement=(
        "One hidden layer of m sigmoidal units approximates every function with Lipschitz constant "
        "L on [0, 1] within L/(2m), by steps half-way between nodes. Cybenko's theorem needs a "
        "continuous sigmoidal function, a condition that is often left out; Hornik's needs a "
        "continuous, bounded and nonconstant one. Both prove only that weights exist; this "
        "construction gives them."
    ),
    formula=(
        r"f_m(x) = f(0) + \sum_{i=1}^m \big(f(\tfrac{i}{m}) - f(\tfrac{i-1}{m})\big)\, "
        r"\sigma\big(\kappa m (x - \tfrac{i - 1/2}{m})\big), \qquad "
        r"\sup_{[0,1]} |f - f_m| \le \frac{L}{2m} \;\; (\kappa \to \infty)"
    ),
    sources=("M062", "M063"),
    measure=measure,
    reference=(
        "Cybenko (1989), Approximation by superpositions of a sigmoidal function; Hornik (1991), "
        "Approximation capabilities of multilayer feedforward networks."
    ),
    full={"widths": (8, 16, 32, 64, 128, 256, 512)},
    draw=draw,
)
