"""Graph attention scores an edge by its own features, not by the score itself."""

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.graphs._example import adjacency


def measure(generator: torch.Generator, *, features: int = 3) -> Finding:
    """Row sums, equivariance and the derivative in an edge's feature, on a graph of eight nodes."""
    A = torch.as_tensor(adjacency())

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, V, u = normal(8, features), normal(4, features), normal(9)
    edge = normal(8, 8).requires_grad_()
    attention = attend(x, edge, A, V, u)
    order = torch.randperm(8, generator=generator)
    moved = attend(x[order], edge[order][:, order], A[order][:, order], V, u)
    m, n = A.nonzero()[3].tolist()
    slope = torch.autograd.grad(attention[m, n], edge)[0][m, n]
    step = 2.0**-17  # the third root of eps, where a central difference is most exact
    up, down = edge.detach().clone(), edge.detach().clone()
    up[m, n] += step
    down[m, n] -= step
    blind = torch.cat([u[:-1], torch.zeros(1, dtype=torch.float64)])
    rise, flat = (
        (attend(x, up, A, V, own) - attend(x, down, A, V, own))[m, n] / (2 * step)
        for own in (u, blind)
    )
    rounding = 64 * 2.0**-52
    checks = [
        Check(
            "derivative of the attention of an edge in its feature",
            float(rise),
            float(slope),
            step**2 * float(u[-1].abs() ** 3) + 2.0**-52 / step,
            "central differences: h² times a third derivative below |u|³, and eps / h",
            wrong=Wrong(
                "a score without the edge's features",
                measured=float(flat),
                erratum="E37",
            ),
        ),
        Check(
            "scores that one edge has",
            self_consistent(-1.0, 0.0),
            1,
            0,
            "whole numbers",
            wrong=Wrong(
                "q = ρ(c + 2q), solved for q",
                measured=self_consistent(-1.0, 2.0),
                erratum="E37",
            ),
        ),
        Check(
            "largest |sum over neighbours - 1|",
            float((attention.sum(1) - 1).abs().max().detach()),
            0.0,
            rounding,
            "rounding: 64 eps for an exponential and a sum",
        ),
        Check(
            "largest attention to a node that is not a neighbour",
            float(attention[A == 0].max().detach()),
            0.0,
            0.0,
            "the exponential of minus infinity",
        ),
        Check(
            "largest change under a new order of the nodes",
            float((moved - attention[order][:, order]).abs().max().detach()),
            0.0,
            rounding,
            "rounding: 64 eps for an exponential and a sum",
        ),
    ]
    return Finding(checks)


def attend(x: Tensor, edge: Tensor, A: Tensor, V: Tensor, u: Tensor) -> Tensor:
    """softmax over neighbours n of ρ(uᵀ[V x_m, V x_n, x_mn]), ``(N, N)``."""
    own, other, feature = u[:4], u[4:8], u[8]
    mapped = x @ V.T
    score = leaky_relu((mapped @ own)[:, None] + (mapped @ other)[None, :] + feature * edge, 0.2)
    return torch.where(A > 0, score, -torch.inf).softmax(1)


def self_consistent(rest: float, weight: float) -> int:
    """The number of solutions q = ρ(rest + weight q): weight 0 is right, others as printed.

    On each of the two pieces of ρ the equation is linear; a solution must lie on its own piece.
    """
    count = 0
    for slope, positive in ((1.0, True), (0.2, False)):
        q = slope * rest / (1 - slope * weight)
        count += (rest + weight * q > 0) == positive
    return count


claim = Claim(
    id="graph-attention",
    title="Graph attention uses the features of an edge",
    statement=(
        "The attention of a node to a neighbour is a softmax of ρ(uᵀ[Vx_m, Vx_n, x_mn]) with the "
        "features x_mn of the edge; it sums to 1 over neighbours and follows a renaming of the "
        "nodes. A common slip has the score q_mn inside its own definition, which then has two "
        "solutions or none, and no edge features."
    ),
    formula=(
        r"a_{mn} = \mathrm{softmax}_{n \in \mathcal{N}(m)}\, \rho\bigl(u^\top "
        r"[V x_m, V x_n, x_{mn}]\bigr)"
    ),
    sources=("E37", "M308"),
    measure=measure,
    reference=(
        "Veličković et al. (2018), Graph attention networks, eq. 3. "
        "https://arxiv.org/abs/1710.10903"
    ),
    full={"features": 30},
    errata=(Erratum("E37", "q_mn = ρ(uᵀ[Vx_m, Vx_n, q_mn])", "ρ(uᵀ[Vx_m, Vx_n, x_mn])"),),
)
