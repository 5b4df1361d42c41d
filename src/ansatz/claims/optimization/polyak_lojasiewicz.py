"""Descent is geometric if half the squared gradient exceeds μ times the gap."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import descent, follow, rotation, spectrum
from ansatz.optim import gradient_and_hessian

Loss = Callable[[Tensor], Tensor]
TITLES = {"x² + 3 sin²x": "not convex: x² + 3 sin²x", "flat valley": "a valley of minima"}


def wave(theta: Tensor) -> Tensor:
    """x² + 3 sin²x: not convex, with L = 8; all losses here have the minimum 0."""
    return (theta**2 + 3 * torch.sin(theta) ** 2).sum()


def measure(
    generator: torch.Generator, *, size: int = 6, condition: float = 20.0, steps: int = 60
) -> Finding:
    """Gaps along the path of gradient descent, beside (1 - μ/L)^T."""
    grid = torch.linspace(-4, 4, 80_001, dtype=torch.float64)
    slope = 2 * grid + 3 * torch.sin(2 * grid)
    value = grid**2 + 3 * torch.sin(grid) ** 2
    mu_wave = float((0.5 * slope**2 / value)[value > 1e-9].min())
    lowest = float((2 + 6 * torch.cos(2 * grid)).min())  # the second derivative
    flat = deficient(size, condition, generator)
    start = 3 + torch.rand(1, dtype=torch.float64, generator=generator)
    slow, mu = slowest_start(flat, size)
    runs = {
        "x² + 3 sin²x": (gaps(wave, start, 1 / 8, steps), mu_wave / 8),
        "flat valley": (gaps(flat, slow, 1.0, steps), mu),
    }
    ratios = {
        name: float((gap[1:] / gap[:-1])[gap[1:] > 1e-20].max()) / (1 - share)
        for name, (gap, share) in runs.items()
    }
    gap, share = runs["flat valley"]
    bound = gap[0] * (1 - share) ** torch.arange(steps + 1, dtype=torch.float64)
    checks = [
        Check(
            "largest factor of a step, in units of 1 - μ/L",
            max(ratios.values()),
            1.0,
            16 * EPS + 1e-4,
            "rounding, and the spacing of the grid over which μ of the wave is a minimum",
            relation="<=",
            wrong=Wrong(
                "θ_T on both sides of the inequality, as printed: a factor of 1",
                measured=1 / (1 - share),
                erratum="E64",
            ),
        ),
        Check(
            "largest excess of the gap over (1 - μ/L)^T (h₀ - h*)",
            float((gap - bound).max() / gap[0]),
            0.0,
            16 * EPS,
            "rounding of the gap",
            relation="<=",
            wrong=Wrong(
                "one power more, T + 1",
                measured=float((gap - bound * (1 - share)).max() / gap[0]),
            ),
        ),
        Check(
            "excess of the gap over (1 - μ/L)^T at T = 10, as a share",
            float(gap[10] / bound[10] - 1),
            0.0,
            16 * EPS,
            "rounding of the gap",
            relation="<=",
            wrong=Wrong(
                "|∇h|² ≥ μ (h - h*) without the half: (1 - 2μ/L)^T",
                measured=float(gap[10] / (gap[0] * (1 - 2 * share) ** 10) - 1),
            ),
        ),
        Check(
            "least second derivative of the wave: it is not convex",
            lowest,
            -4.0,
            12 * (0.5e-4) ** 2,
            "the grid of spacing 1e-4 misses the extremum by 12 x² at most, x half a spacing",
            wrong=Wrong("PL made it convex", predicted=0.0),
        ),
    ]
    rows = [
        [name, share, ratio * (1 - share)]
        for (name, (_, share)), ratio in zip(runs.items(), ratios.values(), strict=True)
    ]
    return Finding(checks, Table(["problem", "μ / L", "largest factor"], rows), {"runs": runs})


def deficient(size: int, condition: float, generator: torch.Generator) -> Loss:
    """½ xᵀHx with half of the eigenvalues 0: a valley of minima; L = 1, μ = 1 / condition."""
    values = torch.cat([torch.zeros(size, dtype=torch.float64), spectrum(condition, size)])
    Q = rotation(2 * size, generator)
    hessian = Q @ torch.diag(values) @ Q.T

    def loss(theta: Tensor) -> Tensor:
        return 0.5 * theta @ hessian @ theta

    return loss


def slowest_start(loss: Loss, size: int) -> tuple[Tensor, float]:
    """A start in the slowest direction, and μ / L."""
    zero = torch.zeros(2 * size, dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(gradient_and_hessian(loss(zero), [zero])[1])
    return vectors[:, size], float(values[size] / values[-1])


def gaps(loss: Loss, start: Tensor, rate: float, steps: int) -> Tensor:
    """h - h* along the path; h* = 0."""
    return torch.stack([loss(point) for point in follow(loss, start, descent(rate), steps)])


def draw(paper: Figure, finding: Finding) -> None:
    """Gaps on a logarithmic axis below their bounds."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    for axes, (name, (gap, share)), colour in zip(
        paper.subplots(1, 2), finding.data["runs"].items(), (MODEL, LINEAR), strict=True
    ):
        seen = gap > 1e-14 * gap[0]
        t = torch.arange(len(gap))[seen]
        axes.plot(t, gap[0] * (1 - share) ** t, color=INK, label="(1 - μ/L)^T (h₀ - h*)")
        axes.plot(t, gap[seen], "o", color=colour, label="gradient descent")
        axes.set(xlabel="step T", ylabel="h - h*", title=f"{TITLES[name]}, μ/L = {share:.3f}")
        axes.legend(loc="lower left" if name != "flat valley" else "upper right")
        logarithmic(axes.yaxis)


claim = Claim(
    id="polyak-lojasiewicz",
    title="The Polyak-Łojasiewicz inequality gives a geometric rate",
    statement=(
        "If half the squared gradient is at least μ (h - h*), gradient descent at the rate 1/L "
        "shrinks the gap h - h* by 1 - μ/L at every step, without convexity: x² + 3 sin²x and a "
        "quadratic with a valley of minima show it. A common slip in the proof has θ_T on both "
        "sides of the step, where the right-hand side needs θ_{T-1}."
    ),
    formula=(
        r"\tfrac12 \|\nabla h\|^2 \ge \mu (h - h^*) \;\Rightarrow\; "
        r"h(\theta_T) - h^* \le \left(1 - \tfrac{\mu}{L}\right)^T (h(\theta_0) - h^*)"
    ),
    sources=("M127", "E64"),
    measure=measure,
    reference=(
        "Karimi, Nutini and Schmidt (2016), Linear convergence of gradient and proximal-gradient "
        "methods under the Polyak-Łojasiewicz condition, theorem 1. "
        "https://arxiv.org/abs/1608.04636"
    ),
    full={"size": 50, "condition": 200.0, "steps": 2000},
    errata=(
        Erratum(
            "E64",
            "h(θ_T) - h* ≤ (1 - μ/L) (h(θ_T) - h*)",
            "h(θ_T) - h* ≤ (1 - μ/L) (h(θ_{T-1}) - h*)",
        ),
    ),
    draw=draw,
)
