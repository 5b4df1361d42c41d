"""Graph convolutions smooth: features of nodes become alike at the rate of an eigenvalue."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import adjacency, edges_of, normalized
from ansatz.layers.graphs.gcn import root_degrees, smooth


def measure(generator: torch.Generator, *, depth: int = 40) -> Finding:
    """The part of a signal that differs from the limit, layer by layer, with and without a skip."""
    A = adjacency()
    edges = edges_of(A)
    x = torch.randn(8, generator=generator, dtype=torch.float64).unsqueeze(1)
    limit = 1 / root_degrees(edges, torch.float64)
    limit = limit / limit.norm()
    mu = float(np.sort(np.abs(np.linalg.eigvalsh(normalized(A))))[-2])
    plain, skipped, first, plain_sizes, skip_sizes = x, x, x, [], []
    for _ in range(depth):
        plain_sizes.append(off(plain, limit))
        skip_sizes.append(off(skipped, limit))
        plain, skipped = smooth(edges, plain), 0.9 * smooth(edges, skipped) + 0.1 * first
    similarity = float(
        torch.nn.functional.cosine_similarity(plain.T * limit.T, limit.T.square(), dim=1).abs()
    )
    floor = (1 - 0.9) / (1 + 0.9)  # the skip's share of the mode that oscillates most
    checks = [
        Check(
            f"share of the differences between nodes that {depth} layers leave",
            off(plain, limit) / plain_sizes[0],
            mu**depth,
            depth * 2.0**-50,
            "the second eigenvalue to the power of the depth, and rounding",
            relation="<=",
            wrong=Wrong("one layer", measured=plain_sizes[1] / plain_sizes[0]),
        ),
        Check(
            f"1 - |cosine| between features after {depth} layers and the roots of the degrees",
            1 - similarity,
            0.0,
            (plain_sizes[0] / float((limit.T @ x).abs()) * mu**depth) ** 2 + 2.0**-40,
            "the square of the remaining part, to the second eigenvalue's power",
            wrong=Wrong(
                "the first layer is like the last",
                measured=1 - float(
                    torch.nn.functional.cosine_similarity(x.T * limit.T, limit.T.square(), dim=1)
                    .abs()
                ),
            ),
        ),
        Check(
            "share of the differences that a skip to the first layer keeps",
            skip_sizes[-1] / skip_sizes[0],
            floor,
            0.0,
            "x ← 0.9 Āx + 0.1 x₀ leaves a mode μ at 0.1 / (1 - 0.9 μ), least at μ = -1",
            relation=">=",
            wrong=Wrong("without the skip", measured=plain_sizes[-1] / plain_sizes[0]),
        ),
    ]  # fmt: skip
    table = Table(["layers", "plain", "with a skip"], [
        [k, plain_sizes[k], skip_sizes[k]] for k in range(0, depth, max(1, depth // 10))
    ])  # fmt: skip
    return Finding(checks, table, {"plain": plain_sizes, "skip": skip_sizes, "rate": mu})


def off(x: torch.Tensor, limit: torch.Tensor) -> float:
    """The length of the part of x that is not along the limit."""
    return float((x - limit * (limit.T @ x)).norm())


def draw(paper: Figure, finding: Finding) -> None:
    """What differs from the limit, over layers."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    plain = np.asarray(data["plain"])
    layers = np.arange(len(plain))
    axes.semilogy(layers, plain, "o", color=MODEL, ms=4, label="graph convolutions")
    rate = float(np.asarray(data["rate"]))
    axes.semilogy(layers, plain[0] * rate**layers, color=INK, lw=0.8, label="the bound μ^K")
    axes.semilogy(layers, data["skip"], "s", color=LINEAR, ms=3, label="with a skip to x")
    axes.set(xlabel="layers", ylabel="what differs between nodes")
    axes.set_title("features of nodes become alike as fast as the second eigenvalue says")
    axes.legend(loc="lower left")


claim = Claim(
    id="over-smoothing",
    title="Graph convolutions make nodes alike",
    statement=(
        "Each multiplication by the graph convolution's matrix shrinks what distinguishes the "
        "nodes, but for their degrees, by its second eigenvalue. After many layers the features "
        "are those of the degrees alone. A skip to the first layer keeps a share of the "
        "differences at any depth."
    ),
    formula=(
        r"\bigl\| \bar A^K x - u u^\top x \bigr\| \le \mu^K \|x\|, \qquad "
        r"u \propto \tilde d^{1/2}, \quad \mu = \max_{\lambda \ne 1} |\lambda(\bar A)|"
    ),
    sources=("M307",),
    measure=measure,
    reference=(
        "Oono and Suzuki (2020), Graph neural networks exponentially lose expressive power for "
        "node classification, theorem 1. https://arxiv.org/abs/1905.10947"
    ),
    full={"depth": 80},
    draw=draw,
)
