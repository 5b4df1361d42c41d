"""A deep network without activations is one matrix."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP


def measure(
    generator: torch.Generator, *, widths: tuple[int, ...] = (7, 3, 9, 8), rows: int = 40
) -> Finding:
    """Networks with and without activation, against the affine map found by three probes."""
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    gap, scale = {}, 1.0
    for name in ("identity", "relu"):
        network = MLP(5, 6, widths=widths, activation=name, bias=0.1, generator=generator).double()
        W, b = probe(network)
        with torch.no_grad():
            gap[name] = float((network(x) - x @ W.T - b).abs().max())
        if name == "identity":
            product, rank = multiplied(network), int(torch.linalg.matrix_rank(W))
            difference, scale = float((product - W).abs().max()), norms(network)
    rounding = sum(widths) * EPS * scale * (1 + float(x.abs().max()))
    checks = [
        Check(
            "largest |deep network - one affine map|, activation: none",
            gap["identity"],
            0.0,
            rounding,
            "rounding: sums over all widths, times the product of the matrices' norms",
            wrong=Wrong("with ReLU between the maps", measured=gap["relu"]),
        ),
        Check(
            "largest |W - product of the layers' matrices|",
            difference,
            0.0,
            rounding,
            "rounding, as above",
        ),
        Check(
            "rank of the map",
            rank,
            min(5, 6, *widths),
            0,
            "whole numbers: the narrowest layer",
            wrong=Wrong("that of inputs and outputs", predicted=5),
        ),
    ]
    return Finding(checks, data=sections(widths, generator))


def probe(network: MLP) -> tuple[Tensor, Tensor]:
    """W and b of the affine map through the values at zero and at the unit vectors."""
    with torch.no_grad():
        b = network(torch.zeros(1, 5, dtype=torch.float64))
        return (network(torch.eye(5, dtype=torch.float64)) - b).T, b[0]


def multiplied(network: MLP) -> Tensor:
    """W_L ... W_2 W_1."""
    product = torch.eye(5, dtype=torch.float64)
    for layer in (*network.hidden, network.output):
        product = layer.weight.detach() @ product
    return product


def norms(network: MLP) -> float:
    """The product of the spectral norms."""
    sizes = [
        torch.linalg.matrix_norm(layer.weight.detach(), 2)
        for layer in (*network.hidden, network.output)
    ]
    return float(torch.stack(sizes).clamp(min=1).prod())


def sections(widths: tuple[int, ...], generator: torch.Generator) -> dict[str, Tensor]:
    """For the figure: both kinds of network along a line."""
    t = torch.linspace(-2, 2, 81, dtype=torch.float64)
    ray = torch.randn(5, generator=generator, dtype=torch.float64)
    found = {"t": t}
    for name in ("identity", "relu"):
        network = MLP(
            5, 1, widths=widths, activation=name, bias=0.1, output_scale=1, generator=generator
        ).double()
        with torch.no_grad():
            found[name] = network(t[:, None] * ray)[:, 0]
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """A section through a network with and one without activation."""
    axes = paper.subplots()
    t = finding.data["t"]
    axes.plot(t[::4], finding.data["identity"][::4], "o", color=MODEL, label="five linear layers")
    ends = finding.data["identity"][[0, -1]]
    axes.plot(t[[0, -1]], ends, color=LINEAR, label="one straight line")
    axes.plot(t, finding.data["relu"], "--", color=INK, lw=1, label="with ReLU between them")
    axes.set(xlabel="position along a ray of inputs", ylabel="output")
    axes.set_title("without activations, depth adds nothing")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="deep-linear-network",
    title="Linear layers make one linear layer",
    statement=(
        "A composition of affine maps is an affine map, whose matrix is the product of theirs and "
        "whose rank is at most the narrowest width: depth without activations adds no function and "
        "may only remove some."
    ),
    formula=(
        r"W_L (\cdots W_2 (W_1 x + b_1) + b_2 \cdots) + b_L = W x + b, \qquad W = W_L \cdots W_1"
    ),
    sources=("M042",),
    measure=measure,
    reference="Saxe, McClelland and Ganguli (2014), Exact solutions to the nonlinear dynamics of "
    "learning in deep linear neural networks. https://arxiv.org/abs/1312.6120",
    full={"widths": (60, 40, 4, 40, 60), "rows": 1000},
    draw=draw,
)
