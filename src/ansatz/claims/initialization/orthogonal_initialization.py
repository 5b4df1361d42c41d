"""Orthogonal weights preserve every norm; their eigenvalues lie on the unit circle."""

import math

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.initialization._signal import mean_squares
from ansatz.layers import initializers


def measure(
    generator: torch.Generator, *, width: int = 20, depth: int = 30, matrices: int = 60
) -> Finding:
    """Norms through linear layers, singular values, and the real ones among the eigenvalues."""
    fill = initializers.get("orthogonal")
    drawn = [
        fill(torch.empty(width, width, dtype=torch.float64), generator=generator)
        for _ in range(matrices)
    ]
    W = torch.stack(drawn)
    singular, eigen = torch.linalg.svdvals(W), torch.linalg.eigvals(W)
    real = (eigen.imag.abs() < 1e-9).sum(1)
    sign = torch.linalg.det(W).sign()
    # det = 1 on an even width: no real eigenvalue, almost surely; det = -1: exactly 1 and -1.
    expected = torch.where(sign > 0, 0, 2) if width % 2 == 0 else torch.ones_like(sign)
    settings = {"networks": 20, "depth": depth, "width": width, "generator": generator}
    kept = mean_squares("orthogonal", activation="identity", **settings)  # type: ignore[arg-type]
    loose = mean_squares("lecun_normal", activation="identity", **settings)  # type: ignore[arg-type]
    rounding = 16 * width * EPS
    checks = [
        Check(
            f"largest change of |h|² over {depth} layers",
            float((kept - 1).abs().max()),
            0.0,
            depth * rounding,
            "rounding: 16 eps times the width, per layer",
            wrong=Wrong(
                "normal weights of the same variance", measured=float((loose - 1).abs().max())
            ),
        ),
        Check(
            "largest deviation of a singular value from 1",
            float((singular - 1).abs().max()),
            0.0,
            rounding,
            "rounding: 16 eps times the width",
        ),
        Check(
            "largest distance of an eigenvalue to 1 or -1",
            float(torch.minimum((eigen - 1).abs(), (eigen + 1).abs()).max()),
            math.sqrt(2),
            # The angles of matrices * width / 2 pairs are evenly spaced: one is near π/2.
            10 * math.pi / (matrices * width / 2),
            "the nearest of the evenly spaced angles to π/2: within 10 mean spacings, but for e⁻¹⁰",
            wrong=Wrong("the eigenvalues are ±1, as printed", predicted=0.0, erratum="E49"),
        ),
        Check(
            "largest deviation of an eigenvalue from the unit circle",
            float((eigen.abs() - 1).abs().max()),
            0.0,
            rounding,
            "rounding: a normal matrix has well conditioned eigenvalues",
        ),
        Check(
            "matrices whose number of real eigenvalues is not that of their determinant",
            float((real != expected).sum()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong("all are real", measured=float((real != width).sum())),
        ),
    ]
    table = Table(
        ["determinant", "matrices", "real eigenvalues of each"],
        [
            [s, int((sign == s).sum()), float(real[sign == s].double().mean())]
            for s in (1, -1)
            if (sign == s).any()
        ],
    )
    return Finding(checks, table, {"eigen": eigen, "kept": kept, "loose": loose})


def draw(paper: Figure, finding: Finding) -> None:
    """Eigenvalues on the circle; norms through depth."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    angle = torch.linspace(0, 2 * math.pi, 200)
    left.plot(angle.cos(), angle.sin(), color=INK, lw=0.8)
    some = finding.data["eigen"][:4].flatten()
    left.plot(some.real, some.imag, "o", color=MODEL, label="eigenvalues")
    left.plot([-1, 1], [0, 0], "x", color=LINEAR, markersize=8, mew=2, label="±1, as printed")
    left.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    left.set_title("eigenvalues of 4 matrices")
    left.legend(loc="center", fontsize=7.5)
    depth = torch.arange(finding.data["kept"].shape[1])
    right.plot(depth, finding.data["loose"].T, color=LINEAR, lw=0.6, alpha=0.7)
    right.plot(depth, finding.data["kept"].T, color=MODEL, lw=2)
    right.plot([], [], color=LINEAR, label="normal, σ² = 1/n: 20 networks")
    right.plot([], [], color=MODEL, label="orthogonal: 20 networks")
    right.set(xlabel="linear layers passed", ylabel="mean square of the signal")
    right.set_title("every single norm is preserved")
    right.legend(loc="lower left", fontsize=7.5)
    logarithmic(right.yaxis)


claim = Claim(
    id="orthogonal-initialization",
    title="Orthogonal weights preserve every norm",
    statement=(
        "Orthogonal weights preserve the norm of every signal exactly, through any number of "
        "linear layers, where normal weights preserve it on average only. All singular values are "
        "1. The eigenvalues are often said to be ±1, but they lie on the unit circle in complex "
        "pairs: a matrix of even size has no real one if its determinant is 1, and two if it is -1."
    ),
    formula=(
        r"W^\top W = I \;\Rightarrow\; \|Wx\| = \|x\|, \quad \sigma_i(W) = 1, \quad "
        r"|\lambda_i(W)| = 1,\; \lambda_i \in \mathbb{C}"
    ),
    sources=("M146", "E49"),
    measure=measure,
    reference=(
        "Saxe, McClelland and Ganguli (2014), Exact solutions to the nonlinear dynamics of "
        "learning in deep linear neural networks. https://arxiv.org/abs/1312.6120"
    ),
    full={"width": 100, "depth": 200, "matrices": 500},
    errata=(
        Erratum(
            "E49",
            "an orthogonal matrix has the eigenvalues ±1",
            "its singular values are 1; its eigenvalues lie on the complex unit circle",
        ),
    ),
    draw=draw,
)
