"""Newton's method solves a quadratic in one step, and squares the error elsewhere."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import descent, follow, rotation, spectrum
from ansatz.optim import Newton


def exponential(theta: Tensor) -> Tensor:
    """Σ eˣ - x: minimum at 0, where h'' = h''' = 1."""
    return (theta.exp() - theta).sum()


def measure(generator: torch.Generator, *, size: int = 6, condition: float = 1e4) -> Finding:
    """One step on a quadratic; then the ratio of an error to the square of the last."""
    Q = rotation(size, generator)
    hessian = Q @ torch.diag(spectrum(condition, size)) @ Q.T
    minimum = torch.randn(size, dtype=torch.float64, generator=generator)

    def quadratic(theta: Tensor) -> Tensor:
        return 0.5 * (theta - minimum) @ hessian @ (theta - minimum)

    start = torch.randn(size, dtype=torch.float64, generator=generator)
    one = newton(quadratic, start, 1)[-1]
    plain = follow(quadratic, start, descent(1.0), 1)[-1]
    scale = float((start - minimum).norm())
    path = newton(exponential, torch.full((1,), -1.0, dtype=torch.float64), 6)
    error = path[:, 0].abs()
    last = int((error > 1e-4).nonzero()[-1])  # its square is still far from rounding
    descended = follow(exponential, path[0], descent(0.5), 6)[:, 0].abs()
    constant = float(error[last + 1] / error[last] ** 2)
    checks = [
        Check(
            "distance to the minimum after one step, as a share",
            float((one - minimum).norm()) / scale,
            0.0,
            8 * size * EPS * condition,
            "rounding: 8 eps times the dimension and the condition number",
            wrong=Wrong(
                "one step along the gradient", measured=float((plain - minimum).norm()) / scale
            ),
        ),
        Check(
            "error / (error before)²",
            constant,
            0.5,
            float(error[last]) / 3 + 4 * EPS / float(error[last]) ** 2,
            "the cubic term x³/6 of Newton's map x - 1 + e⁻ˣ, doubled, and rounding",
            wrong=Wrong("|h'''| / |h''| without the half", predicted=1.0),
        ),
        Check(
            "order: log of an error over log of the last one's ratio",
            float((error[last + 1] / error[last]).log() / (error[last] / error[last - 1]).log()),
            2.0,
            float(error[last - 1]),
            "the ratio's relative error is a third of the error itself, over a logarithm above 1",
            wrong=Wrong("linear convergence, as of descent", predicted=1.0),
        ),
    ]
    rows = [[k, float(a), float(b)] for k, (a, b) in enumerate(zip(error, descended, strict=True))]
    data = {"newton": error, "descent": descended}
    return Finding(checks, Table(["step", "error of Newton", "error of descent"], rows), data)


def newton(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """The iterates of the library's Newton."""
    theta = nn.Parameter(start.clone())
    optimizer, path = Newton([theta]), [start.clone()]
    for _ in range(steps):
        optimizer.step(lambda: loss(theta))
        path.append(theta.detach().clone())
    return torch.stack(path)


def draw(paper: Figure, finding: Finding) -> None:
    """Errors against steps: a curve that bends down beside a line."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    error = finding.data["newton"]
    axes = paper.subplots()
    seen = error > 1e-17
    k = torch.arange(len(error))
    square = [float(error[2])]
    for _ in range(3):
        square.append(square[-1] ** 2 / 2)
    axes.plot(k[seen], error[seen], "o", color=MODEL, markersize=6, label="Newton")
    axes.plot([2, 3, 4, 5], square, color=INK, label="half of the square of the last error")
    axes.plot(k, finding.data["descent"], "s-", lw=0.8, color=LINEAR, label="descent, rate 1/2")
    axes.set(xlabel="step", ylabel="distance to the minimum of eˣ - x")
    axes.set_title("near the minimum each step of Newton doubles the number of right digits")
    axes.legend()
    logarithmic(axes.yaxis)


claim = Claim(
    id="newton-method",
    title="Newton: one step on a quadratic, squared errors elsewhere",
    statement=(
        "A step of Newton's method lands on the minimum of a quadratic, whatever its condition. "
        "On a smooth loss with positive curvature the error near the minimum is multiplied by "
        "itself: for eˣ - x the next error is half of the square of the last."
    ),
    formula=(
        r"\theta_{t+1} = \theta_t - [\nabla^2 h(\theta_t)]^{-1} \nabla h(\theta_t), \qquad "
        r"e_{t+1} \approx \frac{h'''}{2 h''}\, e_t^2"
    ),
    sources=("M128",),
    measure=measure,
    reference="Nocedal and Wright (2006), Numerical Optimization, theorem 3.5.",
    full={"size": 100, "condition": 1e6},
    draw=draw,
)
