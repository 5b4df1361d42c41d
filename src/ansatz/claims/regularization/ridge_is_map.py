"""Ridge regression is the mode of a posterior and a constraint on the norm."""

import numpy as np
import torch
from scipy.optimize import minimize
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.likelihoods import Normal
from ansatz.optim import Newton
from ansatz.training.penalties import L2

GOAL = 1e-13  # of the constrained search, in the loss


def measure(
    generator: torch.Generator, *, rows: int = 40, sd: float = 0.75, count: int = 9
) -> Finding:
    """Modes by Newton's method, ridge by scikit-learn, constrained minima by SLSQP."""
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    truth = torch.randn(5, generator=generator, dtype=torch.float64)
    y = x @ truth + sd * torch.randn(rows, generator=generator, dtype=torch.float64)
    strengths = np.logspace(-1, 3, count)
    modes = np.stack([mode(x, y, sd, mu) for mu in strengths])
    radii = np.linalg.norm(modes, axis=1)
    ridges = np.stack([ridge(x, y, mu * sd**2) for mu in strengths])
    forgot = np.stack([ridge(x, y, mu) for mu in strengths])
    picked = range(0, count, 2)
    bound = np.stack([constrained(x, y, radii[k]) for k in picked])
    printed = constrained(x, y, strengths[0])
    values = torch.linalg.eigvalsh(x.T @ x)
    condition = float(values[-1] / values[0])
    searched = (2 * GOAL * rows / float(values[0])) ** 0.5
    checks = [
        Check(
            "largest distance of a mode from ridge with α = μσ²",
            float(np.abs(modes - ridges).max()),
            0.0,
            64 * EPS * condition,
            "rounding: 64 eps times the condition number of XᵀX",
            wrong=Wrong("α = μ, the noise forgotten", measured=float(np.abs(modes - forgot).max())),
        ),
        Check(
            "largest distance of a mode from the best fit with at most its norm",
            float(np.abs(modes[list(picked)] - bound).max()),
            0.0,
            searched,
            "the search ends within 10⁻¹³ of the loss: √(2 · 10⁻¹³ / least curvature)",
            wrong=Wrong("the radius is μ itself", measured=float(np.abs(modes[0] - printed).max())),
        ),
        Check(
            "largest change of the radius from one μ to the next larger one",
            float(np.diff(radii).max()),
            0.0,
            0.0,
            "a norm that falls needs none",
            "<=",
            wrong=Wrong("a radius equal to μ grows", measured=float(np.diff(strengths).max())),
        ),
    ]
    table = Table(
        ["μ", "norm of the mode", "norm of ridge"],
        [
            [m, r, float(np.linalg.norm(s))]
            for m, r, s in zip(strengths, radii, ridges, strict=True)
        ],
    )
    data = {
        "μ": strengths,
        "radius": radii,
        "ridge": np.linalg.norm(ridges, axis=1),
        "forgot": np.linalg.norm(forgot, axis=1),
    }
    return Finding(checks, table, data)


def mode(x: torch.Tensor, y: torch.Tensor, sd: float, mu: float) -> np.ndarray:
    """The maximum of the normal likelihood times the prior N(0, 1/μ)."""
    network = nn.Linear(x.shape[1], 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(network.weight)
    likelihood, prior = Normal(dispersion=sd), L2(mu)
    rule = Newton(network.parameters())
    for _ in range(2):  # the first step lands; the second removes its rounding
        rule.step(lambda: likelihood.loss(network(x), y).sum() + prior(network))
    return network.weight.detach()[0].numpy().copy()


def ridge(x: torch.Tensor, y: torch.Tensor, alpha: float) -> np.ndarray:
    """Scikit-learn's, without an intercept."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky").fit(x.numpy(), y.numpy())
    return np.asarray(model.coef_)


def constrained(x: torch.Tensor, y: torch.Tensor, radius: float) -> np.ndarray:
    """The least squares fit with ‖θ‖ <= radius, by sequential quadratic programming."""
    X, Y = x.numpy(), y.numpy()
    found = minimize(
        lambda w: 0.5 * np.mean((X @ w - Y) ** 2),
        np.full(X.shape[1], 0.1 * radius),
        jac=lambda w: X.T @ (X @ w - Y) / len(Y),
        constraints={
            "type": "ineq",
            "fun": lambda w: 0.5 * (radius**2 - w @ w),
            "jac": lambda w: -w,
        },
        method="SLSQP",
        options={"ftol": GOAL, "maxiter": 500},
    )
    return np.asarray(found.x)


def draw(paper: Figure, finding: Finding) -> None:
    """The norm of the solution against μ."""
    axes = paper.subplots()
    data = finding.data
    axes.plot(data["μ"], data["ridge"], color=INK, label="ridge with α = μσ²")
    axes.plot(
        data["μ"], data["forgot"], "--", color=LINEAR, linewidth=0.9, label="ridge with α = μ"
    )
    axes.plot(
        data["μ"], data["radius"], "o", color=MODEL, markersize=5, label="mode of the posterior"
    )
    logarithmic(axes.xaxis)
    axes.set(
        xlabel="precision μ of the prior N(0, 1/μ)", ylabel="norm of the solution", ylim=(0, None)
    )
    axes.set_title("each prior is a ridge penalty and a ball: its radius falls as μ grows")
    axes.legend()


claim = Claim(
    id="ridge-is-map",
    title="Ridge regression, a Gaussian prior and a ball are the same",
    statement=(
        "The mode of the posterior under the prior N(0, 1/μ) and normal noise of variance σ² is "
        "ridge regression with the penalty μσ², and the best fit in a ball. The radius of that "
        "ball is a decreasing function of μ; it is not μ itself, as the common ‖θ‖ ≤ μ suggests."
    ),
    formula=(
        r"\arg\max_\theta\, p(y \mid \theta)\, N(\theta; 0, \mu^{-1} I) = \arg\min_\theta "
        r"\tfrac12 \|y - X\theta\|^2 + \tfrac{\mu \sigma^2}{2} \|\theta\|^2 = "
        r"\arg\min_{\|\theta\| \le r(\mu)} \|y - X\theta\|^2"
    ),
    sources=("M152", "M153"),
    measure=measure,
    reference="Hoerl and Kennard (1970), Ridge regression.",
    full={"count": 25},
    draw=draw,
)
