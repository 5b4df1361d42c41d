"""Density and clustering agree in random graphs, and differ in networks of acquaintances."""

import networkx
import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import random_graph
from ansatz.theory.graphs import clustering, density


def measure(
    generator: torch.Generator, *, nodes: int = 200, share: float = 0.1, graphs: int = 10
) -> Finding:
    """Both numbers of random graphs, of a ring in which neighbours know each other, and between."""
    dice = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    found = [random_graph(nodes, share, dice) for _ in range(graphs)]
    densities = np.array([density(A) for A in found])
    clusterings = np.array([clustering(A).mean() for A in found])
    possible = nodes * (nodes - 1) / 2
    error = float(np.sqrt(share * (1 - share) / (possible * graphs)))
    ring = networkx.to_numpy_array(networkx.watts_strogatz_graph(nodes, 10, 0.0, seed=0))
    rewired = [
        networkx.to_numpy_array(networkx.watts_strogatz_graph(nodes, 10, p, seed=1))
        for p in (0.01, 0.1, 0.5, 1.0)
    ]
    exact = 3 * (10 - 2) / (4 * (10 - 1))
    rows = [["random", densities.mean(), clusterings.mean()]]
    rows += [["ring", density(ring), clustering(ring).mean()]]
    rows += [
        [f"rewired {p:g}", density(A), clustering(A).mean()]
        for p, A in zip((0.01, 0.1, 0.5, 1.0), rewired, strict=True)
    ]
    spread = float(clusterings.std(ddof=1) / graphs**0.5)
    checks = [
        Check(
            "clustering of a triangle",
            float(clustering(np.ones((3, 3)) - np.eye(3)).mean()),
            1.0,
            0.0,
            "one pair of neighbours, which is joined",
            wrong=Wrong("its density in a pair of triangles", predicted=0.4),
        ),
        Check(
            "density of random graphs",
            float(densities.mean()),
            share,
            4 * error,
            f"4 standard errors of {possible * graphs:.0f} independent pairs",
            wrong=Wrong("twice as dense", predicted=2 * share),
        ),
        Check(
            "clustering of random graphs",
            float(clusterings.mean()),
            share,
            4 * float(np.hypot(spread, error)),
            f"4 standard errors over {graphs} graphs: two neighbours are joined as any two nodes",
            wrong=Wrong("that of a ring of as many neighbours", measured=clustering(ring).mean()),
        ),
        Check(
            "clustering of a ring of ten neighbours each",
            float(clustering(ring).mean()),
            exact,
            64 * 2.0**-52,
            "3 (k - 2) / (4 (k - 1)), whatever the number of nodes",
            wrong=Wrong("its density", measured=density(ring)),
        ),
    ]
    return Finding(checks, Table(["graph", "density", "clustering"], rows))


def draw(paper: Figure, finding: Finding) -> None:
    """Density and clustering of each graph."""
    from ansatz.figures.style import LINEAR, MODEL

    assert finding.table is not None
    axes, rows = paper.subplots(), finding.table.rows
    place = np.arange(len(rows))
    axes.plot(place, [row[1] for row in rows], "s", color=LINEAR, label="density")
    axes.plot(place, [row[2] for row in rows], "o", color=MODEL, label="clustering")
    axes.set_xticks(place, [str(row[0]) for row in rows], rotation=30, ha="right")
    axes.set(ylabel="share of pairs that are joined", ylim=(0, 0.8))
    axes.set_title("in a random graph neighbours know each other no more than others do")
    axes.legend()


claim = Claim(
    id="density-and-clustering",
    title="Density and clustering",
    statement=(
        "The density of a graph is the share of its pairs that are joined, its clustering that of "
        "the pairs of a node's neighbours. Where edges are independent both are the same; on a "
        "ring where each node knows its k nearest, clustering is 3(k - 2) / (4(k - 1)) however "
        "thin the graph is."
    ),
    formula=(
        r"\rho = \frac{|E|}{N (N - 1)}, \qquad c_n = \frac{|\{(l, m): l, m \in N(n), (l, m) \in "
        r"E\}|}{d_n (d_n - 1)}"
    ),
    sources=("M326",),
    measure=measure,
    reference="Watts and Strogatz (1998), Collective dynamics of small-world networks.",
    full={"nodes": 1000, "share": 0.05, "graphs": 20},
    draw=draw,
)
