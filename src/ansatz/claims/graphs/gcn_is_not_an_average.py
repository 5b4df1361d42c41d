"""The symmetric normalisation of a graph convolution does not average over neighbours."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import adjacency, normalized


def measure(generator: torch.Generator, *, depth: int = 60) -> Finding:
    """The signals that the matrix and the mean leave unchanged, and the limit of many layers."""
    A = adjacency()
    S = normalized(A)
    degree = A.sum(1) + 1
    mean = (A + np.eye(8)) / degree[:, None]
    x = torch.randn(8, generator=generator, dtype=torch.float64).numpy()
    fixed = np.sqrt(degree) / np.linalg.norm(np.sqrt(degree))
    values = np.sort(np.abs(np.linalg.eigvalsh(S)))
    deep = np.linalg.matrix_power(S, depth) @ x
    rounding = 16 * 2.0**-52
    checks = [
        Check(
            "largest |Ā v - v| for v the roots of the degrees",
            float(np.abs(S @ fixed - fixed).max()),
            0.0,
            rounding,
            "rounding: 16 eps for sums of five numbers",
            wrong=Wrong(
                "averages keep a constant signal",
                measured=float(np.abs(S @ np.ones(8) - 1).max()),
                erratum="E36",
            ),
        ),
        Check(
            "largest |row sum - 1| of the true average D⁻¹(A + I)",
            float(np.abs(mean.sum(1) - 1).max()),
            0.0,
            rounding,
            "rounding: 16 eps for sums of five numbers",
            wrong=Wrong(
                "the symmetric matrix averages",
                measured=float(np.abs(S.sum(1) - 1).max()),
                erratum="E36",
            ),
        ),
        Check(
            f"distance to the limit after {depth} layers",
            float(np.linalg.norm(deep - fixed * (fixed @ x))),
            0.0,
            float(values[-2] ** depth * np.linalg.norm(x)) + depth * rounding,
            "over-smoothing: the second eigenvalue to the power of the depth",
            wrong=Wrong(
                "the limit is the mean of the signal",
                measured=float(np.linalg.norm(deep - x.mean())),
            ),
        ),
    ]
    table = Table(["node", "degree + 1", "row sum of Ā", "row sum of the mean"], [
        [i + 1, degree[i], S.sum(1)[i], mean.sum(1)[i]] for i in range(8)
    ])  # fmt: skip
    return Finding(checks, table, {"sums": S.sum(1), "mean": mean.sum(1)})


def draw(paper: Figure, finding: Finding) -> None:
    """Row sums of both matrices."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    nodes = np.arange(1, 9)
    axes.axhline(1, color=INK, lw=0.7)
    axes.plot(nodes, data["sums"], "o", color=MODEL, ms=6, label="D^-½ (A+I) D^-½")
    axes.plot(nodes, data["mean"], "s", color=LINEAR, ms=4, label="D⁻¹ (A+I), the average")
    axes.set(xlabel="node", ylabel="sum of the row", ylim=(0.8, 1.2))
    axes.set_title("rows of the graph convolution do not sum to 1: it is not an average")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="gcn-is-not-an-average",
    title="A graph convolution does not average",
    statement=(
        "The symmetrically normalised matrix leaves the roots of the degrees unchanged, not "
        "constant signals. Its rows sum to between 0.85 and 1.11 on a graph of eight nodes, so to "
        "say that it averages over neighbours is a common slip. After many layers every signal is "
        "proportional to those roots."
    ),
    formula=(
        r"\bar A \tilde d^{1/2} = \tilde d^{1/2}, \qquad \bar A \mathbf{1} \ne \mathbf{1}, \qquad "
        r"\tilde D^{-1} (A + I) \mathbf{1} = \mathbf{1}"
    ),
    sources=("E36", "M303", "M304", "M307"),
    measure=measure,
    reference=(
        "Li, Han and Wu (2018), Deeper insights into graph convolutional networks for "
        "semi-supervised learning, theorem 1. https://arxiv.org/abs/1801.07606"
    ),
    full={"depth": 200},
    errata=(Erratum("E36", "ĀX averages", "rows of Ā do not sum to 1; D⁻¹(A+I) averages"),),
    draw=draw,
)
