"""The constant of smoothness is the largest curvature, and power iteration finds it."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._curvature import power_iteration
from ansatz.optim import gradient_and_hessian


def measure(
    generator: torch.Generator, *, rows: int = 60, size: int = 8, steps: int = 60, pairs: int = 400
) -> Finding:
    """The largest eigenvalue of a logistic regression's Hessian, in three ways."""
    x = torch.randn(rows, size, dtype=torch.float64, generator=generator)
    x[:, 0] *= 3  # a leading direction
    y = torch.randint(2, (rows,), generator=generator).double()
    theta = torch.zeros(size, dtype=torch.float64, requires_grad=True)

    def loss(point: Tensor) -> Tensor:
        return torch.nn.functional.binary_cross_entropy_with_logits(x @ point, y)

    _, hessian = gradient_and_hessian(loss(theta), [theta])
    values = torch.linalg.eigvalsh(hessian)
    bound = float(torch.linalg.matrix_norm(x, ord=2) ** 2 / (4 * rows))  # σ' <= 1/4, at 0
    begin = torch.randn(size, dtype=torch.float64, generator=generator)
    estimates = power_iteration(lambda p: loss(p[0]), [theta], [begin], steps)
    overlap = torch.linalg.eigh(hessian)[1][:, -1] @ begin / begin.norm()
    rest = float((values[-2] / values[-1]) ** (2 * steps - 1) / overlap**2) * bound
    ratios = slopes(loss, size, pairs, generator)
    near, _ = gradient_and_hessian(loss(theta), [theta])
    top = 1e-4 * torch.linalg.eigh(hessian)[1][:, -1]
    there = (theta.detach() + top).requires_grad_()
    away, _ = gradient_and_hessian(loss(there), [there])
    reached = float((away - near).norm() / top.norm())
    checks = [
        Check(
            "largest curvature at 0 by power iteration",
            float(estimates[-1]),
            bound,
            rest + 50 * EPS * bound,
            "the rest of the second eigenvector after the iterations, and rounding",
            wrong=Wrong("the second eigenvalue", predicted=float(values[-2])),
        ),
        Check(
            "largest |∇h(a) - ∇h(b)| / |a - b| over pairs",
            max(reached, float(ratios.max())),
            bound,
            1e3 * EPS * bound / 1e-4,
            "rounding of a difference of gradients over a distance of 1e-4",
            relation="<=",
            wrong=Wrong("half of it were a bound", predicted=bound / 2),
        ),
        Check(
            "largest eigenvalue of the whole Hessian",
            float(values[-1]),
            bound,
            50 * EPS * bound,
            "rounding of an eigenvalue",
        ),
    ]
    data = {"estimates": estimates, "bound": bound, "ratios": ratios}
    return Finding(checks, data=data)


def slopes(
    loss: Callable[[Tensor], Tensor], size: int, pairs: int, generator: torch.Generator
) -> Tensor:
    """|∇h(a) - ∇h(b)| / |a - b| for random pairs at all distances from 0.01 to 10."""
    a, b = torch.randn(2, pairs, size, dtype=torch.float64, generator=generator)
    scale = torch.logspace(-2, 1, pairs, dtype=torch.float64).unsqueeze(1)
    points = torch.stack([scale * a, scale * b])
    gradients = torch.func.vmap(torch.func.vmap(torch.func.grad(loss)))(points)
    moved: Tensor = (points[0] - points[1]).norm(dim=1)
    return (gradients[0] - gradients[1]).norm(dim=1) / moved


def draw(paper: Figure, finding: Finding) -> None:
    """Ratios of pairs below the bound; the iteration's gap to it."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    data, bound = finding.data, finding.data["bound"]
    gap = (1 - data["estimates"] / bound).clamp(min=EPS)
    left.plot(torch.arange(1, len(gap) + 1), gap, "o", color=MODEL)
    left.set(xlabel="Hessian products", ylabel="1 - estimate / L")
    left.set_title("power iteration finds L ...")
    logarithmic(left.yaxis)
    scale = torch.logspace(-2, 1, len(data["ratios"]))
    right.plot(scale, data["ratios"], "o", color=MODEL, markersize=2, alpha=0.6)
    right.axhline(bound, color=INK, label="L")
    right.axhline(bound / 2, color=LINEAR, ls="--", lw=0.8, label="L / 2 is not a bound")
    right.set(xlabel="size of a and b", ylabel="|∇h(a) - ∇h(b)| / |a - b|")
    right.set_ylim(0, 1.25 * bound)
    right.set_title("... and no pair exceeds it")
    right.legend(ncols=2, loc="upper left")
    logarithmic(right.xaxis)


claim = Claim(
    id="smoothness",
    title="L-smoothness is the largest curvature",
    statement=(
        "The gradient of logistic regression is Lipschitz with L = σ₁(X)² / (4N), the largest "
        "eigenvalue of its Hessian at 0. Power iteration with products of the Hessian and a vector "
        "finds it; no pair of points exceeds it, and a pair near 0 reaches it."
    ),
    formula=(
        r"\|\nabla h(a) - \nabla h(b)\| \le L \|a - b\|, \qquad "
        r"L = \max_\theta \|\nabla^2 h(\theta)\|_2"
    ),
    sources=("M124",),
    measure=measure,
    reference="Nesterov (2018), Lectures on Convex Optimization, lemma 1.2.2.",
    full={"rows": 500, "size": 50, "pairs": 2000},
    draw=draw,
)
