"""A function is convex where its Hessian has no negative eigenvalue, whatever its norm."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator, *, matrices: int = 200, d: int = 3, chords: int = 2_000
) -> Finding:
    """Quadratics of every kind: chords below the graph against the sign of an eigenvalue."""
    A = torch.randn(matrices, d, d, generator=generator, dtype=torch.float64)
    level = 3 * torch.rand(matrices, 1, 1, generator=generator, dtype=torch.float64)
    H = (A + A.mT) / 2 + level * torch.eye(d, dtype=torch.float64)
    values = torch.linalg.eigvalsh(H)
    lowest, highest = values[:, 0], values[:, -1]
    norm = torch.linalg.matrix_norm(H, 2)
    least, most = curvatures(H, chords, generator)
    size = norm.max()
    # A direction at angle t to the extreme one sees a curvature larger by t² (range of values).
    angle = covering_angle(d, chords)
    slack = angle**2 * (highest - lowest).max()
    undecided = lowest.abs() <= slack
    sees = least < -8 * d**2 * EPS * size  # some chord below the graph
    by_eigenvalue, by_norm = lowest < 0, norm < 0
    mu = 0.5
    strong, printed_strong = lowest >= mu, norm >= mu
    checks = [
        Check(
            "quadratics whose smallest eigenvalue has the wrong sign for convexity",
            int(((by_eigenvalue != sees) & ~undecided).sum()),
            0,
            0,
            f"whole numbers; |λ| below the resolution {float(slack):.2g} of the chords left out",
            wrong=Wrong(
                "convex if the spectral norm is ≥ 0",
                measured=int(((by_norm != sees) & ~undecided).sum()),
                erratum="E28",
            ),
        ),
        Check(
            f"called {mu}-strongly convex, with a chord of less curvature",
            int((strong & (least < mu - 8 * d**2 * EPS * size)).sum()),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                f"the spectral norm ≥ {mu}",
                measured=int((printed_strong & (least < mu - 8 * d**2 * EPS * size)).sum()),
            ),
        ),
        Check(
            "largest difference of least curvature along chords and smallest eigenvalue",
            float((least - lowest).abs().max()),
            0.0,
            float(slack),
            "t² (λmax - λmin), t the angle that the directions leave uncovered",
            wrong=Wrong("the spectral norm", measured=float((least - norm).abs().max())),
        ),
        Check(
            "smoothness: largest excess of curvature over the largest eigenvalue",
            float((most - highest).max()),
            0.0,
            float(8 * d**2 * EPS * size),
            "rounding: 8 d² eps × largest curvature",
            relation="<=",
            wrong=Wrong("over the mean eigenvalue", measured=float((most - values.mean(1)).max())),
        ),
        Check(
            "first-order condition: least f(y) - f(x) - ∇f(x)ᵀ(y - x) of log-sum-exp",
            tangent_gap(generator, d, at_start=True),
            0.0,
            64 * d * EPS,
            "rounding of values below 64",
            relation=">=",
            wrong=Wrong("the gradient at y", measured=tangent_gap(generator, d, at_start=False)),
        ),
        Check(
            "log-sum-exp and logistic loss: lowest eigenvalue of the Hessian by autograd",
            convex_losses(generator, d),
            0.0,
            8 * d**2 * EPS,
            "rounding: 8 d² eps",
            relation=">=",
            wrong=Wrong("a sine, which bends both ways", measured=sine(generator, d)),
        ),
    ]
    rows = [list(map(float, row)) for row in zip(lowest[:20], least[:20], norm[:20], strict=True)]
    table = Table(["smallest eigenvalue", "least curvature seen", "spectral norm"], rows)
    return Finding(checks, table, {"lowest": lowest, "least": least, "norm": norm})


def curvatures(H: Tensor, chords: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The least and most curvature of ½xᵀHx between ends of chords, from values of it alone."""
    x = torch.randn(chords, H.shape[-1], generator=generator, dtype=torch.float64)
    u = torch.nn.functional.normalize(
        torch.randn(chords, H.shape[-1], generator=generator, dtype=torch.float64), dim=-1
    )

    def f(x: Tensor) -> Tensor:
        return 0.5 * torch.einsum("ci,mij,cj->mc", x, H, x)

    found = f(x + u) - 2 * f(x) + f(x - u)  # the mean of the ends less the middle, doubled
    return found.amin(1), found.amax(1)


