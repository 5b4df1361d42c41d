"""Colour refinement cannot distinguish a hexagon from two triangles, nor can a graph network."""

from itertools import permutations

import numpy as np
import torch

from ansatz import networks
from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import batch_of
from ansatz.spec import InputSpec
from ansatz.theory.graphs import same_colours

HEXAGON = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0))
TRIANGLES = ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3))
PATH = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))


def measure(generator: torch.Generator, *, layers: int = 3) -> Finding:
    """The test's verdicts, all 720 renamings, and the read-out of a random network."""
    hexagon, triangles, path = graph(HEXAGON), graph(TRIANGLES), graph(PATH)
    network = (
        networks.create("gcn", InputSpec.graph(4), 4, generator, width=8, depth=layers)
        .double()
        .eval()
    )
    outputs = [read_out(A, network) for A in (hexagon, triangles, path)]
    order = torch.randperm(6, generator=generator).numpy()
    renamed = hexagon[order][:, order]
    alike = same_colours(hexagon, triangles)
    checks = [
        Check(
            "isomorphisms between a hexagon and two triangles",
            isomorphisms(hexagon, triangles),
            0,
            0,
            "all 720 renamings were tried",
            wrong=Wrong(
                "colour refinement decides isomorphism", measured=float(alike), erratum="E58"
            ),
        ),
        Check(
            "whether renamed graphs get the same colours",
            float(same_colours(hexagon, renamed)),
            1.0,
            0.0,
            "yes or no: equal colours are necessary",
            wrong=Wrong("a path for the hexagon", measured=float(same_colours(hexagon, path))),
        ),
        Check(
            "difference of a graph network between hexagon and triangles",
            float(np.abs(outputs[0] - outputs[1]).max()),
            0.0,
            2.0**-52 * 64 * layers * float(np.abs(outputs[0]).max()),
            "rounding: 64 eps per layer",
            wrong=Wrong("as from a path", measured=float(np.abs(outputs[0] - outputs[2]).max())),
        ),
    ]
    return Finding(checks)


def graph(edges: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The adjacency of six nodes."""
    A = np.zeros((6, 6))
    for one, other in edges:
        A[one, other] = A[other, one] = 1
    return A


def isomorphisms(A: np.ndarray, B: np.ndarray) -> int:
    """The number of renamings that map A to B."""
    return sum(
        bool((A[np.ix_(order, order)] == B).all())
        for order in (list(each) for each in permutations(range(6)))
    )


def read_out(A: np.ndarray, network: torch.nn.Module) -> np.ndarray:
    """The answer of a network of graph convolutions from constant features."""
    with torch.no_grad():
        found: np.ndarray = network(batch_of(A, torch.ones(6, 4, dtype=torch.float64))).numpy()
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """The two graphs; every node has two neighbours that have two neighbours."""
    from ansatz.figures.style import INK, MODEL

    left, right = paper.subplots(1, 2)
    angle = np.pi / 3 * np.arange(6)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    turn = 2 * np.pi / 3 * np.arange(3)
    corner = np.column_stack([np.cos(turn), np.sin(turn)])
    pair = np.concatenate([0.8 * corner - [1, 0], 0.8 * corner + [1, 0]])
    for axes, place, edges, name in (
        (left, ring, HEXAGON, "hexagon"),
        (right, pair, TRIANGLES, "two triangles"),
    ):
        for one, other in edges:
            axes.plot(*place[[one, other]].T, color=INK, lw=1)
        axes.plot(*place.T, "o", color=MODEL, ms=10)
        axes.set(aspect="equal", xlabel=name, xticks=[], yticks=[])
        axes.set(xlim=(-2, 2), ylim=(-1.2, 1.2))
        axes.spines[:].set_visible(False)
    paper.suptitle(
        "one colour for all nodes, and still no renaming turns one into the other",
        x=0.01,
        ha="left",
        fontsize=9.5,
    )


claim = Claim(
    id="weisfeiler-lehman",
    title="Colour refinement is necessary for isomorphism, not sufficient",
    statement=(
        "Isomorphic graphs get the same colours, but so do a hexagon and two triangles, which are "
        "not isomorphic; a graph network without further features gives both the same output. A "
        "common slip is to say that the test decides whether an isomorphism exists."
    ),
    formula=r"G \cong H \;\Rightarrow\; \mathrm{WL}(G) = \mathrm{WL}(H), \qquad \not\Leftarrow",
    sources=("E58", "M310", "M311"),
    measure=measure,
    reference="Morris et al. (2019), Weisfeiler and Leman go neural. https://arxiv.org/abs/1810.02244",
    full={"layers": 20},
    errata=(Erratum("E58", "decides whether an isomorphism exists", "a necessary condition only"),),
    draw=draw,
)
