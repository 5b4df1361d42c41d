"""The graph convolution's matrix has norm 1 when its degrees count the loops."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import adjacency, laplacian, normalized, random_graph

SPECTRUM = (0, 0.586, 0.764, 2, 2.586, 3.414, 5.236, 5.414)  # to three decimals


def measure(generator: torch.Generator, *, graphs: int = 20, nodes: int = 12) -> Finding:
    """Spectral norms on a graph of eight nodes and on random ones, and a signal through layers."""
    A = adjacency()
    dice = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    right, printed = normalized(A), normalized(A, loops_in_degree=False)
    norms = [np.linalg.norm(normalized(random_graph(nodes, 0.3, dice)), 2) for _ in range(graphs)]
    lonely = random_graph(nodes, 0.3, dice)
    lonely[0] = lonely[:, 0] = 0
    spectrum = np.linalg.eigvalsh(laplacian(A))
    rounding = 8 * nodes * 2.0**-52
    because = "rounding: 8 n eps of an eigenvalue solver"
    checks = [
        Check(
            "norm on a graph of eight nodes",
            float(np.linalg.norm(right, 2)),
            1.0,
            rounding,
            because,
            wrong=Wrong(
                "degrees without the loops",
                measured=float(np.linalg.norm(printed, 2)),
                erratum="E35",
            ),
        ),
        Check(
            f"largest |norm - 1| over {graphs} random graphs",
            float(np.abs(np.array(norms) - 1).max()),
            0.0,
            rounding,
            because,
        ),
        Check(
            "entries that are not numbers, with an isolated node",
            int((~np.isfinite(normalized(lonely))).sum()),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "degrees without the loops",
                measured=int((~np.isfinite(without_loops(lonely))).sum()),
                erratum="E35",
            ),
        ),
        Check(
            "largest difference of the Laplacian's eigenvalues from a table",
            float(np.abs(spectrum - np.array(SPECTRUM)).max()),
            0.0,
            5e-4,
            "the table has three decimals",
            wrong=Wrong(
                "of D + A",
                measured=float(
                    np.abs(np.linalg.eigvalsh(2 * A + laplacian(A)) - np.array(SPECTRUM)).max()
                ),
            ),
        ),
    ]
    x = dice.standard_normal(8)
    layers = range(13)
    growth = {
        name: [float(np.linalg.norm(np.linalg.matrix_power(M, k) @ x)) for k in layers]
        for name, M in (("right", right), ("printed", printed))
    }
    table = Table(["layers", "right", "printed"], [
        [k, growth["right"][k], growth["printed"][k]] for k in layers
    ])  # fmt: skip
    return Finding(checks, table, growth)


def without_loops(A: np.ndarray) -> np.ndarray:
    """As printed; 0 times infinity where a node has no neighbour."""
    with np.errstate(invalid="ignore"):
        return normalized(A, loops_in_degree=False)


def draw(paper: Figure, finding: Finding) -> None:
    """The size of a signal over the layers."""
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    layers = np.arange(len(data["right"]))
    axes.semilogy(
        layers, data["printed"], "x--", color=LINEAR, lw=1, label="degrees of A (printed)"
    )
    axes.semilogy(layers, data["right"], "o-", color=MODEL, label="degrees of A + I")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="graph convolutions", ylabel="norm of the signal")
    axes.set_title("counting the loops in the degrees keeps a signal from growing")
    axes.legend(loc="upper left")


claim = Claim(
    id="gcn-normalization",
    title="The graph convolution's matrix has norm 1",
    statement=(
        "D^(-1/2)(A + I)D^(-1/2) has the spectral norm 1 when D holds the degrees of A + I. A "
        "common slip takes those of A: then the norm is 1.48 on a graph of eight nodes, so that "
        "signals grow with depth, and an isolated node divides by zero."
    ),
    formula=(
        r"\bar A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}, \quad \tilde D = \mathrm{diag}"
        r"\bigl((A + I) \mathbf{1}\bigr) \;\Rightarrow\; \|\bar A\|_2 = 1"
    ),
    sources=("E35", "M296", "M305"),
    measure=measure,
    reference=(
        "Kipf and Welling (2017), Semi-supervised classification with graph convolutional "
        "networks, eq. 2. https://arxiv.org/abs/1609.02907"
    ),
    full={"graphs": 200, "nodes": 60},
    errata=(Erratum("E35", "D = degrees of A", "D = degrees of A + I"),),
    draw=draw,
)
