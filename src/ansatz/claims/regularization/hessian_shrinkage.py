"""A penalty shrinks each direction of the Hessian by its own factor."""

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, PALETTE
from ansatz.optim import Newton
from ansatz.training.penalties import L2

STRENGTHS = (0.03, 0.3, 3.0)


def measure(generator: torch.Generator, *, size: int = 12) -> Finding:
    """Penalised minima of a quadratic by Newton's method, seen in the basis of its Hessian."""
    values = torch.logspace(-2, 2, size, dtype=torch.float64)
    basis, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    hessian = basis @ torch.diag(values) @ basis.T
    best = basis @ (1 + torch.rand(size, generator=generator, dtype=torch.float64))
    found = {mu: basis.T @ penalised(hessian, best, mu) / (basis.T @ best) for mu in STRENGTHS}
    error = max(float((s - values / (values + mu)).abs().max()) for mu, s in found.items())
    printed = max(
        float((s - 2 * values / (2 * values + mu)).abs().max()) for mu, s in found.items()
    )
    checks = [
        Check(
            "largest distance of a coordinate's shrinkage from λ / (λ + μ)",
            error,
            0.0,
            64 * EPS * float(values[-1]) / min(STRENGTHS),
            "rounding: 64 eps times the condition number of the penalised Hessian",
            wrong=Wrong("Taylor without the ½: 2λ / (2λ + μ)", measured=printed),
        )
    ]
    table = Table(
        ["λ", *(f"μ = {mu}" for mu in STRENGTHS)],
        [[float(v), *(float(found[mu][i]) for mu in STRENGTHS)] for i, v in enumerate(values)],
    )
    return Finding(checks, table, {"λ": values.numpy(), "found": found})


def penalised(hessian: torch.Tensor, best: torch.Tensor, mu: float) -> torch.Tensor:
    """The minimum of (θ - θ*)ᵀ H (θ - θ*) / 2 + μ‖θ‖² / 2."""
    network = nn.Linear(len(best), 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(network.weight)
    penalty, rule = L2(mu), Newton(network.parameters())

    def loss() -> torch.Tensor:
        away = network.weight[0] - best
        return 0.5 * away @ hessian @ away + penalty(network)

    for _ in range(2):
        rule.step(loss)
    return network.weight.detach()[0].clone()


def draw(paper: Figure, finding: Finding) -> None:
    """Shrinkage against the curvature of the direction."""
    axes = paper.subplots()
    values, found = finding.data["λ"], finding.data["found"]
    fine = np.geomspace(values[0], values[-1], 200)
    for mu, colour in zip(STRENGTHS, (PALETTE[0], PALETTE[2], PALETTE[3]), strict=True):
        axes.plot(fine, fine / (fine + mu), color=colour)
        axes.plot(values, found[mu], "o", color=colour, markersize=5, label=f"μ = {mu}")
    axes.plot([], [], color=INK, label="λ / (λ + μ)")
    axes.plot(
        fine, 2 * fine / (2 * fine + 0.3), "--", color=LINEAR, linewidth=0.9,
        label="2λ / (2λ + μ), μ = 0.3",
    )  # fmt: skip
    logarithmic(axes.xaxis)
    axes.set(xlabel="curvature λ of the direction", ylabel="coordinate / unpenalised one")
    axes.set_title("a penalty erases flat directions and leaves steep ones alone")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="hessian-shrinkage",
    title="A penalty shrinks along the axes of the Hessian",
    statement=(
        "On a quadratic loss, the penalty μ‖θ‖²/2 multiplies the minimiser's coordinate along each "
        "eigenvector of the Hessian by λ/(λ + μ). A Taylor expansion without its ½, a common slip, "
        "would give 2λ/(2λ + μ)."
    ),
    formula=(
        r"\theta^*_\mu = Q\, \mathrm{diag}\Big( \frac{\lambda_i}{\lambda_i + \mu} \Big) Q^\top "
        r"\theta^*, \qquad \nabla^2 \ell = Q \Lambda Q^\top"
    ),
    sources=("M154",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 7.1.1.",
    full={"size": 40},
    draw=draw,
)
