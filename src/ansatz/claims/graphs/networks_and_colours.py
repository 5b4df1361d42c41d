"""No network on nodes distinguishes what colour refinement does not; one on pairs does."""

import networkx
import numpy as np
import torch

from ansatz import networks
from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.graphs._example import batch_of
from ansatz.spec import InputSpec
from ansatz.theory.graphs import same_colours

ON_NODES = ("gnn", "gcn", "gat", "gatv2", "graphsage", "gin", "chebnet", "mpnn", "gated_graph")


def measure(generator: torch.Generator, *, draws: int = 2) -> Finding:
    """Answers of random networks on pairs of graphs with equal colours."""
    twins = pairs()
    rows: list[list[object]] = []
    gaps: list[float] = []
    beyond: list[float] = []
    scale = 0.0
    for name in (*ON_NODES, "kgnn"):
        found = []
        for one, other in twins.values():
            values = [answers(name, (one, other), generator) for _ in range(draws)]
            found.append(max(float(np.abs(a - b).max()) for a, b in values))
            scale = max(scale, *(float(np.abs(v).max()) for v in values))
        (beyond if name == "kgnn" else gaps).append(max(found))
        rows.append([name, *found])
    star, path = (
        networkx.to_numpy_array(g) for g in (networkx.star_graph(4), networkx.path_graph(5))
    )
    seen = answers("gin", (star, path), generator)
    equal = [same_colours(*each) for each in twins.values()]
    split = [not same_colours(*each, pairs=True) for each in twins.values()]
    rounding = 2.0**-52 * 1024 * max(scale, 1.0)
    checks = [
        Check(
            f"largest difference of {len(ON_NODES)} networks on nodes, where colours are equal",
            max(gaps),
            0.0,
            rounding,
            "rounding: 1024 eps of the largest answer, over all layers",
            wrong=Wrong("a star and a path", measured=float(np.abs(seen[0] - seen[1]).max())),
        ),
        Check(
            "pairs of graphs with equal colours of nodes",
            sum(equal),
            len(twins),
            0,
            "whole numbers",
            wrong=Wrong("equal colours of pairs", measured=len(twins) - sum(split)),
        ),
        Check(
            "difference of a network on pairs, where colours of nodes are equal",
            max(beyond),
            100 * rounding,
            0.0,
            "a hundred times the rounding",
            relation=">=",
            wrong=Wrong("a network on nodes", measured=max(gaps)),
        ),
    ]
    return Finding(checks, Table(["network", *twins], rows))


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Graphs that are not isomorphic, with equal colours of nodes."""
    triangle = networkx.cycle_graph(3)
    made = {
        "hexagon, two triangles": (
            networkx.cycle_graph(6), networkx.disjoint_union(triangle, triangle)
        ),
        "decalin, bicyclopentyl": (
            networkx.Graph([*((i, (i + 1) % 10) for i in range(10)), (0, 5)]),
            networkx.Graph([
                *((i, (i + 1) % 5) for i in range(5)),
                *((5 + i, 5 + (i + 1) % 5) for i in range(5)), (0, 5),
            ]),
        ),
    }  # fmt: skip
    return {
        name: (networkx.to_numpy_array(one), networkx.to_numpy_array(other))
        for name, (one, other) in made.items()
    }


def answers(
    name: str, graphs: tuple[np.ndarray, ...], generator: torch.Generator
) -> list[np.ndarray]:
    """The answers of one random network of four layers, from constant features."""
    network = networks.create(name, InputSpec.graph(2), 4, generator, width=8, depth=4)
    network = network.double().eval()
    with torch.no_grad():
        return [
            network(batch_of(A, torch.ones(len(A), 2, dtype=torch.float64))).numpy() for A in graphs
        ]


claim = Claim(
    id="networks-and-colours",
    title="Graph networks are as blind as colour refinement",
    statement=(
        "Nine kinds of networks on nodes give the same answer to a hexagon and two triangles, and "
        "to the carbon skeletons of decalin and bicyclopentyl, whatever their weights: these have "
        "equal colours of nodes. A network on pairs of nodes gives different answers, as the "
        "colours of pairs differ."
    ),
    formula=(
        r"\mathrm{WL}_1(G) = \mathrm{WL}_1(H) \;\Rightarrow\; f(G) = f(H) \quad "
        r"\text{for networks on nodes}"
    ),
    sources=("M311", "M312"),
    measure=measure,
    reference=(
        "Morris et al. (2019), Weisfeiler and Leman go neural, theorems 1 and 3. "
        "https://arxiv.org/abs/1810.02244"
    ),
    full={"draws": 10},
)
