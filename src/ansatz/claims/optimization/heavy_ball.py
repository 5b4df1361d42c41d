"""The heavy ball: steps of η / (1 - β) in the end, and the rate of √κ."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import descent, follow, rotation, spectrum
from ansatz.optim import HeavyBall, momentum


def measure(
    generator: torch.Generator,
    *,
    rate: float = 0.1,
    beta: float = 0.9,
    condition: float = 100.0,
    steps: int = 200,
) -> Finding:
    """Steps under a constant gradient; the best constants on a quadratic."""
    moves = constant_gradient(rate, beta, 60)
    t = torch.arange(60, dtype=torch.float64)
    sums = -rate * (1 - beta ** (t + 1)) / (1 - beta)
    far = constant_gradient(rate, beta, 300)[-1]

    curvature, Q = spectrum(condition, 6), rotation(6, generator)
    hessian = Q @ torch.diag(curvature) @ Q.T
    start = Q.sum(1)  # all eigenvectors alike

    def loss(theta: Tensor) -> Tensor:
        return 0.5 * theta @ hessian @ theta

    root = condition**0.5
    rho = (root - 1) / (root + 1)
    eta = (2 / (1 + condition**-0.5)) ** 2
    ball = follow(loss, start, lambda p: HeavyBall(p, eta, beta=rho**2), steps)
    ours = follow(loss, start, lambda p: momentum(p, eta, momentum=rho**2), steps)
    plain = follow(loss, start, descent(2 / (1 + 1 / condition)), steps)
    error = ball.norm(dim=1)
    half = steps // 2
    measured = float((error[-1] / error[half]) ** (1 / (steps - half)))
    checks = [
        Check(
            "limit of the step under the gradient 1",
            float(far),
            -rate / (1 - beta),
            beta**300 + 100 * EPS,
            "the rest of the geometric series after 300 steps, and rounding",
            wrong=Wrong("the sum from τ = 1", predicted=-rate * beta / (1 - beta), erratum="E26"),
        ),
        Check(
            "largest gap of a step to -η Σ β^τ, τ = 0, ..., t",
            float((moves - sums).abs().max()),
            0.0,
            100 * EPS,
            "rounding of positions of size 60",
            wrong=Wrong("β = 0 gave no step", measured=float((moves - beta * sums).abs().max())),
        ),
        Check(
            "factor per step with the best constants",
            measured,
            rho,
            rho * ((steps + 2) / half) ** (1 / (steps - half)) - rho,
            "a double root: the error is (a + bt) ρ^t, and a + bt at most doubles meanwhile",
            wrong=Wrong(
                "(κ - 1) / (κ + 1), that of descent", predicted=(condition - 1) / (condition + 1)
            ),
        ),
        Check(
            "largest gap to torch's SGD with momentum",
            float((ball - ours).abs().max()),
            0.0,
            steps * 100 * EPS,
            "rounding of each step, in a method that forgets it",
        ),
    ]
    rows = [[int(k), float(moves[k]), float(sums[k])] for k in (0, 1, 2, 10, 59)]
    data = {"moves": moves, "sums": sums, "error": error, "plain": plain.norm(dim=1), "rho": rho}
    data |= {"beta": beta}
    return Finding(checks, Table(["t", "step", "-η Σ β^τ"], rows), data)


def constant_gradient(rate: float, beta: float, steps: int) -> Tensor:
    """The steps of the ball under the gradient 1."""
    theta = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer, places = HeavyBall([theta], rate, beta=beta), [0.0]
    for _ in range(steps):
        theta.grad = torch.ones_like(theta)
        optimizer.step()
        places.append(theta.item())
    return torch.tensor(places, dtype=torch.float64).diff()


def draw(paper: Figure, finding: Finding) -> None:
    """The steps that grow to their limit; the error beside that of descent."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    data = finding.data
    t = torch.arange(len(data["moves"]))
    left.plot(t, data["sums"], color=INK, label="-η Σ β^τ from τ = 0")
    left.plot(t, data["beta"] * data["sums"], "--", lw=0.8, color=LINEAR, label="from τ = 1")
    left.plot(t[::3], data["moves"][::3], "o", color=MODEL, label="heavy ball")
    left.set(xlabel="step t", ylabel="move under the gradient 1")
    left.set_title("steps grow to η / (1 - β)")
    left.legend()
    error, rho = data["error"], data["rho"]
    t = torch.arange(len(error))
    seen, half = error > 1e-13, len(t) // 2
    scale = error[half] / (half * rho**half)
    right.plot(t[seen][2:], (scale * t * rho**t)[seen][2:], color=INK, label="t ρ^t with √κ")
    right.plot(t[seen][::12], error[seen][::12], "o", color=MODEL, label="heavy ball")
    right.plot(t, data["plain"], color=LINEAR, label="descent")
    right.set(xlabel="step", ylabel="distance to the minimum")
    right.set_title("κ = 100: √κ against κ")
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="heavy-ball",
    title="The heavy ball's last step and its rate",
    statement=(
        "Under a constant gradient g the heavy ball's step is -ηg (1 + β + ... + βᵗ) and tends to "
        "-ηg / (1 - β). A common slip starts the sum at τ = 1, which gives β times that, and no "
        "step at all for β = 0. On a quadratic of condition κ the best constants give the factor "
        "(√κ - 1) / (√κ + 1) per step, where descent has (κ - 1) / (κ + 1)."
    ),
    formula=(
        r"\theta_{t+1} - \theta_t = -\eta g \sum_{\tau=0}^{t} \beta^\tau \to "
        r"-\frac{\eta g}{1 - \beta}, \qquad "
        r"\rho = \sqrt\beta = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}"
    ),
    sources=("M130", "E26"),
    measure=measure,
    reference="Polyak (1964), Some methods of speeding up the convergence of iteration methods.",
    full={"condition": 1000.0, "steps": 2000},
    errata=(Erratum("E26", "-ηg Σ β^τ from τ = 1", "-ηg Σ β^τ from τ = 0, limit -ηg / (1 - β)"),),
    draw=draw,
)
