"""Dense blocks append, highway layers choose; the plain layer and the identity are their ends."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import DenseBlock, Highway, Residual

GATES = (-40.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 40.0)


def measure(generator: torch.Generator, *, d: int = 5, growth: int = 3, depth: int = 6) -> Finding:
    """Features and parameters of dense blocks of all depths; a highway at gates of all biases."""
    x = torch.randn(40, d, generator=generator, dtype=torch.float64)
    counts = [
        [depth_, *dense_counts(x, growth, depth_, generator)] for depth_ in range(1, depth + 1)
    ]
    kept = first_columns(x, growth, depth, generator)
    expected = [d + n * growth for n in range(1, depth + 1)]
    weights = [sum(growth * (d + i * growth + 1) for i in range(n)) for n in range(1, depth + 1)]
    layer = Highway(d, activation="tanh", generator=generator).double()
    with torch.no_grad():
        layer.gate.weight.zero_()
        plain = layer.branch(x)
        shares = [share(layer, x, plain, bias) for bias in GATES]
        layer.gate_bias = -1000.0
        closed = float((layer(x) - x).abs().max())
        layer.gate_bias = 1000.0
        opened = float((layer(x) - plain).abs().max())
        both = residual_gap(layer, x)
    gate = [float(torch.sigmoid(torch.tensor(bias, dtype=torch.float64))) for bias in GATES]
    scale = 8 * EPS * float((x.abs() + plain.abs()).max() / (plain - x).abs().min())
    checks = [
        Check(
            "largest |features of a dense block - (D + L G)|",
            max(abs(row[1] - n) for row, n in zip(counts, expected, strict=True)),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "features that double",
                measured=max(abs(row[1] - d * 2 ** row[0]) for row in counts),
            ),
        ),
        Check(
            "largest |parameters of a dense block - Σ G (D + ℓG + 1)|",
            max(abs(row[2] - n) for row, n in zip(counts, weights, strict=True)),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "each layer reads the last alone",
                measured=max(
                    abs(row[2] - growth * (d + 1) - (row[0] - 1) * growth * (growth + 1))
                    for row in counts
                ),
            ),
        ),
        Check("largest change of the input inside its block", kept, 0.0, 0.0, "exact: appended"),
        Check(
            "highway, gate closed (T = 0): largest |y - x|",
            closed,
            0.0,
            0.0,
            "exact: the sigmoid underflows to 0",
            wrong=Wrong("a gate half open", measured=float((plain - x).abs().max()) / 2),
        ),
        Check(
            "highway, gate open (T = 1): largest |y - plain layer|",
            opened,
            0.0,
            4 * EPS * float((x.abs() + plain.abs()).max()),
            "rounding of the interpolation",
            wrong=Wrong("residual: both gates open", measured=both),
        ),
        Check(
            "highway: largest |share of the way to the plain layer - σ(c)|",
            max(abs(a - b) for a, b in zip(shares, gate, strict=True)),
            0.0,
            scale,
            "rounding: 8 eps × size over the smallest distance",
            wrong=Wrong(
                "tanh(c)",
                measured=max(
                    abs(a - float(torch.tensor(c).tanh()))
                    for a, c in zip(shares, GATES, strict=True)
                ),
            ),
        ),
    ]
    table = Table(["layers", "features", "parameters"], counts)
    return Finding(checks, table, {"share": shares})


def dense_counts(x: Tensor, growth: int, depth: int, generator: torch.Generator) -> tuple[int, int]:
    """Features that come out of a block, and its parameters."""
    block = DenseBlock(x.shape[1], growth, depth=depth, generator=generator).double()
    return block(x).shape[1], sum(p.numel() for p in block.parameters())


def first_columns(x: Tensor, growth: int, depth: int, generator: torch.Generator) -> float:
    """The change of the input columns by a block."""
    block = DenseBlock(x.shape[1], growth, depth=depth, generator=generator).double()
    with torch.no_grad():
        return float((block(x)[:, : x.shape[1]] - x).abs().max())


def share(layer: Highway, x: Tensor, plain: Tensor, bias: float) -> float:
    """The share of the way from x to the plain layer's output, at a bias of the gate."""
    layer.gate_bias = bias
    way = (layer(x) - x) / (plain - x)
    return float(way.mean())


def residual_gap(layer: Highway, x: Tensor) -> float:
    """Carry and transform gate both open are a residual layer: how far from the plain one."""
    residual = Residual(x.shape[1], activation="tanh", init="zeros").double()
    residual.branch.load_state_dict(layer.branch.state_dict())
    return float((residual(x) - layer.branch(x)).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The way of a highway layer between identity and plain layer."""
    axes = paper.subplots()
    c = torch.linspace(-6, 6, 121)
    inner = [(g, s) for g, s in zip(GATES, finding.data["share"], strict=True) if abs(g) <= 6]
    axes.plot(*zip(*inner, strict=True), "o", color=MODEL, label="highway layer")
    axes.plot(c, c.sigmoid(), color=LINEAR, label="σ(c)")
    axes.axhline(0, color=INK, lw=0.7, ls=":")
    axes.axhline(1, color=INK, lw=0.7, ls=":")
    axes.text(-6, 1.02, "plain layer", va="bottom")
    axes.text(6, -0.02, "identity", va="top", ha="right")
    axes.set(xlabel="bias c of the gate", ylabel="share of the way", ylim=(-0.15, 1.15))
    axes.set_title("the gate of a highway layer decides between identity and plain layer")
    axes.legend(loc="center right")


claim = Claim(
    id="skip-connections",
    title="Dense blocks append, highways choose",
    statement=(
        "Each layer of a dense block reads all that came before it and appends G features, so that "
        "D + L G come out: growth is linear. A highway layer is the identity when its gate is "
        "closed and the plain layer when it is open; with carry and transform gates both open it "
        "would be a residual layer."
    ),
    formula=(
        r"x^{\ell+1} = [x^\ell, \varphi(W^\ell x^\ell + b^\ell)], \qquad "
        r"y = T \odot \varphi(Wx + b) + (1 - T) \odot x, \quad T = \sigma(Vx + c)"
    ),
    sources=("M045", "M046"),
    measure=measure,
    reference="Huang et al. (2017), Densely connected convolutional networks. "
    "https://arxiv.org/abs/1608.06993; Srivastava, Greff and Schmidhuber (2015), Highway networks. "
    "https://arxiv.org/abs/1505.00387",
    full={"d": 32, "growth": 12, "depth": 40},
    draw=draw,
)
