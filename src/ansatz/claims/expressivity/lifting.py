"""Sums of ridges reach every polynomial of two variables, and with kinks every function."""

from collections.abc import Sequence
from math import log

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import lebesgue, sequential, values


def measure(
    generator: torch.Generator,
    *,
    largest: int = 6,
    pieces: Sequence[int] = (4, 8, 16, 32),
) -> Finding:
    """Directions that span the forms of degree k, and a product from two directions."""
    ranks, fewer = [], []
    for degree in range(1, largest + 1):
        angle = torch.rand(degree + 3, generator=generator, dtype=torch.float64).numpy()
        angle = np.pi * (np.arange(degree + 3) + 0.6 * angle) / (degree + 3)
        ranks.append(rank(angle, degree))
        fewer.append(rank(angle[:degree], degree))
    points = square(pieces[-1])
    truth = points[:, 0] * points[:, 1]
    errors = [float(np.abs(values(product(k), points) - truth).max()) for k in pieces]
    exact = [(4 / k) ** 2 / 16 for k in pieces]  # h²/16 with pieces of length h = 4/k
    off = max(abs(found / known - 1) for found, known in zip(errors, exact, strict=True))
    slope = log(errors[-1] / errors[0]) / log(pieces[-1] / pieces[0])
    one = float(np.abs(values(product(pieces[-1], directions=1), points) - truth).max())
    degrees = np.arange(1, largest + 1)
    checks = [
        Check(
            "largest |rank - (k + 1)| of k-th powers of k + 3 ridges",
            float(np.abs(np.array(ranks) - degrees - 1).max()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong(
                "k directions were enough",
                measured=float(np.abs(np.array(fewer) - degrees - 1).max()),
            ),
        ),
        Check(
            "relative distance of the largest error on x₁x₂ from h²/16",
            off,
            0.0,
            16 * np.finfo(float).eps * pieces[-1] ** 2 * pieces[-1],
            "rounding: k units of size up to k, divided by an error of order 1/k²",
            wrong=Wrong("one direction were enough", measured=abs(one / exact[-1] - 1)),
        ),
        Check(
            "slope of log error against log units",
            slope,
            -2.0,
            16 * np.finfo(float).eps * pieces[-1] ** 3,
            "as above",
            wrong=Wrong("the rate 1/m", predicted=-1.0),
        ),
    ]
    rows = [[2 * k, error, known] for k, error, known in zip(pieces, errors, exact, strict=True)]
    table = Table(["units", "largest error", "h²/16"], rows)
    return Finding(checks, table, {"units": 2 * np.array(pieces), "errors": errors, "exact": exact})


def rank(angle: np.ndarray, degree: int) -> int:
    """Dimension of the span of (a·x)^k, by its values on a circle."""
    turn = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    return int(np.linalg.matrix_rank(np.cos(turn[:, None] - angle) ** degree))


def product(pieces: int, directions: int = 2) -> nn.Module:
    """x₁x₂ = ((x₁+x₂)² - (x₁-x₂)²)/4, each square joined by straight lines on [-2, 2]."""
    nodes = np.linspace(-2, 2, pieces + 1)
    one = lebesgue(nodes, nodes**2 / 4)
    assert isinstance(one, nn.Sequential)
    inside, outside = one[0], one[2]
    assert isinstance(inside, nn.Linear) and isinstance(outside, nn.Linear)
    ridges = np.array([[1.0, 1.0], [1.0, -1.0]])[:directions]
    bias, bends = inside.bias.detach().numpy(), outside.weight.detach().numpy()
    signs = np.array([1.0, -1.0])[:directions]
    weight = np.concatenate([np.tile(ridge, (pieces, 1)) for ridge in ridges])
    offset = signs.sum() * outside.bias.detach().numpy()
    return sequential(
        (weight, np.tile(bias, directions)),
        (np.concatenate([sign * bends for sign in signs], 1), offset),
    )


def square(pieces: int) -> np.ndarray:
    """Points of [-1, 1]² that hold the middles of the pieces of both ridges."""
    side = np.linspace(-1, 1, 2 * pieces + 1)
    return np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)


def draw(paper: Figure, finding: Finding) -> None:
    """The product as a network sees it, and its error."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL
    from ansatz.networks.regions.picture import draw_regions

    left, right = paper.subplots(1, 2)
    draw_regions(product(8), (-1, 1), left)
    left.set(aspect="equal", xlabel="x₁", ylabel="x₂", title="x₁x₂ by two directions")
    units, errors = finding.data["units"], np.array(finding.data["errors"])
    right.plot(units, finding.data["exact"], color=INK, label="h²/16")
    right.plot(units, errors[0] * units[0] / units, "--", color=LINEAR, lw=0.9, label="1/m")
    right.plot(units, errors, "o", color=MODEL, label="measured")
    right.set(
        xlabel="hidden units", ylabel="largest error", title="the error of x₁x₂ falls as 1/m²"
    )
    right.legend()
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="lifting",
    title="From one dimension to many by ridges",
    statement=(
        "Units on the line become units in space along directions: powers of k + 1 ridges span "
        "all forms of degree k of two variables, and each ridge is a function of one number that a "
        "hidden layer of kinks joins by straight lines. So one hidden layer of rectified units is "
        "universal; x₁x₂ takes two directions and has the error h²/16 exactly."
    ),
    formula=(
        r"\mathrm{span}\{(a_i^\top x)^k\}_{i=0}^{k} = \mathcal H_k(\mathbb R^2), \qquad "
        r"x_1 x_2 = \tfrac14 (x_1 + x_2)^2 - \tfrac14 (x_1 - x_2)^2"
    ),
    sources=("M067", "M074"),
    measure=measure,
    reference="Pinkus (1999), Approximation theory of the MLP model in neural networks, section 3.",
    full={"largest": 9, "pieces": (4, 8, 16, 32, 64, 128)},
    draw=draw,
)
