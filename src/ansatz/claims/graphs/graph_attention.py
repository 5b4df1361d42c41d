"""Graph attention scores an edge by its own features, not by the score itself."""

import copy

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.graphs._example import adjacency, edges_of
from ansatz.layers import Edges
from ansatz.layers.graphs import GATConv


def measure(generator: torch.Generator, *, features: int = 3) -> Finding:
    """Row sums, equivariance and the derivative in an edge's feature, on a graph of eight nodes."""
    A = adjacency()
    edges = edges_of(A)
    layer = GATConv(features, 4, edge_features=1, generator=generator).double()
    x = torch.randn(8, features, generator=generator, dtype=torch.float64)
    edge = torch.randn(len(edges.source), 1, generator=generator, dtype=torch.float64)
    edge.requires_grad_()
    weights, loops = layer.attention(x, edges, edge)
    order = torch.randperm(8, generator=generator)
    moved_edges, place = Edges.sort(order[edges.edge_index], 8)
    moved_x = torch.empty_like(x)
    moved_x[order] = x
    moved = layer.attention(moved_x, moved_edges, edge[place])
    slope = torch.autograd.grad(weights[3, 0], edge, retain_graph=True)[0][3, 0]
    step = 2.0**-17  # the third root of eps, where a central difference is most exact
    jump = torch.zeros_like(edge)
    jump[3] = step
    rise, flat = (
        float(
            own.attention(x, edges, edge.detach() + jump).edges[3, 0].detach()
            - own.attention(x, edges, edge.detach() - jump).edges[3, 0].detach()
        ) / (2 * step)
        for own in (layer, blind(layer))
    )  # fmt: skip
    assert layer.lin_edge is not None
    u = float((layer.lin_edge.weight.flatten() @ layer.att_edge.flatten()).detach().abs())
    sums = torch.zeros_like(loops).index_add(0, edges.destination, weights) + loops
    rounding = 64 * 2.0**-52
    checks = [
        Check(
            "derivative of the attention of an edge in its feature",
            rise,
            float(slope),
            step**2 * u**3 + 2.0**-52 / step,
            "central differences: h² times a third derivative below |u|³, and eps / h",
            wrong=Wrong("a score without the edge's features", measured=flat, erratum="E37"),
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
            "largest |sum over neighbours and the node itself - 1|",
            float((sums - 1).abs().max().detach()),
            0.0,
            rounding,
            "rounding: 64 eps for an exponential and a sum",
            wrong=Wrong("the sum over neighbours alone", measured=float(loops.detach().max())),
        ),
        Check(
            "largest change under a new order of the nodes",
            float((moved.edges - weights[place]).abs().max().detach()),
            0.0,
            rounding,
            "rounding: 64 eps for an exponential and a sum",
        ),
    ]  # fmt: skip
    return Finding(checks)


def blind(layer: GATConv) -> GATConv:
    """The same layer, whose score does not see the features of edges."""
    other = copy.deepcopy(layer)
    torch.nn.init.zeros_(other.att_edge)
    return other


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
        "The attention of a node to a neighbour or itself is a softmax of ρ(uᵀ[Vx_m, Vx_n, x_mn]) "
        "with the features x_mn of the edge; it sums to 1 and follows a renaming of the "
        "nodes. A common slip has the score q_mn inside its own definition, which then has two "
        "solutions or none, and no edge features."
    ),
    formula=(
        r"a_{mn} = \mathrm{softmax}_{n \in \mathcal{N}(m) \cup \{m\}}\, \rho\bigl(u^\top "
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
