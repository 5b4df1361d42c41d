"""Extragradient finds the saddle of a bilinear game; half of it does not."""

import math

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.optim import Extragradient


def measure(generator: torch.Generator, *, rate: float = 0.1, steps: int = 500) -> Finding:
    """The distance to the saddle (0, 0) of ℓ(θ, φ) = θφ from (1, 1)."""
    right = extragradient(rate, steps)
    printed, plain = own_variable(rate, steps), descent_ascent(rate, steps)
    norms = {
        name: path.norm(dim=1)
        for name, path in (("right", right), ("printed", printed), ("plain", plain))
    }
    shrink = math.sqrt(1 - rate**2 + rate**4)
    grow = math.sqrt(1 + rate**2)
    start = math.sqrt(2)
    checks = [
        Check(
            f"distance to the saddle after {steps} steps",
            float(norms["right"][-1]),
            start * shrink**steps,
            8 * steps * EPS * start,
            "rounding: 8 eps per step",
            wrong=Wrong(
                "each player looks ahead in its own variable only",
                measured=float(norms["printed"][-1]),
                erratum="E7",
            ),
        ),
        Check(
            "distance of the printed form",
            float(norms["printed"][-1]),
            start * grow**steps,
            8 * steps * EPS * start * grow**steps,
            "rounding: 8 eps per step",
            wrong=Wrong("it converged too", predicted=start * shrink**steps),
        ),
        Check(
            "largest gap of the printed form to plain descent and ascent",
            float((printed - plain).abs().max()),
            0.0,
            8 * steps * EPS * float(norms["plain"][-1]),
            "rounding: on this game ∂ℓ/∂θ does not depend on θ",
        ),
    ]
    rows = [
        [k, float(norms["printed"][k]), float(norms["right"][k])]
        for k in range(0, steps + 1, max(steps // 5, 1))
    ]
    data = {"right": right, "printed": printed, "norms": norms, "shrink": shrink, "grow": grow}
    table = Table(["step", "own variable only", "both at the half point"], rows)
    return Finding(checks, table, data)


def extragradient(rate: float, steps: int) -> Tensor:
    """The path of the library's optimiser."""
    theta, phi = (nn.Parameter(torch.ones(1, dtype=torch.float64)) for _ in range(2))
    players = [{"params": [theta]}, {"params": [phi], "maximize": True}]
    game = Extragradient(players, lr=rate)

    def closure() -> Tensor:
        # The gradients of θφ, without the cost of a graph.
        theta.grad, phi.grad = phi.detach().clone(), theta.detach().clone()
        return theta.detach() * phi.detach()

    path = [torch.ones(2, dtype=torch.float64)]
    for _ in range(steps):
        game.step(closure)
        path.append(torch.cat([theta, phi]).detach())
    return torch.stack(path)


def own_variable(rate: float, steps: int) -> Tensor:
    """As printed: θ's second gradient at (θ½, φ), φ's at (θ, φ½), by autograd."""
    point, path = torch.ones(2, dtype=torch.float64), [torch.ones(2, dtype=torch.float64)]

    def slopes(theta: Tensor, phi: Tensor) -> tuple[Tensor, Tensor]:
        theta, phi = theta.requires_grad_(), phi.requires_grad_()
        a, b = torch.autograd.grad(theta * phi, (theta, phi))
        return a, b

    for _ in range(steps):
        theta, phi = point[0].clone(), point[1].clone()
        a, b = slopes(theta.detach(), phi.detach())
        half_theta, half_phi = theta - rate * a, phi + rate * b
        for_theta, _ = slopes(half_theta.detach(), phi.detach())
        _, for_phi = slopes(theta.detach(), half_phi.detach())
        point = torch.stack([theta - rate * for_theta, phi + rate * for_phi])
        path.append(point)
    return torch.stack(path)


def descent_ascent(rate: float, steps: int) -> Tensor:
    """Both players at once, by the gradient where they stand."""
    turn = torch.tensor([[1.0, -rate], [rate, 1.0]], dtype=torch.float64)
    path = [torch.ones(2, dtype=torch.float64)]
    for _ in range(steps):
        path.append(turn @ path[-1])
    return torch.stack(path)


def draw(paper: Figure, finding: Finding) -> None:
    """The spirals, and the distances with their predictions."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    data = finding.data
    left, right = paper.subplots(1, 2)
    few = data["printed"][:150]
    left.plot(few[:, 0], few[:, 1], color=LINEAR, lw=0.9, label="own variable only")
    left.plot(data["right"][:, 0], data["right"][:, 1], color=MODEL, lw=0.9, label="extragradient")
    left.plot([0], [0], "+", color=INK, markersize=9)
    left.set(xlabel="θ, who minimises θφ", ylabel="φ, who maximises", aspect="equal")
    left.set_title("inwards or outwards")
    k = torch.arange(len(data["right"]))
    for name, factor, colour, label in (
        ("printed", "grow", LINEAR, "own variable only"),
        ("right", "shrink", MODEL, "both at the half point"),
    ):
        right.plot(k, 2**0.5 * data[factor] ** k, color=INK, lw=1)
        right.plot(k[::25], data["norms"][name][::25], "o", color=colour, label=label)
    right.set(xlabel="step", ylabel="distance to the saddle")
    right.set_title("lines: the predicted factors")
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="extragradient",
    title="Extragradient converges on the bilinear game",
    statement=(
        "On the game min over θ, max over φ of θφ, extragradient with both players at the half "
        "point shrinks the distance to the saddle by √(1 - η² + η⁴) per step: from 1.41 to 0.118 "
        "in 500 steps of 0.1. A common slip lets each player look ahead only in its own variable; "
        "on this game that is plain descent and ascent, and spirals out to 17."
    ),
    formula=(
        r"\theta_{t+1} = \theta_t - \eta \nabla_\theta \ell(\theta_{t+\frac12}, "
        r"\phi_{t+\frac12}), \quad \phi_{t+1} = \phi_t + \eta \nabla_\phi \ell("
        r"\theta_{t+\frac12}, \phi_{t+\frac12}) \;\Rightarrow\; "
        r"\|z_t\| = (1 - \eta^2 + \eta^4)^{t/2} \|z_0\|"
    ),
    sources=("M137", "E7"),
    measure=measure,
    reference=(
        "Gidel et al. (2019), A variational inequality perspective on generative adversarial "
        "networks. https://arxiv.org/abs/1802.10551"
    ),
    full={"steps": 3000},
    errata=(Erratum("E7", "∇_θ ℓ(θ½, φ), ∇_φ ℓ(θ, φ½)", "both gradients at (θ½, φ½)"),),
    draw=draw,
)
