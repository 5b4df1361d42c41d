"""No line separates exclusive or; two hidden units do."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import version_space

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = np.array([-1.0, 1.0, 1.0, -1.0])
AND = np.array([-1.0, -1.0, -1.0, 1.0])


def measure(generator: torch.Generator) -> Finding:
    """The best margin of a line in a box of weights, and the mistakes of a network by hand."""
    mistakes = int((np.sign(network(CORNERS) - 0.5) != XOR).sum())
    margins = {"xor": version_space(CORNERS, XOR).margin, "and": version_space(CORNERS, AND).margin}
    checks = [
        Check(
            "best margin of a line on XOR",
            margins["xor"],
            0.0,
            1e-10,
            "feasibility tolerance of the linear program",
            wrong=Wrong("XOR were separable, as AND is", predicted=margins["and"], erratum="E67"),
        ),
        Check("mistakes of a network with two hidden units", mistakes, 0, 0, "whole numbers"),
    ]
    table = Table(
        ["x1", "x2", "xor", "network"],
        [[*row, y, f] for row, y, f in zip(CORNERS, XOR, network(CORNERS), strict=True)],
    )
    return Finding(checks, table)


def network(x: np.ndarray) -> np.ndarray:
    """(x1 + x2)₊ - 2 (x1 + x2 - 1)₊: 0, 1, 1, 0 at the corners."""
    total = x.sum(-1)
    return np.maximum(total, 0) - 2 * np.maximum(total - 1, 0)


def draw(paper: Figure, finding: Finding) -> None:
    """The four corners over the network's output on the square between them."""
    axes = paper.subplots()
    side = np.linspace(-0.25, 1.25, 121)
    values = network(np.stack(np.meshgrid(side, side), -1))
    axes.contourf(side, side, values, levels=[-9, 0.5, 9], colors=["#D55E00", "#2080C0"], alpha=0.2)
    for sign, mark, name in ((1, "o", "true"), (-1, "s", "false")):
        axes.plot(*CORNERS[sign == XOR].T, mark, markersize=9, label=f"xor is {name}")
    axes.set(xlabel="first input", ylabel="second input", aspect="equal")
    axes.set_title("two hidden units cut the square twice; a line cuts it once")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="xor",
    title="Exclusive or needs a hidden layer",
    statement=(
        "No weights w, b of a linear threshold unit give exclusive or: the linear program for a "
        "separating line has the margin 0. Two hidden rectified units represent it. A single-layer "
        "perceptron is at times given as an example of the universal approximation theorem: the "
        "theorem needs a hidden layer."
    ),
    formula=(
        r"\nexists (w, b):\; y_i (w^\top x_i + b) > 0 \;\; \forall i, \qquad "
        r"\mathrm{xor}(x) = (x_1 + x_2)_+ - 2 (x_1 + x_2 - 1)_+"
    ),
    sources=("M009", "E67"),
    measure=measure,
    reference="Minsky and Papert (1969), Perceptrons.",
    errata=(
        Erratum(
            "E67",
            "one layer, a perceptron, as example of the width theorem",
            "a hidden layer is needed",
        ),
    ),
    draw=draw,
)
