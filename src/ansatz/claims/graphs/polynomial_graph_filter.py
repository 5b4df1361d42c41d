"""A polynomial of the Laplacian: a filter of K steps that needs no eigenvectors."""

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import adjacency, laplacian


def measure(generator: torch.Generator, *, order: int = 2) -> Finding:
    """The filter in space and in the spectrum, its range, and its free coefficients."""
    A = adjacency()
    L = laplacian(A)
    values, U = np.linalg.eigh(L)
    alpha = torch.randn(order + 1, generator=generator, dtype=torch.float64).numpy()
    space = sum(a * np.linalg.matrix_power(L, k) for k, a in enumerate(alpha))
    spectrum = U @ np.diag(sum(a * values**k for k, a in enumerate(alpha))) @ U.T
    flat = U @ np.diag(alpha[1:].sum() * values) @ U.T  # Σ_{k≥1} α_k Λ, no power
    headless = sum(a * np.linalg.matrix_power(L, k) for k, a in enumerate(alpha) if k)
    powers = [np.linalg.matrix_power(L, k).ravel() for k in range(order + 1)]
    distance = shortest_path(A, unweighted=True)
    size = float(np.abs(alpha) @ values[-1] ** np.arange(order + 1))
    rounding = 64 * 2.0**-52 * size
    because = "rounding: 64 eps times Σ|α_k| λ^k"
    checks = [
        Check(
            "largest difference of U p(Λ) Uᵀ and p(L)",
            float(np.abs(spectrum - space).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ α_k Λ, without the power", measured=float(np.abs(flat - space).max()),
                erratum="E39",
            ),
        ),
        Check(
            "largest difference of the sum from k = 0",
            float(np.abs(spectrum - space).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ from k = 1", measured=float(np.abs(spectrum - headless).max()), erratum="E39"
            ),
        ),
        Check(
            "free coefficients: rank of the powers of L",
            int(np.linalg.matrix_rank(np.stack(powers))),
            order + 1,
            0,
            "whole numbers",
            wrong=Wrong("α in R^K", predicted=order, erratum="E39"),
        ),
        Check(
            f"largest weight beyond {order} steps",
            float(np.abs(space[distance > order]).max()),
            0.0,
            0.0,
            "whole-number powers of L are exact",
            wrong=Wrong(
                "as local as one order less",
                measured=float(np.abs(space[distance > order - 1]).max()),
            ),
        ),
    ]  # fmt: skip
    return Finding(checks, data={"distance": distance.ravel(), "weight": np.abs(space).ravel()})


def draw(paper: Figure, finding: Finding) -> None:
    """Weights of the filter over the distance of two nodes."""
    from ansatz.figures.style import INK, MODEL

    axes, data = paper.subplots(), finding.data
    axes.axvline(2.5, color=INK, lw=0.8, ls=":", label="order 2")
    axes.plot(data["distance"], data["weight"], "o", color=MODEL, alpha=0.5, label="|p(L)|, a pair")
    axes.set(xlabel="steps between two nodes", ylabel="weight of the filter")
    axes.set_title("a polynomial filter of order K uses neighbours up to K steps away")
    axes.locator_params(axis="x", integer=True)
    axes.legend()


claim = Claim(
    id="polynomial-graph-filter",
    title="Polynomial filters on a graph are local",
    statement=(
        "A filter p(λ) = Σ α_k λ^k from k = 0 to K acts as p(L), has K + 1 coefficients and uses "
        "neighbours up to K steps away. Common slips are Λ without the power, a sum from k = 1, "
        "and K coefficients."
    ),
    formula=r"U \Bigl( \sum_{k=0}^K \alpha_k \Lambda^k \Bigr) U^\top = \sum_{k=0}^K \alpha_k L^k",
    sources=("E39", "M316"),
    measure=measure,
    reference=(
        "Defferrard, Bresson and Vandergheynst (2016), Convolutional neural networks on graphs "
        "with fast localized spectral filtering, eq. 3. https://arxiv.org/abs/1606.09375"
    ),
    errata=(Erratum("E39", "Σ_{k=1}^K α_k Λ, α in R^K", "Σ_{k=0}^K α_k Λ^k, α in R^(K+1)"),),
    draw=draw,
)
