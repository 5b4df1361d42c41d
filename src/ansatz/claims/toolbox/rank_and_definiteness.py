"""Ranks of products of matrices, and quadratic forms that are never negative."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL

PRIME = 1_000_003


def measure(
    generator: torch.Generator, *, pairs: int = 60, n: int = 6, vectors: int = 500
) -> Finding:
    """Whole-number matrices, whose rank is found exactly; random symmetric ones, by their forms."""
    found = ranks(pairs, n, generator)
    A = torch.randn(pairs, n, n, generator=generator, dtype=torch.float64)
    gram, symmetric = A.mT @ A, A + A.mT
    x = torch.randn(vectors, n, generator=generator, dtype=torch.float64)
    least = torch.einsum("vi,mij,vj->mv", x, gram, x).amin(1)
    # A symmetric matrix with positive entries alone, and a form that is negative.
    positive = symmetric.abs()
    worst = torch.linalg.eigh(positive)[1][:, :, 0]
    negative = torch.einsum("mi,mij,mj->m", worst, positive, worst)
    signs = form_signs(symmetric, vectors, generator)
    size = float(gram.abs().max()) * n * float(x.square().sum(1).max())
    checks = [
        Check(
            "largest rank(AB) - min(rank A, rank B)",
            int((found[:, 2] - found[:, :2].min(1)).max()),
            0,
            0,
            "whole numbers, by elimination modulo a prime",
            relation="<=",
            wrong=Wrong("below the minimum by 1 at least", predicted=-1),
        ),
        Check(
            "smallest rank(AB) - (rank A + rank B - n), Sylvester's lower bound",
            int((found[:, 2] - found[:, :2].sum(1) + n).min()),
            0,
            0,
            "whole numbers",
            relation=">=",
            wrong=Wrong(
                "rank(AB) = min(rank A, rank B)",
                measured=int((found[:, 2] - found[:, :2].min(1)).min()),
            ),
        ),
        Check(
            "matrices whose AᵀA has another rank than A",
            int((found[:, 3] != found[:, 0]).sum()),
            0,
            0,
            "whole numbers",
        ),
        Check(
            "smallest xᵀAᵀAx",
            float(least.min()),
            0.0,
            n**2 * EPS * size,
            "rounding: n² eps × size",
            relation=">=",
            wrong=Wrong("positive entries for a positive form", measured=float(negative.min())),
        ),
        Check(
            "matrices whose smallest eigenvalue and form disagree in sign",
            signs,
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "the sign of the trace",
                measured=form_signs(symmetric, vectors, generator, trace=True),
            ),
        ),
    ]
    head = ["rank A", "rank B", "rank AB", "rank AᵀA"]
    return Finding(checks, Table(head, found.tolist()), {"n": n})


def ranks(pairs: int, n: int, generator: torch.Generator) -> np.ndarray:
    """(rank A, rank B, rank AB, rank AᵀA) of random matrices, some products zero by design."""
    rows = []
    for i in range(pairs):
        a, b = (int(torch.randint(1, n + 1, (), generator=generator)) for _ in range(2))
        A = _of_rank(a, n, generator)
        B = _of_rank(b, n, generator)
        if i % 3 == 0:  # the row space of A beside the column space of B, as far as there is room
            A[:, a:], B[: n - b] = 0, 0
        rows.append([exact_rank(M) for M in (A, B, A @ B, A.T @ A)])
    return np.array(rows)


def _of_rank(r: int, n: int, generator: torch.Generator) -> np.ndarray:
    left = torch.randint(-3, 4, (n, r), generator=generator)
    return (left @ torch.randint(-3, 4, (r, n), generator=generator)).numpy()


def exact_rank(M: np.ndarray) -> int:
    """By elimination modulo a prime far above all minors' factors: no rounding at all."""
    M, rank = M.astype(object) % PRIME, 0
    for column in range(M.shape[1]):
        pivot = next((i for i in range(rank, len(M)) if M[i, column]), None)
        if pivot is None:
            continue
        M[[rank, pivot]] = M[[pivot, rank]]
        M[rank] = M[rank] * pow(int(M[rank, column]), -1, PRIME) % PRIME
        for i in range(rank + 1, len(M)):
            M[i] = (M[i] - M[i, column] * M[rank]) % PRIME
        rank += 1
    return rank


def form_signs(M: Tensor, vectors: int, generator: torch.Generator, *, trace: bool = False) -> int:
    """Counts how often "λ ≥ 0" (or "trace ≥ 0") and "no xᵀMx < 0" disagree."""
    lowest = torch.linalg.eigvalsh(M)[:, 0]
    shift = torch.where(torch.arange(len(M)) % 2 == 0, 1 - lowest, torch.zeros_like(lowest))
    M = M + shift[:, None, None] * torch.eye(M.shape[-1], dtype=M.dtype)  # half are definite
    x = torch.randn(vectors, M.shape[-1], generator=generator, dtype=torch.float64)
    for _ in range(50):  # descend: power iteration on cI - M finds the lowest direction
        c = torch.linalg.matrix_norm(M, 2)[:, None, None]
        x = x if x.ndim == 3 else x[:8].expand(len(M), -1, -1)
        x = torch.nn.functional.normalize(c * x - x @ M, dim=-1)
    negative = (torch.einsum("mvi,mij,mvj->mv", x, M, x) < 0).any(1)
    is_negative = (
        M.diagonal(dim1=1, dim2=2).sum(1) < 0 if trace else torch.linalg.eigvalsh(M)[:, 0] < 0
    )
    return int((is_negative != negative).sum())


def draw(paper: Figure, finding: Finding) -> None:
    """Rank of the product between its two bounds."""
    assert finding.table is not None
    axes = paper.subplots()
    found, n = np.array(finding.table.rows), finding.data["n"]
    order = np.lexsort((found[:, 2], np.maximum(found[:, :2].sum(1) - n, 0), found[:, :2].min(1)))
    found = found[order]
    place = np.arange(len(found))
    upper, lower = found[:, :2].min(1), np.maximum(found[:, :2].sum(1) - n, 0)
    axes.fill_between(place, lower, upper, step="mid", color=INK, alpha=0.2, lw=0)
    axes.step(place, upper, where="mid", color=LINEAR, label="min(rank A, rank B)")
    axes.step(place, lower, where="mid", color=INK, label="rank A + rank B − n")
    axes.plot(place, found[:, 2], "o", color=MODEL, label="rank AB")
    axes.set(xlabel="pair of matrices, sorted", ylabel="rank")
    axes.set_title("a product has at most the smaller rank, and often less")
    axes.legend(loc="upper left")


claim = Claim(
    id="rank-and-definiteness",
    title="Ranks of products, signs of forms",
    statement=(
        "The rank of a product is at most the smaller of the ranks of its factors, and may be "
        "less; AᵀA has the rank of A, and its form is never negative. A symmetric matrix has a "
        "form without negative values if and only if it has no negative eigenvalue."
    ),
    formula=(
        r"\mathrm{rank}(AB) \le \min(\mathrm{rank}\,A, \mathrm{rank}\,B), \qquad "
        r"x^\top M x \ge 0 \;\; \forall x \iff \lambda_{\min}(M) \ge 0"
    ),
    sources=("M035",),
    measure=measure,
    reference="Horn and Johnson (2013), Matrix Analysis, sections 0.4 and 7.1.",
    full={"pairs": 300, "n": 9},
    draw=draw,
)