def tangent_gap(generator: torch.Generator, d: int, *, at_start: bool) -> float:
    """The least height of log-sum-exp above its tangent planes, over random pairs of points."""
    x, y = (3 * torch.randn(500, d, generator=generator, dtype=torch.float64) for _ in range(2))
    slope = torch.softmax(x if at_start else y, 1)
    gap = y.logsumexp(1) - x.logsumexp(1) - (slope * (y - x)).sum(1)
    return float(gap.min())


def covering_angle(d: int, directions: int) -> float:
    """An angle that random directions leave uncovered with probability 1e-6 in d = 3 or fewer.

    A cap of angle t, with its mirror image, has at least the share (sin t)^(d-1) / d of the
    sphere; it is missed with probability (1 - share)^directions.
    """
    share = 14 / directions  # exp(-14) = 1e-6
    return float(torch.asin(torch.tensor((d * share) ** (1 / (d - 1)))))


def convex_losses(generator: torch.Generator, d: int) -> float:
    """The smallest eigenvalue of two convex functions' Hessians at random points."""
    x = torch.randn(20, d, generator=generator, dtype=torch.float64)
    a = torch.randn(d, generator=generator, dtype=torch.float64)
    hessians = [
        torch.autograd.functional.hessian(f, point)
        for point in x
        for f in (lambda w: w.logsumexp(0), lambda w: torch.nn.functional.softplus(-a @ w))
    ]
    return float(torch.linalg.eigvalsh(torch.stack(hessians)).min())


def sine(generator: torch.Generator, d: int) -> float:
    """The same for a sum of sines."""
    x = torch.randn(20, d, generator=generator, dtype=torch.float64)
    hessians = [torch.autograd.functional.hessian(lambda w: w.sin().sum(), point) for point in x]
    return float(torch.linalg.eigvalsh(torch.stack(hessians)).min())


def draw(paper: Figure, finding: Finding) -> None:
    """Least curvature seen, against the smallest eigenvalue and against the spectral norm."""
    left, right = paper.subplots(1, 2, sharey=True)
    least = finding.data["least"]
    for axes, key, name in (
        (left, "lowest", "smallest eigenvalue"),
        (right, "norm", "spectral norm"),
    ):
        x = finding.data[key]
        convex = least >= 0
        axes.plot(x[convex], least[convex], "o", color=MODEL, alpha=0.6, label="convex")
        axes.plot(x[~convex], least[~convex], "s", color=LINEAR, alpha=0.6, label="not convex")
        axes.axhline(0, color=INK, lw=0.7)
        axes.axvline(0, color=INK, lw=0.7, ls="--")
        axes.set(xlabel=f"{name} of the Hessian")
    left.set(ylabel="least curvature along chords")
    left.set_title("its sign decides convexity")
    right.set_title("the printed test, ≥ 0, passes all of them")
    left.legend(loc="upper left")


claim = Claim(
    id="convexity",
    title="Convexity is a matter of the smallest eigenvalue",
    statement=(
        "A smooth function is convex if and only if no eigenvalue of its Hessian is negative, "
        "strongly convex with μ if none is below μ, and smooth with L if none is above L in size. "
        "A common slip prints the spectral norm in the first two tests, which a saddle passes."
    ),
    formula=(
        r"f \text{ convex} \iff \nabla^2 f \succeq 0, \qquad "
        r"f \ \mu\text{-strongly convex} \iff \nabla^2 f \succeq \mu I, \qquad "
        r"f \ L\text{-smooth} \iff \|\nabla^2 f\|_2 \le L"
    ),
    sources=("M032", "E28"),
    measure=measure,
    reference="Nesterov (2018), Lectures on Convex Optimization, theorems 2.1.4 and 2.1.11.",
    full={"matrices": 1000, "chords": 20_000},
    errata=(Erratum("E28", "‖∇²f‖₂ ≥ 0, ‖∇²f‖₂ ≥ μ", "∇²f ⪰ 0, ∇²f ⪰ μI (smallest eigenvalue)"),),
    draw=draw,
)
