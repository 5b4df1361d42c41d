"""A molecule's descriptor that no rotation changes, and an energy that no exchange changes."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import RadialBasis, gram
from ansatz.layers.moments import Surroundings, moments


def measure(generator: torch.Generator, *, atoms: int = 6, turns: int = 20) -> Finding:
    """Rotates, shifts and renames the atoms of a random molecule."""
    x = 2 * torch.randn(atoms, 3, generator=generator, dtype=torch.float64)
    right, wrong, energy, layer = [], [], [], []
    before = descriptor(x)
    for _ in range(turns):
        Q, _ = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))
        moved = x @ Q.T + torch.randn(3, generator=generator, dtype=torch.float64)
        R, S = relative(x), relative(moved)
        right.append(float((S @ S.mT - R @ R.mT).abs().max()))
        wrong.append(float((S.mT @ S - R.mT @ R).abs().max()))
        energy.append(float((total(moved) - total(x)).abs()))
        layer.append(float((descriptor(moved) - before).abs().max()))
    order = torch.roll(torch.arange(atoms), 1)
    own = torch.arange(1.0, atoms + 1, dtype=torch.float64)  # a weight h_i for each place
    R = relative(x)
    size = float((R @ R.mT).abs().max())
    rounding = 32 * 2.0**-52 * size
    because = "rounding: 32 eps times the largest squared distance"
    checks = [
        Check(
            "largest change of RRᵀ under rotations and shifts",
            max(right),
            0.0,
            rounding,
            because,
            wrong=Wrong("RᵀR", measured=max(wrong), erratum="E30"),
        ),
        Check(
            "largest change of the layer's GᵀRRᵀG under rotations and shifts",
            max(layer),
            0.0,
            64 * 2.0**-52 * atoms**2 * float(before.abs().max().clamp(min=1)),
            "rounding: 64 eps for each pair of neighbours",
        ),
        Check(
            "largest change of the energy under rotations and shifts",
            max(energy),
            0.0,
            atoms**3 * rounding,
            f"{because}, summed over the pairs of each atom",
        ),
        Check(
            "change of the energy when atoms are exchanged",
            float((total(x[order]) - total(x)).abs()),
            0.0,
            atoms**3 * rounding,
            f"{because}, summed over the pairs of each atom",
            wrong=Wrong(
                "an own h_i for each atom",
                measured=float((total(x[order], own) - total(x, own)).abs()),
                erratum="E30",
            ),
        ),
    ]
    return Finding(checks, data={"right": right, "wrong": wrong})


def relative(x: Tensor) -> Tensor:
    """R_i, the positions of all atoms seen from atom i, ``(N, N, 3)``."""
    return x[None] - x[:, None]


def descriptor(x: Tensor) -> Tensor:
    """GᵀRRᵀG of every atom by the layer of deeppot, whose size the neighbours do not change."""
    pairs = (~torch.eye(len(x), dtype=torch.bool)).nonzero()
    vectors = x[pairs[:, 1]] - x[pairs[:, 0]]
    near = Surroundings.of(vectors, RadialBasis(20.0, 6), pairs[:, 0], len(x))
    return gram(moments(near, 1), 6)


def total(x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Σ h(R_i R_iᵀ), where h sums over pairs and so forgets the order of the neighbours."""
    R = relative(x)
    each = torch.tanh(R @ R.mT / 8).sum((1, 2))  # (N,)
    return each.sum() if weight is None else (weight * each).sum()


def draw(paper: Figure, finding: Finding) -> None:
    """Changes of both descriptors, rotation by rotation."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    turn = range(1, len(data["right"]) + 1)
    axes.semilogy(turn, data["wrong"], "x", color=LINEAR, ms=5, label="RᵀR (printed)")
    axes.semilogy(turn, data["right"], "o", color=MODEL, label="RRᵀ")
    axes.set_yticks([1e-15, 1e-10, 1e-5, 1], ["1e-15", "1e-10", "1e-5", "1"])
    axes.set(xlabel="random rotation and shift", ylabel="largest change", ylim=(1e-16, 1e3))
    axes.set_title("inner products of positions ignore a rotation; RᵀR rotates with it")
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="gram-invariance",
    title="Inner products of positions are invariant under rotations",
    statement=(
        "With the relative positions as rows of R_i, rotations and shifts do not change the matrix "
        "R_iR_iᵀ of inner products, and exchanging atoms does not change Σ h(R_iR_iᵀ) if all of "
        "one kind share h. Common slips are R_iᵀR_i, which rotates with the molecule, and a "
        "separate h_i per atom."
    ),
    formula=(
        r"\Omega_i = R_i R_i^\top, \quad (R_i Q^\top)(R_i Q^\top)^\top = R_i R_i^\top, \qquad "
        r"f = \sum_i h(\Omega_i)"
    ),
    sources=("E30", "M290", "M292", "M293"),
    measure=measure,
    reference=(
        "Zhang et al. (2018), End-to-end symmetry preserving inter-atomic potential energy model "
        "for finite and extended systems. https://arxiv.org/abs/1805.09003"
    ),
    full={"atoms": 30, "turns": 200},
    errata=(Erratum("E30", "Ω_i = R_iᵀR_i, f = Σ h_i(Ω_i)", "Ω_i = R_iR_iᵀ, f = Σ h(Ω_i)"),),
    draw=draw,
)
