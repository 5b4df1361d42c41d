"""Gradient descent on a quadratic: every eigenvalue has its own geometric sequence."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import descent, follow, rotation, spectrum


def measure(
    generator: torch.Generator, *, condition: float = 20.0, size: int = 10, steps: int = 200
) -> Finding:
    """Descends with autograd's gradients; compares with the powers of 1 - rate * eigenvalue."""
    curvature, Q = spectrum(condition, size), rotation(size, generator)
    hessian = Q @ torch.diag(curvature) @ Q.T
    start = Q.sum(1)  # all eigenvectors alike

    def loss(theta: Tensor) -> Tensor:
        return 0.5 * theta @ hessian @ theta

    best = float(2 / (curvature[0] + curvature[-1]))
    path = follow(loss, start, descent(best), steps)
    along = path @ Q  # (T + 1, D): coordinates in the eigenbasis
    t = torch.arange(steps + 1, dtype=torch.float64).unsqueeze(1)
    powers = (1 - best * curvature) ** t * along[0]
    error = path.norm(dim=1)
    factor = float((error[-1] / error[-51]) ** (1 / 50))
    rho = (condition - 1) / (condition + 1)
    # The error is rho^t times the norm of the two extreme coordinates, and what the others add.
    others = (1 - best * curvature[1:-1]).abs().max().item() / rho
    share = float((along[0] ** 2).sum() / (along[0, [0, -1]] ** 2).sum())
    tail = rho * share * others ** (2 * (steps - 50)) / 50
    rounding = 8 * size * EPS * float(start.norm())
    too_far = follow(loss, start, descent(2.02 / float(curvature.max())), steps)
    root = condition**0.5
    checks = [
        Check(
            "factor per step at the best rate 2 / (L + μ)",
            factor,
            rho,
            tail + steps * EPS,
            "the next eigenvalue's share of the error, after 150 steps, and rounding",
            wrong=Wrong(
                "the factor with √κ, which needs momentum",
                predicted=(root - 1) / (root + 1),
                erratum="E64",
            ),
        ),
        Check(
            "largest gap between a coordinate and its power",
            float((along - powers).abs().max()),
            0.0,
            rounding,
            "rounding: 8 eps times the dimension and the size of the start",
            wrong=Wrong(
                "the power t + 1 instead of t",
                measured=float((along - powers * (1 - best * curvature)).abs().max()),
            ),
        ),
        Check(
            "error after / before, at the rate 2.02 / L",
            float(too_far[-1].norm() / too_far[0].norm()),
            1.02**steps * float((along[0, -1] / start.norm()).abs()),
            1.0 + steps * EPS * 1.02**steps,
            "the other coordinates never grow beyond the start; rounding of each step",
            wrong=Wrong("that rate converged too", predicted=0.0),
        ),
    ]
    table = Table(
        ["step", "error", "rho^t |start|"],
        [[k, float(error[k]), rho**k * float(error[0])] for k in range(0, steps + 1, 50)],
    )
    return Finding(checks, table, {"error": error, "rho": rho, "momentum": (root - 1) / (root + 1)})


def draw(paper: Figure, finding: Finding) -> None:
    """The error against the steps, with the predicted slope."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    error, rho = finding.data["error"], finding.data["rho"]
    t = torch.arange(len(error))
    scale = float(error[-1]) / rho ** (len(error) - 1)
    axes = paper.subplots()
    axes.plot(t, scale * rho**t, color=INK, label="(κ - 1) / (κ + 1) to the power t")
    axes.plot(t[::8], error[::8], "o", color=MODEL, label="gradient descent, rate 2 / (L + μ)")
    wrong = scale * finding.data["momentum"] ** t
    axes.plot(
        t[wrong > error[-1]],
        wrong[wrong > error[-1]],
        "--",
        lw=0.8,
        color=LINEAR,
        label="(√κ - 1) / (√κ + 1) to the power t: wrong here",
    )
    axes.set(xlabel="step t", ylabel="distance to the minimum")
    axes.set_title("on a quadratic each step removes the same share of the error")
    axes.legend()
    logarithmic(axes.yaxis)


claim = Claim(
    id="gradient-descent-rate",
    title="Gradient descent converges geometrically on a quadratic",
    statement=(
        "On a quadratic with curvatures λ between μ and L every coordinate of the error in the "
        "eigenbasis is multiplied by 1 - ηλ at each step. At the best rate 2 / (L + μ) the error "
        "falls by (κ - 1) / (κ + 1) per step, κ = L / μ; beyond 2 / L it grows."
    ),
    formula=(
        r"e_i^{(t)} = (1 - \eta \lambda_i)^t e_i^{(0)}, \qquad "
        r"\min_\eta \max_i |1 - \eta \lambda_i| = \frac{\kappa - 1}{\kappa + 1}"
    ),
    sources=("M122", "E64"),
    measure=measure,
    reference="Nocedal and Wright (2006), Numerical Optimization, section 3.3.",
    full={"condition": 100.0, "size": 50, "steps": 2000},
    errata=(Erratum("E64", "the proof of the rate is left out", "(κ - 1) / (κ + 1) per step"),),
    draw=draw,
)
