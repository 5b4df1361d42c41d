"""Gradients through depth: a product of Jacobians shrinks, grows, or keeps its size."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import FOURTH, INK, LINEAR, MODEL, THIRD
from ansatz.layers import Elman


class Case(NamedTuple):
    """A layer h ↦ φ(Uh), and the bound α on the slope of φ; with tanh it is our ``Elman``."""

    U: Tensor
    activation: str
    alpha: float

    @property
    def rate(self) -> float:
        """α σ₁(U), the bound on the factor per layer."""
        return self.alpha * float(torch.linalg.matrix_norm(self.U, 2))


def measure(generator: torch.Generator, *, width: int = 12, depth: int = 30) -> Finding:
    """Norms of ∂h_T/∂h_t by autograd through layers of several kinds."""
    cases = make(width, generator)
    h0 = torch.randn(width, generator=generator, dtype=torch.float64)
    paths = {name: norms(case, h0, depth) for name, case in cases.items()}
    product = by_product(cases["tanh, σ₁ = 0.9"], h0, depth)
    excess = max(float((paths[n] / bound(c, depth)).max()) for n, c in cases.items() if c.rate < 1)
    shrunk = max(float(paths[n][-1] / paths[n][0]) for n, c in cases.items() if c.rate < 1)
    steep = cases["linear, σ₁ = 1.2"]
    grown, shift = paths["linear, σ₁ = 1.2"][-1], paths["shift, σ₁ = 1.5"][-1]
    rounding = 1 + depth * width * EPS
    size = float(product.max())
    checks = [
        Check(
            f"σ₁ < 1/α: largest gradient after {depth} layers",
            shrunk,
            max(c.rate for c in cases.values() if c.rate < 1) ** depth,
            depth * width * EPS,
            "the bound (α σ₁)^T, and the rounding of the products",
            relation="<=",
            wrong=Wrong("gradients vanish if σ₁ ≥ 1/α", measured=float(grown), erratum="E25"),
        ),
        Check(
            "largest |∂h_T/∂h_t| over its bound (α σ₁)^(T-t), where σ₁ < 1/α",
            excess,
            1.0,
            rounding - 1,
            "rounding of the products",
            relation="<=",
            wrong=Wrong(
                "the spectral radius for σ₁",
                measured=float((paths["shift, σ₁ = 0.9"] / radius_bound(cases, depth)).max()),
            ),
        ),
        Check(
            "autograd against the product of Jacobians diag(φ') U, largest difference",
            float((paths["tanh, σ₁ = 0.9"] - product).abs().max()),
            0.0,
            depth * width * EPS * size,
            "rounding: sums over the width in each layer",
        ),
        Check(
            "linear layers with U = 1.2 Q, Q orthogonal: gradient",
            float(grown) / steep.rate**depth,
            1.0,
            depth * width * EPS,
            "every singular value is 1.2: the bound is attained",
            wrong=Wrong("vanishing", predicted=0.0),
        ),
        Check(
            "σ₁ = 1.5 > 1/α and no explosion: a shift of the units, after the last has left",
            float(shift),
            0.0,
            0.0,
            f"exact: U^{width} = 0",
            wrong=Wrong("explosion whenever σ₁ > 1/α", predicted=1.5**depth),
        ),
        Check(
            "σ₁ = 1.5 > 1/α and no explosion: tanh units that saturate",
            float(paths["tanh, σ₁ = 1.5"][-1]),
            1.0,
            0.0,
            "no larger than at the start",
            relation="<=",
            wrong=Wrong("the bound (α σ₁)^T were attained", measured=1.5**depth),
        ),
    ]
    rows = [[n, c.rate, float(paths[n][-1]), c.rate**depth] for n, c in cases.items()]
    table = Table(["layer", "α σ₁", "gradient", "bound"], rows)
    rates = {name: case.rate for name, case in cases.items()}
    return Finding(checks, table, {"paths": paths, "rates": rates})


def make(width: int, generator: torch.Generator) -> dict[str, Case]:
    """Layers with σ₁ on both sides of 1/α."""
    A = torch.randn(width, width, generator=generator, dtype=torch.float64)
    Q = torch.linalg.qr(A)[0]
    shift = torch.diag(torch.ones(width - 1, dtype=torch.float64), -1)
    # Symmetric, with one large eigenvalue: tanh runs into saturation along it.
    u = Q[:, :1]
    spiked = 1.5 * u @ u.T + 0.3 * (torch.eye(width, dtype=torch.float64) - u @ u.T)
    return {
        "tanh, σ₁ = 0.9": Case(0.9 * Q, "tanh", 1.0),
        "sigmoid, σ₁ = 3.6": Case(3.6 * Q, "sigmoid", 0.25),
        "shift, σ₁ = 0.9": Case(0.9 * shift, "identity", 1.0),
        "linear, σ₁ = 1.2": Case(1.2 * Q, "identity", 1.0),
        "shift, σ₁ = 1.5": Case(1.5 * shift, "identity", 1.0),
        "tanh, σ₁ = 1.5": Case(spiked, "tanh", 1.0),
    }


def elman(U: Tensor) -> Elman:
    """Our recurrent layer with this matrix, without inputs and biases."""
    layer = Elman(1, len(U)).double().requires_grad_(False)
    for weight in layer.weights:
        weight.zero_()
    layer.weight_hh_l0.copy_(U)
    return layer


def apply(case: Case, h: Tensor) -> Tensor:
    """One layer."""
    if case.activation == "tanh":
        state, _ = elman(case.U).step(h.unsqueeze(0), h.new_zeros(1, 1))
        return state.squeeze(0)
    z = case.U @ h
    return z if case.activation == "identity" else z.sigmoid()


def norms(case: Case, h0: Tensor, depth: int) -> Tensor:
    """|∂h_T/∂h_t| for T - t = 0 to depth, by reverse mode from each unit."""
    states = [h0.clone().requires_grad_()]
    for _ in range(depth):
        states.append(apply(case, states[-1]))
    rows = [torch.autograd.grad(unit, states, retain_graph=True) for unit in states[-1]]
    sizes = torch.stack(
        [torch.linalg.matrix_norm(torch.stack(J), 2) for J in zip(*rows, strict=True)]
    )
    return sizes.flip(0)


def by_product(case: Case, h0: Tensor, depth: int) -> Tensor:
    """The same as norms of products of diag(1 - h²) U, for tanh."""
    states = [h0]
    for _ in range(depth):
        states.append(apply(case, states[-1]))
    J = torch.eye(len(h0), dtype=h0.dtype)
    found = [torch.linalg.matrix_norm(J, 2)]
    for h in states[:0:-1]:
        J = J @ ((1 - h**2)[:, None] * case.U)
        found.append(torch.linalg.matrix_norm(J, 2))
    return torch.stack(found)


def bound(case: Case, depth: int) -> Tensor:
    """(α σ₁)^(T-t)."""
    return case.rate ** torch.arange(depth + 1, dtype=torch.float64)


def radius_bound(cases: dict[str, Case], depth: int) -> Tensor:
    """The same with the spectral radius; 0 for a shift, here the smallest positive number."""
    radius = float(torch.linalg.eigvals(cases["shift, σ₁ = 0.9"].U).abs().max())
    return max(radius, 1e-9) ** torch.arange(depth + 1, dtype=torch.float64)


def draw(paper: Figure, finding: Finding) -> None:
    """Norm of the gradient by distance from the output, with its bounds."""
    axes = paper.subplots()
    shown = (
        ("linear, σ₁ = 1.2", LINEAR, "^"),
        ("tanh, σ₁ = 1.5", FOURTH, "D"),
        ("shift, σ₁ = 1.5", THIRD, "v"),
        ("tanh, σ₁ = 0.9", MODEL, "o"),
        ("sigmoid, σ₁ = 3.6", INK, "s"),
    )
    for name, colour, mark in shown:
        path = finding.data["paths"][name]
        layers = torch.arange(len(path))
        alive = path > 1e-12
        axes.plot(layers[alive], path[alive], mark, color=colour, label=name)
        if name != "tanh, σ₁ = 1.5":
            axes.plot(layers, finding.data["rates"][name] ** layers, color=colour, lw=0.8)
    axes.set(
        xlabel="layers between gradient and output (lines: (α σ₁)ᵏ)", ylabel="size of the gradient"
    )
    axes.set(ylim=(1e-8, None))
    last = len(finding.data["paths"]["shift, σ₁ = 1.5"].nonzero()) - 1
    axes.annotate(
        "then exactly 0",
        (last, 1.5**last),
        (last - 9, 1.5**last * 40),
        color=THIRD,
        arrowprops={"arrowstyle": "->", "color": THIRD},
    )
    logarithmic(axes.yaxis)
    axes.set_title("below 1/α gradients must vanish; above it they may explode, or not")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="vanishing-gradients",
    title="Vanishing and exploding gradients",
    statement=(
        "The gradient through depth is a product of Jacobians diag(φ')U. It is at most (α σ₁(U)) "
        "to the power of the distance, where α bounds the slope of the activation, so it vanishes "
        "if σ₁ is below 1/α (often printed as ≥ 1/α). Above 1/α it may explode, as an orthogonal "
        "matrix times 1.2 shows, but need not. A recurrent layer is one layer of this kind for "
        "each step, all with the same U."
    ),
    formula=(
        r"\Big\| \frac{\partial h_T}{\partial h_t} \Big\| = \Big\| \prod_{k} "
        r"\mathrm{diag}(\varphi'(U h_k))\, U \Big\| \le (\alpha\, \sigma_1(U))^{T - t}, \qquad "
        r"|\varphi'| \le \alpha"
    ),
    sources=("M120", "M244", "E25"),
    measure=measure,
    reference="Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural "
    "networks. https://arxiv.org/abs/1211.5063",
    full={"width": 64, "depth": 100},
    errata=(
        Erratum(
            "E25",
            "gradients vanish if σ₁(U) ≥ 1/α",
            "they vanish if σ₁(U) < 1/α; σ₁(U) > 1/α is only necessary for explosion",
        ),
    ),
    draw=draw,
)
