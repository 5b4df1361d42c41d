"""An RBF kernel becomes constant for small gamma, and the identity for large."""

import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.kernels import RBF


def measure(generator: torch.Generator, *, rows: int = 20) -> Finding:
    """The kernel at both ends, and its smallest eigenvalue."""
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    squares = torch.cdist(x, x) ** 2

    def kernel(gamma: float) -> torch.Tensor:
        return RBF(length=(2 * gamma) ** -0.5)(x)

    small, large = kernel(1e-6), kernel(1e4)
    far = float(squares.max())
    nearest = float((squares + torch.eye(rows, dtype=torch.float64) * 1e9).min())
    checks = [
        Check(
            "largest distance from the constant kernel at gamma = 1e-6",
            float((1 - small).max()),
            0.0,
            1e-6 * far,
            "1 - exp(-z) is at most z",
            wrong=Wrong("the identity for small gamma", measured=float(small.triu(1).max())),
        ),
        Check(
            "largest entry off the diagonal at gamma = 1e4",
            float((large - torch.eye(rows, dtype=torch.float64)).abs().max()),
            0.0,
            float(torch.tensor(-1e4 * nearest).exp()) + 2.0**-52,
            "exp(-gamma d²) of the nearest rows, and rounding",
            wrong=Wrong("constant for large gamma", measured=1.0),
        ),
        Check(
            "smallest eigenvalue at gamma = 0.5",
            float(torch.linalg.eigvalsh(kernel(0.5)).min()),
            0.0,
            rows * 2.0**-52,
            "rounding",
            ">=",
            wrong=Wrong(
                "exp(+gamma d²)",
                measured=float(torch.linalg.eigvalsh((0.5 * squares).exp()).min()),
            ),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="rbf-limits",
    title="The limits of the RBF kernel",
    statement=(
        "exp(-γ |x - x'|²) is positive semidefinite; as γ falls to 0 it becomes constant, and as "
        "γ grows it becomes the identity, which knows nothing between rows."
    ),
    formula=r"k(x, x') = e^{-\gamma \|x - x'\|^2}, \quad K \succeq 0",
    sources=("M349",),
    measure=measure,
    reference=(
        "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 4.2.1."
    ),
)
