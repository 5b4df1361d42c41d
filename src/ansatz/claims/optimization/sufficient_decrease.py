"""A step of gradient descent at the rate 1/L lowers the loss by at least |∇h|² / (2L)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import descent, follow, rotation, spectrum

Loss = Callable[[Tensor], Tensor]


def measure(generator: torch.Generator, *, size: int = 5, steps: int = 40) -> Finding:
    """The decrease of every step in units of |∇h|² / L, on problems whose L is known."""
    shares, errors, rows = {}, [0.0], []
    for name, (loss, L) in problems(size, generator).items():
        start = 2 * torch.randn(size, dtype=torch.float64, generator=generator)
        shares[name], error = decreases(loss, L, start, 1 / L, steps)
        errors.append(error)
        rows.append([name, float(shares[name].min()), float(shares[name].max())])
    least = float(torch.cat(list(shares.values())).min())
    loss, L = problems(size, generator)["quadratic"]
    along = follow(loss, start, descent(2.5 / L), 30)
    checks = [
        Check(
            "least decrease of a step, in units of |∇h|² / L",
            least,
            0.5,
            max(errors),
            "rounding: 4 eps times the loss, in units of the smallest |∇h|² / L that was met",
            relation=">=",
            wrong=Wrong("a decrease of |∇h|² / L", predicted=1.0),
        ),
        Check(
            "decrease where the curvature along the gradient is L",
            float(decreases(lambda x: 0.5 * L * x @ x, L, start, 1 / L, 1)[0]),
            0.5,
            8 * EPS,
            "rounding of a loss of its own size",
            wrong=Wrong("a decrease of |∇h|² / L", predicted=1.0),
        ),
        Check(
            "largest rise of the loss, in units of |∇h|² / (2L), at the rate 1 / L",
            float(-2 * least),
            0.0,
            max(errors),
            "rounding, as above",
            relation="<=",
            wrong=Wrong("at any rate: 2.5 / L", measured=float(loss(along[-1]) - loss(along[0]))),
        ),
    ]
    table = Table(["problem", "least decrease · L / |∇h|²", "largest"], rows)
    return Finding(checks, table, {"shares": shares})


def problems(size: int, generator: torch.Generator) -> dict[str, tuple[Loss, float]]:
    """Losses with their constant of smoothness."""
    Q = rotation(size, generator)
    hessian = Q @ torch.diag(spectrum(10.0, size)) @ Q.T
    x = torch.randn(40, size, dtype=torch.float64, generator=generator)
    y = torch.randint(2, (40,), generator=generator).double()
    logistic = float(torch.linalg.matrix_norm(x, ord=2) ** 2 / 160)
    return {
        "quadratic": (lambda t: 0.5 * t @ hessian @ t, 1.0),
        "logistic regression": (lambda t: binary_cross_entropy_with_logits(x @ t, y), logistic),
        "cosines, not convex": (lambda t: (1 - torch.cos(Q @ t)).sum(), 1.0),
    }


def decreases(loss: Loss, L: float, start: Tensor, rate: float, steps: int) -> tuple[Tensor, float]:
    """(h - h₊) L / |∇h|² for every step, and how much rounding can change it."""
    path = follow(loss, start, descent(rate), steps)
    values = torch.stack([loss(point) for point in path])
    gradients = torch.stack([torch.func.grad(loss)(point) for point in path[:-1]])
    unit = (gradients**2).sum(1) / L
    steep = unit > 1e-9 * values[0].abs()  # beyond, the loss is flat to rounding
    share = ((values[:-1] - values[1:]) / unit)[steep]
    return share, float(4 * EPS * values[0].abs() / unit[steep].min())


def draw(paper: Figure, finding: Finding) -> None:
    """The decrease of every step beside the floor of one half."""
    from ansatz.figures.style import INK, LINEAR, PALETTE

    axes = paper.subplots()
    for (name, share), colour in zip(finding.data["shares"].items(), PALETTE[::2], strict=False):
        axes.plot(share, "o-", lw=0.7, color=colour, label=name)
    axes.axhline(0.5, color=INK, label="1/2: promised")
    axes.axhline(1.0, color=LINEAR, ls="--", lw=0.8, label="1: not promised")
    axes.set(xlabel="step at the rate 1 / L", ylabel="decrease · L / |∇h|²")
    axes.set_title("every step lowers the loss by |∇h|² / (2L) or more")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="sufficient-decrease",
    title="A step of 1/L lowers the loss by |∇h|² / (2L)",
    statement=(
        "If the gradient is L-Lipschitz, a step of gradient descent at the rate 1/L lowers the "
        "loss by at least |∇h|² / (2L), convex or not; the factor 1/2 is reached where the "
        "curvature along the gradient is L. It is an inequality, often printed with an equals "
        "sign. At the rate 2.5/L the loss may rise."
    ),
    formula=(
        r"h\!\left(\theta - \tfrac1L \nabla h(\theta)\right) \le "
        r"h(\theta) - \frac{1}{2L} \|\nabla h(\theta)\|^2"
    ),
    sources=("M125",),
    measure=measure,
    reference="Nesterov (2018), Lectures on Convex Optimization, section 1.2.3.",
    full={"size": 50, "steps": 1000},
    draw=draw,
)
