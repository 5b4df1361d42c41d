"""Predictions of nodes follow a new order of the nodes; only those of graphs stay unchanged."""

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.graphs._example import adjacency, edges_of
from ansatz.layers.graphs import GCNConv


def measure(generator: torch.Generator, *, features: int = 3, units: int = 5) -> Finding:
    """Two layers of graph convolution, read out for every node and for the graph."""
    A = adjacency()
    x = torch.randn(len(A), features, generator=generator, dtype=torch.float64)
    first = GCNConv(features, units, generator=generator).double()
    second = GCNConv(units, 2, generator=generator).double()

    @torch.no_grad()
    def nodes(order: torch.Tensor) -> torch.Tensor:
        mine = order.numpy()
        edges = edges_of(A[mine][:, mine])
        return second(torch.tanh(first(x[order], edges)), edges)

    same = torch.arange(len(A))
    order = torch.randperm(len(A), generator=generator)
    while bool((order == same).all()):
        order = torch.randperm(len(A), generator=generator)
    before, after = nodes(same), nodes(order)
    weights = torch.arange(len(A), dtype=torch.float64) / len(A)
    rounding = 64 * 2.0**-52 * float(before.abs().max() + 1)
    because = "rounding: 64 eps for sums in another order"
    checks = [
        Check(
            "largest difference of the nodes' predictions, each node with itself",
            float((after - before[order]).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "they remain unchanged, place by place",
                measured=float((after - before).abs().max()),
                erratum="E66",
            ),
        ),
        Check(
            "largest difference of the graph's prediction, the mean over nodes",
            float((after.mean(0) - before.mean(0)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "a readout that counts places",
                measured=float((weights @ after - weights @ before).abs().max()),
            ),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="node-equivariance",
    title="Node predictions are equivariant, graph predictions invariant",
    statement=(
        "Under a new order of the nodes the predictions of a graph network for its nodes are "
        "reordered with them (equivariance); a common slip says that they remain unchanged, which "
        "is so for the prediction of the whole graph (invariance)."
    ),
    formula=(
        r"f(PX, PAP^\top) = P f(X, A), \qquad "
        r"\tfrac1n 1^\top f(PX, PAP^\top) = \tfrac1n 1^\top f(X, A)"
    ),
    sources=("E66",),
    measure=measure,
    reference=(
        "Maron et al. (2019), Invariant and equivariant graph networks. "
        "https://arxiv.org/abs/1812.09902"
    ),
    full={"features": 30, "units": 50},
    errata=(
        Erratum("E66", "node predictions remain unchanged", "they are reordered with the nodes"),
    ),
)
