"""The eigenvalues of a random matrix fill a disk evenly, and a recurrence may start alike."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import LRU, MinGRU, Recurrent

UNITS = 20_000
RING = (0.6, 0.9)


def measure(generator: torch.Generator, *, size: int = 100, matrices: int = 10) -> Finding:
    """Moduli of eigenvalues, and the linearity of an LRU, which a minGRU lacks."""
    draws = torch.randn(matrices, size, size, generator=generator, dtype=torch.float64).numpy()
    moduli = np.abs(np.linalg.eigvals(draws / size**0.5))  # variance 1/n, as Glorot's
    means = moduli.mean(1)
    disk, ring = (
        LRU(1, 1, units=UNITS, r_min=low, r_max=high, generator=generator).double()
        for low, high in ((0.0, 1.0), RING)
    )
    start = disk.eigenvalues.detach().abs().mean()
    low, high = (edge**2 for edge in RING)
    area = ring.eigenvalues.detach().abs().square().mean()
    x, y = torch.randn(2, 1, 30, 3, generator=generator, dtype=torch.float64)
    lru = LRU(3, 3, generator=generator).double()
    layers = [lru, MinGRU(3, 3, generator=generator).double()]
    torch.nn.init.zeros_(lru.skip.bias)  # affine maps are linear without their constant
    apart = [additivity(layer, x, y) for layer in layers]
    error = 4 * float(means.std(ddof=1)) / matrices**0.5
    checks = [
        Check(
            "mean modulus of the eigenvalues of a Glorot matrix",
            float(means.mean()),
            2 / 3,
            error + (2 / (np.pi * size)) ** 0.5 / 6,
            "4 standard errors over matrices, and the √(2n/π) real eigenvalues, whose mean is 1/2",
            wrong=Wrong("r itself uniform", predicted=0.5, erratum="E53"),
        ),
        Check(
            "mean modulus of the eigenvalues that an LRU starts with",
            float(start),
            2 / 3,
            4 * (1 / 18) ** 0.5 / UNITS**0.5,
            "4 standard errors; the variance of r is 1/2 - 4/9",
            wrong=Wrong("r itself uniform", predicted=0.5, erratum="E53"),
        ),
        Check(
            f"mean of r² on a ring from {RING[0]} to {RING[1]}",
            float(area),
            (low + high) / 2,
            4 * (high - low) / (12 * UNITS) ** 0.5,
            "4 standard errors of uniform numbers",
            wrong=Wrong("r itself uniform", predicted=(RING[0] ** 2 + RING[0] * RING[1]
                                                       + RING[1] ** 2) / 3),
        ),
        Check(
            "largest error of linearity of an LRU",
            apart[0],
            0.0,
            256 * 2.0**-52 * 30,
            "rounding: 256 eps over 30 steps",
            wrong=Wrong("a minGRU under that name", measured=apart[1], erratum="E53"),
        ),
    ]  # fmt: skip
    shown = ring.eigenvalues.detach()[:1_000].numpy()
    return Finding(checks, data={"moduli": moduli.ravel(), "ring": shown})


def additivity(layer: Recurrent, x: Tensor, y: Tensor) -> float:
    """The largest |f(x) + f(y) - f(x + y)| over all steps."""
    with torch.no_grad():
        one, other, both = (layer(each)[0] for each in (x, y, x + y))
    return float((one + other - both).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The distribution of the moduli, and a ring."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, plane = paper.subplots(1, 2, width_ratios=[1.6, 1])
    edges = np.linspace(0, 1.2, 25).tolist()
    axes.hist(finding.data["moduli"], edges, density=True, color=MODEL, alpha=0.35,
              label="eigenvalues")  # fmt: skip
    axes.plot([0, 1, 1], [0, 2, 0], color=MODEL, label="2r: r² uniform")
    axes.plot([0, 0, 1, 1], [0, 1, 1, 0], "--", color=LINEAR, lw=1, label="r uniform (printed)")
    axes.set(xlabel="modulus r of an eigenvalue", ylabel="density", title="a Glorot matrix")
    axes.legend(loc="upper left")
    ring, turn = finding.data["ring"], np.linspace(0, 2 * np.pi, 200)
    for radius in (*RING, 1.0):
        plane.plot(radius * np.cos(turn), radius * np.sin(turn), color=INK, lw=0.6)
    plane.plot(ring.real, ring.imag, ".", color=MODEL, ms=2)
    plane.set(xlabel="real", ylabel="imaginary", title=f"an LRU on the ring {RING[0]} to {RING[1]}")
    plane.set_aspect("equal")


claim = Claim(
    id="lru-initialization",
    title="A linear recurrent unit that starts like a Glorot matrix",
    statement=(
        "The eigenvalues of a random matrix with variance 1/n fill the unit disk evenly, so a "
        "diagonal recurrence starts alike if r², not r as often printed, is uniform: the mean "
        "modulus is 2/3. The minGRU is sometimes called an LRU: an LRU is linear in its input, a "
        "minGRU is not, though a scan computes both."
    ),
    formula=(
        r"\lambda = \exp(-e^{\nu} + i \varphi), \quad r = |\lambda| = e^{-e^\nu} \in (0, 1), \quad "
        r"r^2 \sim U(0, 1) \;\Rightarrow\; \mathbb{E} r = \tfrac23"
    ),
    sources=("E53", "M254", "M255"),
    measure=measure,
    reference=(
        "Orvieto et al. (2023), Resurrecting recurrent neural networks for long sequences, section "
        "3.2.1. https://arxiv.org/abs/2303.06349"
    ),
    full={"size": 400, "matrices": 50},
    errata=(
        Erratum(
            "E53",
            "LRU: z = σ(Gx) ⊙ z + (1-σ) ⊙ Vx; r uniform",
            "that is the minGRU; LRU: ζ = Λζ + Cx with r² uniform",
        ),
    ),
    draw=draw,
)
