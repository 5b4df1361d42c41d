"""Equivariant: outputs follow the order of the inputs. Invariant: they ignore it."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong


def measure(generator: torch.Generator, *, elements: int = 7, trials: int = 20) -> Finding:
    """Attention under permutations, and its sum and maximum over the elements."""
    X = torch.randn(elements, 4, generator=generator, dtype=torch.float64)
    Q, K, V = torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)

    def attention(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x @ Q, x @ K, x @ V)

    follows, ignores, pooled = [], [], []
    for _ in range(trials):
        order = torch.randperm(elements, generator=generator)
        follows.append(float((attention(X[order]) - attention(X)[order]).abs().max()))
        ignores.append(float((attention(X[order]) - attention(X)).abs().max()))
        for pool in (torch.sum, torch.amax):
            pooled.append(float((pool(attention(X[order]), 0) - pool(attention(X), 0)).abs().max()))
    rounding = 64 * elements * 2.0**-52
    because = "rounding: 64 n eps for an exponential and sums over the elements"
    checks = [
        Check(
            "largest |f(PX) - P f(X)| of attention: equivariance",
            max(follows),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "the order does not influence the output: f(PX) = f(X)",
                measured=max(ignores),
                erratum="E32",
            ),
        ),
        Check(
            "largest change of its sum and its maximum: invariance",
            max(pooled),
            0.0,
            rounding,
            because,
            wrong=Wrong("without pooling", measured=max(ignores)),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="equivariance-or-invariance",
    title="Attention is equivariant, its sum is invariant",
    statement=(
        "Under a new order of the inputs the outputs of attention come in the new order "
        "(equivariance), and their sum or maximum stays the same (invariance). A common slip "
        "explains equivariance as the order not influencing the output, which is invariance."
    ),
    formula=r"f(PX) = P f(X) \;\text{(equivariant)}, \qquad g(PX) = g(X) \;\text{(invariant)}",
    sources=("E32", "M267", "M278"),
    measure=measure,
    reference="Bronstein et al. (2021), Geometric deep learning. https://arxiv.org/abs/2104.13478",
    full={"elements": 100, "trials": 100},
    errata=(
        Erratum(
            "E32",
            "equivariant: the order does not influence the output",
            "that is invariance; equivariant outputs follow the order",
        ),
    ),
)
