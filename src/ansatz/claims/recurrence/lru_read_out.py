"""A linear recurrence keeps its inputs, and a network that reads its state computes with them."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import LRU, affine


def measure(
    generator: torch.Generator,
    *,
    steps: int = 6,
    widths: tuple[int, ...] = (4, 16, 64, 256),
    rows: int = 1_500,
) -> Finding:
    """Inputs recovered from the last state, and a product of inputs read out of it."""
    layer = LRU(1, 1, units=steps // 2, r_min=0.8, r_max=0.95, generator=generator).double()
    x = torch.rand(2 * rows, steps, 1, generator=generator, dtype=torch.float64) * 2 - 1
    state = parts(layer, x)
    known = torch.cat([state, torch.ones(len(state), 1, dtype=torch.float64)], 1)
    fit = torch.linalg.lstsq(known[:rows], x[:rows, :, 0]).solution
    lost = float((known[rows:] @ fit - x[rows:, :, 0]).abs().max())
    condition = float(torch.linalg.cond(known[:rows]))
    few = state[:, : steps // 2]
    blind = torch.linalg.lstsq(few[:rows], x[:rows, :, 0]).solution
    missing = float((few[rows:] @ blind - x[rows:, :, 0]).abs().max())
    y = x[:, 0, 0] * x[:, steps // 2, 0]  # a product of the past: far from linear
    linear = read(known, y, rows)
    # The state in the basis of its own inputs, as a first layer of an MLP may choose it.
    hidden = [read(units(known @ fit, width, generator), y, rows) for width in widths]
    square = read(pairs(known), y, rows)
    standard_error = 4 * (2 / rows) ** 0.5
    checks = [
        Check(
            f"largest error of {steps} inputs recovered from one state",
            lost,
            0.0,
            64 * EPS * condition * steps,
            "rounding: 64 eps times the condition of the states",
            wrong=Wrong("from half as many numbers as steps", measured=missing),
        ),
        Check(
            "share of the variance of x_1 x_4 that squares of the state leave",
            square,
            0.0,
            (64 * EPS * condition**2) ** 2,
            "rounding: the product is a quadratic form of the state, of squared condition",
            wrong=Wrong("a linear read-out", measured=linear),
        ),
        Check(
            "share that a linear read-out leaves",
            linear,
            1.0,
            standard_error,
            "4 standard errors of a sample variance: the product is uncorrelated with the state",
            wrong=Wrong("an MLP", measured=hidden[-1]),
        ),
        Check(
            f"share that an MLP of {widths[-1]} units leaves",
            hidden[-1],
            hidden[0] / 10,
            0.0,
            f"a tenth of what {widths[0]} units leave",
            "<=",
            Wrong("a linear read-out", measured=linear),
        ),
    ]
    table = Table(["units of the read-out", "variance left"], [
        [width, share] for width, share in zip(widths, hidden, strict=True)
    ])  # fmt: skip
    return Finding(checks, table, {"widths": widths, "left": hidden, "linear": linear})


def parts(layer: LRU, x: Tensor) -> Tensor:
    """Real and imaginary parts of the last states, ``(B, 2N)``."""
    with torch.no_grad():
        return torch.view_as_real(layer(x)[1]).flatten(1)


def pairs(z: Tensor) -> Tensor:
    """All products of two coordinates."""
    i, j = torch.triu_indices(z.shape[1], z.shape[1])
    return z[:, i] * z[:, j]


def units(z: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """A hidden layer of tanh units, and a constant."""
    layer = affine(z.shape[1], width, init="lecun_normal", generator=generator).double()
    bias = torch.randn(width, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        return torch.cat([torch.tanh(2 * layer(z) + bias), torch.ones_like(z[:, :1])], 1)


def read(features: Tensor, y: Tensor, rows: int) -> float:
    """The share of the variance of y that least squares on the first rows leaves on the others."""
    A = features / features[:rows].square().mean(0).sqrt()
    weight = torch.linalg.lstsq(A[:rows], y[:rows, None], rcond=1e-11, driver="gelsd").solution
    left = (A[rows:] @ weight[:, 0] - y[rows:]).square().mean()
    return float(left / y[rows:].var())


def draw(paper: Figure, finding: Finding) -> None:
    """What read-outs of growing width leave."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.loglog(data["widths"], data["left"], "o-", color=MODEL, label="MLP of the state")
    axes.axhline(data["linear"], color=LINEAR, label="linear read-out")
    axes.set_xticks(data["widths"], [str(width) for width in data["widths"]])
    axes.minorticks_off()
    logarithmic(axes.yaxis)
    axes.set(xlabel="units of the read-out", ylabel="share of variance left")
    axes.set_title("the state of a linear recurrence holds the past; a network reads it")
    axes.legend()


claim = Claim(
    id="lru-read-out",
    title="A linear recurrence with a nonlinear read-out computes any function of the past",
    statement=(
        "The state of an LRU with different eigenvalues is an invertible linear map of its last "
        "inputs, as many as it has numbers. So an MLP of the state can approximate any continuous "
        "function of these inputs, such as a product; a linear read-out cannot."
    ),
    formula=(
        r"\zeta_T = \sum_t \Lambda^{T-t} B x_t \;\text{(Vandermonde)}, \qquad "
        r"y = \mathrm{MLP}(\mathrm{Re}\, G \zeta_T) \approx f(x_1, \dots, x_T)"
    ),
    sources=("M256",),
    measure=measure,
    reference=(
        "Orvieto et al. (2024), Universality of linear recurrences followed by non-linear "
        "projections. https://arxiv.org/abs/2307.11888"
    ),
    full={"widths": (4, 16, 64, 256, 1_024), "rows": 10_000},
    draw=draw,
)
