"""A network of rectified units is affine on the regions of its activation patterns."""

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.networks import MLP, linear_regions

BOX = 2.0


def measure(generator: torch.Generator, *, width: int = 12, points: int = 2000) -> Finding:
    """Values and gradients at random points against the map of the region that each lies in."""
    network = random_network(generator, "relu", width)
    regions = linear_regions(network, (-BOX, BOX))
    x = (2 * torch.rand(points, 2, generator=generator, dtype=torch.float64) - 1) * BOX
    pattern = patterns(network, x)
    known = {index.tobytes(): i for i, index in enumerate(regions.patterns)}
    index = np.array([known.get(row.tobytes(), -1) for row in pattern])
    x.requires_grad_()
    output = network(x)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    weight, bias = regions.weights[index, 0], regions.biases[index, 0]
    affine = (weight * x.detach().numpy()).sum(1) + bias
    value = output.detach().numpy()[:, 0]
    far = float(np.abs(affine - value).max())
    turn = float(np.abs(weight - gradient.numpy()).max())
    size = float(np.abs(value).max() + np.abs(gradient.numpy()).max())
    rounding = 8 * np.finfo(float).eps * width * size
    origin = known[patterns(network, torch.zeros_like(x[:1]))[0].tobytes()]
    off = float(np.abs(regions.weights[origin, 0] - gradient.numpy()).max())
    checks = [
        Check(
            "points whose pattern no region has",
            float((index < 0).sum()),
            0.0,
            0.0,
            "whole numbers",
        ),
        Check(
            "largest distance of network and affine map",
            far,
            0.0,
            rounding,
            "rounding: 8 eps times width times the size of values and slopes",
            wrong=Wrong("silu units, affine nowhere", measured=_silu_bend(generator, width)),
        ),
        Check(
            "largest distance of gradient and the region's slope",
            turn,
            0.0,
            rounding,
            "as above",
            wrong=Wrong(
                "one slope for all, that of the origin",
                measured=off,
            ),
        ),
    ]
    volume = sum(region.volume for region in regions)
    table = Table(
        ["regions", "affine maps", "points", "area of all regions"],
        [[len(regions), regions.num_pieces, points, volume]],
    )
    return Finding(checks, table, {"network": network})


def random_network(generator: torch.Generator, activation: str, width: int) -> MLP:
    """2 - width - width - 1, with biases drawn as well."""
    network = MLP(2, 1, widths=(width, width), activation=activation, generator=generator).double()
    with torch.no_grad():
        for layer in network.hidden:
            assert isinstance(layer, nn.Linear)
            layer.bias.copy_(torch.randn(width, generator=generator, dtype=torch.float64))
        network.output.weight.mul_(10)
    return network


def patterns(network: MLP, x: torch.Tensor) -> np.ndarray:
    """Marks the active hidden units, ``(N, U)``."""
    found, h = [], x
    with torch.no_grad():
        for layer in network.hidden:
            z = layer(h)
            found.append(z > 0)
            h = z.relu()
    joined: np.ndarray = torch.cat(found, 1).numpy()
    return joined


def _silu_bend(generator: torch.Generator, width: int) -> float:
    """The distance of the value in the middle of two near points from the mean of their values."""
    network = random_network(generator, "silu", width)
    x = 0.1 * torch.randn(100, 2, generator=generator, dtype=torch.float64)
    step = torch.tensor([0.01, 0.0], dtype=torch.float64)
    with torch.no_grad():
        bend = network(x + step) + network(x - step) - 2 * network(x)
    return float(bend.abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The regions."""
    from ansatz.networks.regions.picture import draw_regions

    axes = paper.subplots()
    regions = draw_regions(finding.data["network"], (-BOX, BOX), axes)
    axes.set(aspect="equal", xlabel="first input", ylabel="second input")
    axes.set_title(f"{len(regions)} regions, one affine map on each")
    axes.legend(loc="center right", bbox_to_anchor=(-0.3, 0.5), title="kinks of")


claim = Claim(
    id="relu-regions",
    title="Affine on every region",
    statement=(
        "The points at which the same hidden units are active form a convex region, and on it a "
        "network of rectified units is one affine map. The regions fill the box: every pattern "
        "that occurs at a random point is that of one of the enumerated regions."
    ),
    formula=(
        r"X_\kappa = \{x : \mathbf 1\{z(x) > 0\} = \kappa\}, \qquad "
        r"f(x) = A_\kappa x + a_\kappa \;\; (x \in X_\kappa)"
    ),
    sources=("M069",),
    measure=measure,
    reference=(
        "Montúfar et al. (2014), On the number of linear regions of deep neural networks. "
        "https://arxiv.org/abs/1402.1869"
    ),
    full={"width": 32, "points": 50_000},
    draw=draw,
)
