"""SELU keeps mean 0 and variance 1 through depth; ELU is smooth at 0 only for α = 1."""

import math

import torch
from scipy.integrate import quad
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import Dense, activations

NAMES = ("selu", "elu", "relu")


def measure(
    generator: torch.Generator, *, width: int = 128, rows: int = 32, depth: int = 16, runs: int = 3
) -> Finding:
    """Moments of one activation by quadrature; of a deep network by simulation."""
    moments = {name: normal_moments(activations.create(name)) for name in NAMES}
    paths = {name: variances(name, width, rows, depth, runs, generator) for name in NAMES}
    last = paths["selu"][:, -1]
    centre = {a: one_sided(a) for a in (0.5, 1.0)}
    deviation = relaxation(depth, width)
    checks = [
        Check(
            "mean of SELU(z), z ~ N(0, 1)",
            moments["selu"][0],
            0.0,
            4 * 1.49e-8,
            "the absolute tolerance of scipy's quad, for four integrals",
            wrong=Wrong("ELU with α = 1", measured=moments["elu"][0]),
        ),
        Check(
            "variance of SELU(z), z ~ N(0, 1)",
            moments["selu"][1],
            1.0,
            4 * 1.49e-8,
            "the absolute tolerance of scipy's quad, for four integrals",
            wrong=Wrong("ELU with α = 1", measured=moments["elu"][1]),
        ),
        Check(
            f"mean square after {depth} SELU layers with LeCun's weights",
            float(last.mean()),
            1.0,
            4 * deviation / runs**0.5,
            "4 standard errors: each layer adds a relative error of √(κ/width), which the map's "
            "slope at its fixed point damps",
            wrong=Wrong("ELU with α = 1", measured=float(paths["elu"][:, -1].mean())),
        ),
        Check(
            "ELU, α = 1: jump of the slope at 0",
            centre[1.0][1],
            0.0,
            1e-6,
            "the slopes are taken 1e-6 beside 0, where the second derivative is 1 at most",
            wrong=Wrong("α = 0.5", measured=centre[0.5][1]),
        ),
        Check(
            "ELU, α = 0.5: jump of the value at 0",
            centre[0.5][0],
            0.0,
            2e-6,
            "continuous: values 1e-6 beside 0 differ by slopes up to 1 times 2e-6",
            wrong=Wrong("of the slope", measured=centre[0.5][1]),
        ),
    ]
    rows_ = [[n, *moments[n], float(paths[n][:, -1].mean())] for n in NAMES]
    head = ["activation", "mean", "variance", f"mean square after {depth} layers"]
    return Finding(checks, Table(head, rows_), {"paths": paths})


def normal_moments(phi: nn.Module) -> tuple[float, float]:
    """Mean and variance of an activation of a standard normal number, by quadrature."""

    def moment(power: int) -> float:
        def integrand(z: float) -> float:
            density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            return density * float(phi(torch.tensor(z, dtype=torch.float64))) ** power

        return float(quad(integrand, -9, 0)[0] + quad(integrand, 0, 9)[0])

    mean = moment(1)
    return mean, moment(2) - mean**2


def variances(
    name: str, width: int, rows: int, depth: int, runs: int, generator: torch.Generator
) -> Tensor:
    """Mean square of the signal after each layer, (runs, depth + 1)."""
    found = torch.empty(runs, depth + 1, dtype=torch.float64)
    with torch.no_grad():
        for run in range(runs):
            h = torch.randn(rows, width, generator=generator, dtype=torch.float64)
            found[run, 0] = h.square().mean()
            for layer in range(depth):
                dense = Dense(
                    width, width, activation=name, init="lecun_normal", generator=generator
                ).double()
                h = dense(h)
                found[run, layer + 1] = h.square().mean()
    return found


def relaxation(depth: int, width: int) -> float:
    """The standard deviation of the mean square at the last layer.

    With q the mean square of a signal, a layer makes F(q) = E SELU(√q z)² of it, plus noise of
    variance Var(SELU²)/width; F'(1) < 1 damps what earlier layers added. The rows of a batch share
    the weights, so their noise is at most as if they were one row.
    """
    phi = activations.create("selu")
    z = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    weight = torch.exp(-(z**2) / 2) / (2 * torch.pi) ** 0.5 * (z[1] - z[0])

    def square(q: float) -> float:
        return float((weight * phi(q**0.5 * z) ** 2).sum())

    damping = (square(1.01) - square(0.99)) / 0.02
    noise = float((weight * phi(z) ** 4).sum()) - 1
    total = sum(damping ** (2 * i) for i in range(depth)) * noise / width
    return total**0.5


def one_sided(alpha: float, h: float = 1e-6) -> tuple[float, float]:
    """Jumps of the value and of the slope of ELU at 0."""
    x = torch.tensor([-h, h], dtype=torch.float64, requires_grad=True)
    value = nn.ELU(alpha)(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    low, high = value.detach()
    return float((high - low).abs()), float((slope[1] - slope[0]).abs())


def draw(paper: Figure, finding: Finding) -> None:
    """Mean square of the signal by layer."""
    axes = paper.subplots()
    marks = (("selu", "SELU", "o", MODEL), ("elu", "ELU", "s", LINEAR), ("relu", "ReLU", "^", INK))
    for name, label, mark, colour in marks:
        path = finding.data["paths"][name]
        axes.errorbar(
            range(path.shape[1]),
            path.mean(0),
            2 * path.std(0) / len(path) ** 0.5,
            fmt=mark,
            color=colour,
            label=label,
            lw=0.8,
        )
    axes.axhline(1, color=MODEL, label="fixed point")
    axes.set(
        xlabel="layer, with LeCun's weights", ylabel="mean square of the signal", ylim=(0, None)
    )
    axes.set_title("SELU preserves the size of a signal through depth")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="selu-fixed-point",
    title="SELU's fixed point",
    statement=(
        "SELU's two constants are those for which a standard normal number has mean 0 and variance "
        "1 after the activation, so with LeCun's weights a signal keeps its size through depth. "
        "ELU is continuous for every α, with a continuous slope only for α = 1."
    ),
    formula=(
        r"\mathrm{SELU}(x) = \lambda \begin{cases} x & x > 0 \\ \alpha (e^x - 1) & x \le 0 "
        r"\end{cases}, \qquad \mathrm{E}\,\mathrm{SELU}(z) = 0, \quad "
        r"\mathrm{Var}\,\mathrm{SELU}(z) = 1, \quad z \sim N(0, 1)"
    ),
    sources=("M055", "M056"),
    measure=measure,
    reference="Klambauer et al. (2017), Self-normalizing neural networks. "
    "https://arxiv.org/abs/1706.02515",
    full={"width": 512, "rows": 64, "depth": 32, "runs": 6},
    draw=draw,
)
