"""Projected gradient ascent stays in the ball and finds the best point of it."""

from collections.abc import Callable
from typing import Literal

import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import rotation, spectrum
from ansatz.optim import ProjectedGradient


def measure(
    generator: torch.Generator, *, size: int = 6, radius: float = 0.5, steps: int = 200
) -> Finding:
    """Ascends a concave quadratic whose peak lies outside of the ball, and a linear function."""
    curvature, Q = spectrum(10.0, size), rotation(size, generator)
    hessian = Q @ torch.diag(curvature) @ Q.T
    peak = 3 * Q.sum(1) / size**0.5

    def climb(x: Tensor) -> Tensor:
        return -0.5 * (x - peak) @ hessian @ (x - peak)

    start = torch.zeros(size, dtype=torch.float64)
    path = ascend(climb, start, radius, 1.0, steps)
    free = ascend(climb, start, 1e9, 1.0, steps)
    boxed = ascend(climb, start, radius, 1.0, steps, norm="inf")
    best, multiplier = on_the_sphere(curvature, Q, peak, radius)
    gaps = (path - best).norm(dim=1)
    contraction = float(1 - curvature[0])
    late = contraction / (1 + multiplier)
    near = (gaps[:-1] < 1e-5) & (gaps[1:] > 1e-11)
    slope = torch.randn(size, dtype=torch.float64, generator=generator)
    linear = ascend(lambda x: slope @ x, start, radius, 4 * radius, 20)[-1]
    corner = ascend(lambda x: slope @ x, start, radius, 1e3, 20, norm="inf")[-1]
    bound = contraction**steps * float(gaps[0])
    rounding = 64 * EPS * radius / float(curvature[0])
    checks = [
        Check(
            "largest norm of an iterate",
            float(path.norm(dim=1).max()),
            radius,
            4 * EPS * radius,
            "rounding of one division",
            relation="<=",
            wrong=Wrong("no projection", measured=float(free.norm(dim=1).max())),
        ),
        Check(
            "distance to the best point of the ball",
            float(gaps[-1]),
            0.0,
            bound + rounding,
            f"the factor 1 - μ/L = {contraction:.2f} per step, and rounding",
            wrong=Wrong("the projection onto the box", measured=float((boxed[-1] - best).norm())),
        ),
        Check(
            "largest ratio of successive distances near the best point",
            float((gaps[1:] / gaps[:-1])[near].max()),
            late,
            2e-5 / radius + 1e5 * EPS,
            "the sphere's bend: twice the distance over the radius; and rounding of distances",
            relation="<=",
            wrong=Wrong("the square of that factor", predicted=late**2),
        ),
        Check(
            "a linear function: distance to r g / |g|",
            float((linear - radius * slope / slope.norm()).norm()),
            0.0,
            # Every step adds 4r along g/|g| or more; what lies across shrinks by 1 / 3 at least.
            radius * 3.0**-18 + 16 * EPS,
            "each step is at least 2 radii along g, so that the rest shrinks threefold",
            wrong=Wrong("the corner r sign(g)", measured=float((corner - linear).norm())),
        ),
    ]
    rows = [[k, float(path[k].norm()), float(gaps[k])] for k in (0, 1, 5, 20, steps)]
    data = {
        "gaps": gaps,
        "factor": late,
        "norms": path.norm(dim=1),
        "free": free.norm(dim=1),
    }
    return Finding(
        checks, Table(["step", "norm", "distance to the best"], rows), data | {"radius": radius}
    )


def ascend(
    climb: Callable[[Tensor], Tensor],
    start: Tensor,
    radius: float,
    rate: float,
    steps: int,
    norm: Literal["l2", "inf"] = "l2",
) -> Tensor:
    """The iterates of x ← Π(x + α∇ℓ)."""
    x, path = nn.Parameter(start.clone()), [start]
    rule = ProjectedGradient([x], lr=rate, radius=radius, norm=norm, maximize=True)
    for _ in range(steps):
        (x.grad,) = torch.autograd.grad(climb(x), x)
        rule.step()
        path.append(x.detach().clone())
    return torch.stack(path)


def on_the_sphere(
    curvature: Tensor, Q: Tensor, peak: Tensor, radius: float
) -> tuple[Tensor, float]:
    """The best point and its multiplier m: (H + m) x = H peak with |x| = r, by root finding."""
    along = curvature * (Q.T @ peak)

    def excess(m: float) -> float:
        return float((along / (curvature + m)).norm()) - radius

    m = brentq(excess, 0.0, 1e6, xtol=1e-300, rtol=4 * EPS)
    return Q @ (along / (curvature + m)), float(m)


def draw(paper: Figure, finding: Finding) -> None:
    """Norms that stop at the radius, distances that fall."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    data = finding.data
    left, right = paper.subplots(1, 2)
    left.axhline(data["radius"], color=INK, label="radius")
    left.plot(data["free"][:16], "s-", lw=0.7, color=LINEAR, label="no projection")
    left.plot(data["norms"][:16], "o-", lw=0.7, color=MODEL, label="projected")
    left.set(xlabel="step", ylabel="norm of the iterate", title="it stays in the ball ...")
    left.legend(loc="center right")
    gaps = data["gaps"]
    seen = gaps > 1e-15
    k = torch.arange(len(gaps))
    far = int(seen.sum())
    scale = gaps[1] / data["factor"]
    right.plot(k[:far], scale * data["factor"] ** k[:far], color=INK, label="bound of the slope")
    right.plot(k[seen], gaps[seen], "o", color=MODEL, label="projected ascent")
    right.set(xlabel="step t", ylabel="distance to the best point")
    right.set_title("... and finds its best point")
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="projected-gradient-ascent",
    title="Projected gradient ascent stays in the ball and finds its best point",
    statement=(
        "Ascending by the gradient and then moving to the nearest point of a ball leaves every "
        "iterate in it. On a concave quadratic with curvatures from μ to L the method converges to "
        "the best point of the ball, by the factor 1 - μ/L per step at the rate 1/L, and in the "
        "end by (1 - μ/L) / (1 + m), where m is the multiplier of the constraint over L. On a "
        "linear function it converges to the point of the sphere along the gradient."
    ),
    formula=(
        r"\eta \leftarrow \Pi_r(\eta + \alpha \nabla \ell(\eta)), \qquad "
        r"\Pi_r(x) = x \min\!\left(1, \frac{r}{\|x\|}\right)"
    ),
    sources=("M138",),
    measure=measure,
    reference=(
        "Nesterov (2018), Lectures on Convex Optimization, section 2.2.5; Madry et al. (2018), "
        "Towards deep learning models resistant to adversarial attacks. "
        "https://arxiv.org/abs/1706.06083"
    ),
    full={"size": 100, "steps": 1000},
    draw=draw,
)
