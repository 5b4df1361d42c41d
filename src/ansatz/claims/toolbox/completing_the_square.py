"""A quadratic with a symmetric matrix is a square around its stationary point."""

import torch
from torch import Tensor
from torch.linalg import matrix_norm, vector_norm

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.finding import EPS


def measure(generator: torch.Generator, *, instances: int = 300, d: int = 6) -> Finding:
    """Random symmetric matrices of both signs; then definite ones, minimised by conjugate steps."""
    A, b, x = (
        torch.randn(instances, *s, generator=generator, dtype=torch.float64)
        for s in ((d, d), (d,), (d,))
    )
    M = A + A.mT
    right, wrong, skew = (
        error(M, b, x),
        error(M, b, x, sign=1),
        error(A, b, x),
    )
    lowest, promised, steps = minimum(A @ A.mT + torch.eye(d, dtype=torch.float64), b)
    # A residual of a few eps per step, amplified by the condition, squared in the value.
    size = promised.abs().max()
    checks = [
        Check(
            f"largest error over {instances} symmetric matrices, over its rounding bound",
            float(right.max()),
            0.0,
            1.0,
            "rounding: d eps for each product, times the condition of M for the solution",
            wrong=Wrong("plus bᵀM⁻¹b", measured=float(wrong.max())),
        ),
        Check(
            "the same, where the wrong one takes M without its transpose",
            float(right.max()),
            0.0,
            1.0,
            "rounding, as above",
            wrong=Wrong("the symmetry of M dropped", measured=float(skew.min())),
        ),
        Check(
            "minimum found by conjugate gradients, less -bᵀM⁻¹b",
            float((lowest - promised).abs().max() / size),
            0.0,
            d * steps * EPS * float(torch.linalg.cond(A @ A.mT + torch.eye(d)).max()),
            f"rounding of {steps} steps in {d} dimensions, times the condition",
            wrong=Wrong("half of it", measured=float((lowest - promised / 2).abs().max() / size)),
        ),
    ]
    return Finding(checks)


def error(M: Tensor, b: Tensor, x: Tensor, sign: int = -1) -> Tensor:
    """The difference of the two sides, over a bound on their rounding."""
    centre = torch.linalg.solve(M, b)
    left = _form(M, x) - 2 * (b * x).sum(-1)
    right = _form(M, x - centre) + sign * (b * centre).sum(-1)
    size = matrix_norm(M, 2) * (vector_norm(x, dim=-1) + vector_norm(centre, dim=-1)) ** 2
    return (left - right).abs() / (4 * b.shape[-1] * EPS * size * torch.linalg.cond(M))


def _form(M: Tensor, x: Tensor) -> Tensor:
    return torch.einsum("...i,...ij,...j->...", x, M, x)


def minimum(M: Tensor, b: Tensor) -> tuple[Tensor, Tensor, int]:
    """The lowest xᵀMx - 2bᵀx that conjugate gradients find, -bᵀM⁻¹b, and the steps."""
    steps = 4 * b.shape[-1]
    x, r = torch.zeros_like(b), b.clone()
    p = r
    for _ in range(steps):
        Mp = (M @ p.unsqueeze(-1)).squeeze(-1)
        rr = (r * r).sum(-1, keepdim=True)
        a = rr / (p * Mp).sum(-1, keepdim=True).clamp(min=1e-300)
        x, r = x + a * p, r - a * Mp
        p = r + (r * r).sum(-1, keepdim=True) / rr.clamp(min=1e-300) * p
    inverse = torch.linalg.inv(M)
    return _form(M, x) - 2 * (b * x).sum(-1), -_form(inverse, b), steps


claim = Claim(
    id="completing-the-square",
    title="Completing the square",
    statement=(
        "For a symmetric invertible M the quadratic xᵀMx - 2bᵀx is a square around M⁻¹b less the "
        "constant bᵀM⁻¹b, which for a positive definite M is its lowest value. Without symmetry "
        "the identity is false."
    ),
    formula=(
        r"x^\top M x - 2 b^\top x = (x - M^{-1} b)^\top M (x - M^{-1} b) - b^\top M^{-1} b, "
        r"\qquad M = M^\top"
    ),
    sources=("M023",),
    measure=measure,
    reference="Boyd and Vandenberghe (2004), Convex Optimization, appendix A.5.",
    full={"instances": 3000, "d": 20},
)
