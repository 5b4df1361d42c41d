"""A graph network reads no farther than its depth, and hardly through a narrow place."""

import math

import networkx
import numpy as np
import torch

from ansatz import networks
from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.graphs._example import batch_of
from ansatz.layers.graphs import SGConv
from ansatz.spec import InputSpec
from ansatz.theory import graphs as theory


def measure(generator: torch.Generator, *, nodes: int = 6, height: int = 6) -> Finding:
    """Derivatives of one node's answer in the features of others, on a path and on a tree."""
    path = networkx.to_numpy_array(networkx.path_graph(nodes))
    diameter = int(theory.diameter(path))
    reach = [read(path, depth, generator) for depth in range(1, diameter + 1)]
    slopes, predicted = [], []
    for r in range(1, height + 1):
        slopes.append(leaf_slope(r, generator))
        predicted.append(1 / math.sqrt(3 * 2) / 4 ** (r - 1))
    error = max(abs(a / b - 1) for a, b in zip(slopes, predicted, strict=True))
    checks = [
        Check(
            "layers that the first node of a path needs to read the last one",
            1 + next((k for k, far in enumerate(reach) if far == diameter), diameter),
            diameter,
            0,
            "whole numbers: the diameter",
            wrong=Wrong("half of them, one from each end", predicted=diameter // 2),
        ),
        Check(
            "nodes beyond K steps that K layers read, over all K",
            sum(far > depth for depth, far in enumerate(reach, 1)),
            0,
            0,
            "whole numbers: derivatives are exactly 0",
            wrong=Wrong(
                "a layer reads two steps", predicted=diameter - 1
            ),
        ),
        Check(
            f"largest relative error of a leaf's influence on the root, heights 1 to {height}",
            error,
            0.0,
            64 * height * 2.0**-52,
            "rounding: 64 eps a layer",
            wrong=Wrong(
                "an equal share of the leaves, 2^-r",
                measured=max(abs(a * 2**r - 1) for r, a in enumerate(slopes, 1)),
            ),
        ),
    ]  # fmt: skip
    table = Table(["height", "leaves", "influence of a leaf"], [
        [r, 2**r, slope] for r, slope in enumerate(slopes, 1)
    ])  # fmt: skip
    return Finding(checks, table, {"slopes": slopes, "predicted": predicted})


def read(A: np.ndarray, depth: int, generator: torch.Generator) -> int:
    """How far from the first node of a path lie those on which its answer depends."""
    spec = InputSpec.graph(4, rows="nodes")
    network = networks.create("gin", spec, 16, generator, width=32, depth=depth).double().eval()
    x = torch.randn(len(A), 4, generator=generator, dtype=torch.float64, requires_grad=True)
    batch = batch_of(A, x)._replace(targets=torch.tensor([0]))
    (slope,) = torch.autograd.grad(network(batch).square().sum(), x)
    return int((slope != 0).any(1).nonzero().max())


def leaf_slope(height: int, generator: torch.Generator) -> float:
    """The derivative of the root of a binary tree in one leaf, through as many layers as levels."""
    tree = networkx.to_numpy_array(networkx.balanced_tree(2, height))
    layer = SGConv(1, 1, steps=height, generator=generator).double()
    torch.nn.init.ones_(layer.lin.weight)
    x = torch.zeros(len(tree), 1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(layer(x, batch_of(tree, x).edges)[0, 0], x)
    return float(slope[-1, 0])


def draw(paper: Figure, finding: Finding) -> None:
    """The influence of a leaf over the height of the tree."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    height = np.arange(1, len(data["slopes"]) + 1)
    axes.semilogy(height, 0.5**height, color=LINEAR, lw=1, ls="--", label="one of 2^r leaves")
    axes.semilogy(height, data["predicted"], color=INK, lw=0.8, label="1 / (√6 · 4^(r-1))")
    axes.semilogy(height, data["slopes"], "o", color=MODEL, label="measured")
    axes.set(xlabel="height r of the tree, and layers", ylabel="influence of a leaf on the root")
    axes.set_title("what many nodes send through few others is squashed")
    axes.legend(loc="lower left")


claim = Claim(
    id="graph-bottleneck",
    title="Depth, diameter and bottleneck",
    statement=(
        "K layers read the nodes up to K steps away and no others, so a network needs as many "
        "layers as the diameter to join any two nodes. Through the trunk of a binary tree of "
        "height r the influence of each of its 2^r leaves on the root falls as 4^-r, faster than "
        "an equal share."
    ),
    formula=(
        r"\frac{\partial h^{(K)}_u}{\partial x_v} = 0 \ \text{if}\ d(u, v) > K, \qquad "
        r"(\bar A^r)_{\text{root}, \text{leaf}} = \frac{1}{\sqrt 6 \cdot 4^{r-1}}"
    ),
    sources=("M307",),
    measure=measure,
    reference=(
        "Alon and Yahav (2021), On the bottleneck of graph neural networks and its practical "
        "implications. https://arxiv.org/abs/2006.05205"
    ),
    full={"nodes": 12, "height": 10},
    draw=draw,
)
