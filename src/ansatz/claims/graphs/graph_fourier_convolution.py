"""Convolution on a graph: a product of graph Fourier transforms."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.graphs._example import adjacency, laplacian
from ansatz.theory.graphs import fourier


def measure(generator: torch.Generator, *, pairs: int = 5) -> Finding:
    """Commutes, keeps lengths, and is a polynomial of the Laplacian where the filter is one."""
    L = laplacian(adjacency())
    eigenvalues, U = basis = fourier(adjacency())
    x, y = torch.randn(2, pairs, 8, generator=generator, dtype=torch.float64).numpy()
    alpha = torch.randn(4, generator=generator, dtype=torch.float64).numpy()
    swap = max(
        np.abs(basis.convolve(a, b) - basis.convolve(b, a)).max() for a, b in zip(x, y, strict=True)
    )
    printed_swap = max(
        np.abs(printed(U, a, b) - printed(U, b, a)).max() for a, b in zip(x, y, strict=True)
    )
    shape = U @ np.polynomial.polynomial.polyval(eigenvalues, alpha)  # y with Uᵀy = p(λ)
    direct = sum(a * np.linalg.matrix_power(L, k) for k, a in enumerate(alpha)) @ x[0]
    size = float(np.abs(direct).max() + np.abs(alpha).sum() * eigenvalues[-1] ** 3)
    rounding = 64 * 2.0**-52
    fits = U.shape[1] == y[:1].shape[0]  # U, eight columns, times the row yᵀ
    checks = [
        Check(
            "largest difference of x * y and y * x",
            float(swap),
            0.0,
            rounding * float(np.abs(x).max() * np.abs(y).max()),
            "rounding: 64 eps for three products of eight terms",
            wrong=Wrong("U(Uᵀx ⊙ Uy)", measured=float(printed_swap), erratum="E38"),
        ),
        Check(
            "largest difference from p(L)x for a filter with Uᵀy = p(λ)",
            float(np.abs(basis.convolve(x[0], shape) - direct).max()),
            0.0,
            rounding * size,
            "rounding: 64 eps times the size of L³",
            wrong=Wrong(
                "U(Uᵀx ⊙ Uy)",
                measured=float(np.abs(printed(U, x[0], shape) - direct).max()),
                erratum="E38",
            ),
        ),
        Check(
            "whether the shapes of the product fit",
            float(U.T.shape[1] == y[0].shape[0]),
            1.0,
            0.0,
            "yes or no",
            wrong=Wrong("U times the row yᵀ", measured=float(fits), erratum="E38"),
        ),
        Check(
            "largest relative change of length by the transform (Parseval)",
            float(np.abs(np.linalg.norm(x @ U, axis=1) / np.linalg.norm(x, axis=1) - 1).max()),
            0.0,
            rounding,
            "rounding: 64 eps",
        ),
    ]
    return Finding(checks)


def printed(U: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As printed, with yᵀ read as y so that shapes fit at all."""
    found: np.ndarray = U @ ((U.T @ x) * (U @ y))
    return found


claim = Claim(
    id="graph-fourier-convolution",
    title="Convolution on a graph by its Fourier transform",
    statement=(
        "With the eigenvectors U of the Laplacian, U(Uᵀx ⊙ Uᵀy) commutes in x and y, the transform "
        "preserves lengths, and a filter with spectrum p(λ) acts as p(L). A common slip has Uyᵀ in "
        "place of Uᵀy: the shapes do not fit, and nothing commutes."
    ),
    formula=r"x * y = U (U^\top x \odot U^\top y), \qquad L = U \Lambda U^\top",
    sources=("E38", "M314", "M315"),
    measure=measure,
    reference="Shuman et al. (2013), Signal processing on graphs. https://arxiv.org/abs/1211.0053",
    full={"pairs": 200},
    errata=(Erratum("E38", "U(Uᵀx ⊙ Uyᵀ)", "U(Uᵀx ⊙ Uᵀy)"),),
)
