"""A residual layer without weights is the identity, whatever its activation."""

from typing import cast

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import Residual, activations
from ansatz.networks import MLP

NAMES = ("sigmoid", "softplus", "tanh", "relu", "gelu", "silu", "elu", "selu", "softsign", "mish")


def measure(generator: torch.Generator, *, rows: int = 50, d: int = 4, depth: int = 20) -> Finding:
    """Layers of zeros with every activation; the identity built of plain ReLUs."""
    x = torch.randn(rows, d, generator=generator, dtype=torch.float64)
    moved, bare = {}, {}
    for name in NAMES:
        layer = Residual(d, activation=name, init="zeros").double()
        with torch.no_grad():
            moved[name] = float((layer(x) - x).abs().max())
            bare[name] = float((x + layer.branch(x) - x).abs().max())  # without - φ(0)
    wide = Residual(d, d + 3, activation="sigmoid", init="zeros", generator=generator).double()
    with torch.no_grad():
        projected = float((wide(x) - x @ cast(Tensor, wide.skip.weight).T).abs().max())
    paths = {offset: through_depth(x, depth, offset) for offset in (True, False)}
    checks = [
        Check(
            f"largest |F(x) - x| without weights, over {len(NAMES)} activations",
            max(moved.values()),
            0.0,
            0.0,
            "exact: φ(0) - φ(0) is 0, and x + 0 is x",
            wrong=Wrong("without the offset φ(0)", measured=max(bare.values())),
        ),
        Check(
            "where the sizes differ: largest |F(x) - Vx|",
            projected,
            0.0,
            d * EPS * float(x.abs().max()),
            "rounding: a sum over the inputs",
        ),
        Check(
            f"largest |output - x| after {depth} layers",
            float((paths[True][-1] - x).abs().max()),
            0.0,
            0.0,
            "exact, as for one layer",
            wrong=Wrong(
                "without the offset, sigmoid", measured=float((paths[False][-1] - x).abs().max())
            ),
        ),
        Check(
            f"largest |x - network of {2 * d} ReLUs|",
            float((rectified_identity(d)(x) - x).abs().max()),
            0.0,
            0.0,
            "exact: one of ReLU(x) and ReLU(-x) is 0",
            wrong=Wrong(f"with {d} ReLUs", measured=float((torch.relu(x) - x).abs().max())),
        ),
    ]
    rows_ = [[name, moved[name], bare[name]] for name in NAMES]
    table = Table(["activation", "with the offset", "without"], rows_)
    means = {key: [float(h.mean()) for h in path] for key, path in paths.items()}
    return Finding(checks, table, {"mean": means})


def through_depth(x: Tensor, depth: int, offset: bool) -> list[Tensor]:
    """The signal after each of many sigmoid residual layers without weights."""
    layer = Residual(x.shape[1], activation="sigmoid", init="zeros").double()
    found = [x]
    with torch.no_grad():
        for _ in range(depth):
            h = found[-1]
            found.append(layer(h) if offset else h + layer.branch(h))
    return found


def rectified_identity(d: int) -> MLP:
    """x = ReLU(x) - ReLU(-x) as a plain network with 2d hidden units."""
    network = MLP(d, d, widths=(2 * d,), activation="relu", init="zeros").double()
    eye = torch.eye(d, dtype=torch.float64)
    with torch.no_grad():
        cast(nn.Linear, network.hidden[0]).weight.copy_(torch.cat([eye, -eye]))
        network.output.weight.copy_(torch.cat([eye, -eye], 1))
    return network.requires_grad_(False)


def draw(paper: Figure, finding: Finding) -> None:
    """The mean of the signal through layers of zeros."""
    axes = paper.subplots()
    for key, mark, colour, name in (
        (True, "o", MODEL, "x + φ(Wx + b) − φ(0)"),
        (False, "s", LINEAR, "x + φ(Wx + b)"),
    ):
        axes.plot(finding.data["mean"][key], mark, color=colour, label=name)
    start = finding.data["mean"][True][0]
    layers = range(len(finding.data["mean"][True]))
    half = float(activations.create("sigmoid")(torch.zeros(())))
    axes.plot(layers, [start] * len(layers), color=INK, lw=0.8, label="identity")
    axes.plot(
        layers, [start + half * i for i in layers], "--", color=INK, lw=0.8, label="φ(0) per layer"
    )
    axes.set(xlabel="layer (W = 0, b = 0, sigmoid)", ylabel="mean of the signal")
    axes.set_title("the offset φ(0) makes a layer without weights the identity")
    axes.legend(loc="upper left")


claim = Claim(
    id="residual-identity",
    title="A residual layer starts from the identity",
    statement=(
        "A residual layer that subtracts φ(0) is the identity when its weights and biases are "
        "zero, for every activation, and a linear map where the sizes differ. A plain network can "
        "do the same with two ReLUs per input, since x = ReLU(x) - ReLU(-x)."
    ),
    formula=(
        r"F(x) = x + \varphi(Wx + b) - \varphi(0), \qquad F[0, 0] = \mathrm{Id}, \qquad "
        r"x = \mathrm{ReLU}(x) - \mathrm{ReLU}(-x)"
    ),
    sources=("M043", "M044"),
    measure=measure,
    reference="He et al. (2016), Deep residual learning for image recognition. "
    "https://arxiv.org/abs/1512.03385",
    full={"rows": 1000, "d": 20, "depth": 100},
    draw=draw,
)
