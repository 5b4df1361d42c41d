"""The margin is the distance to the hyperplane; positive for a set if and only if all is right."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import margins, version_space
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(generator: torch.Generator, *, units: int = 600, points: int = 5) -> Finding:
    """Random units on random points: the sign of the margin, and the distance by least squares."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    X = random.normal(size=(points, 2))
    X[1] = -X[0]  # a point on either side
    y = np.sign(X @ [1.0, -0.5])
    disagree = of_the_mean = worst = unscaled = size = 0.0
    for w, b in zip(random.normal(size=(units, 2)), random.normal(size=units), strict=True):
        found = margins(X, y, w, b)
        right = bool((np.where(X @ w + b >= 0, 1.0, -1.0) == y).all())
        disagree += (found.min() > 0) != right
        of_the_mean += (found.mean() > 0) != right
        size = max(size, float(np.linalg.norm(X[0]) + abs(b) / np.linalg.norm(w)))
        # The shortest z with w·(x + z) + b = 0, by least squares.
        distance = [np.linalg.norm(np.linalg.lstsq(w[None], [-(w @ x + b)])[0]) for x in X[:1]]
        worst = max(worst, float(np.abs(np.abs(found[:1]) - distance).max()))
        unscaled = max(unscaled, float(np.abs(np.abs(X[:1] @ w + b) - distance).max()))
    checks = [
        Check(
            "units for which γ(S) > 0 and 'all right' disagree",
            disagree,
            0,
            0,
            "whole numbers",
            wrong=Wrong("the mean margin, not the smallest", measured=of_the_mean),
        ),
        Check(
            "|γ| beside the distance to the hyperplane, largest error",
            worst,
            0,
            16 * np.finfo(float).eps * size,
            "rounding: 16 eps times the largest ‖x‖ + |b|/‖w‖",
            wrong=Wrong("y(w·x + b), not divided by ‖w‖", measured=unscaled),
        ),
    ]
    space = version_space(X, y)
    return Finding(checks, data={"X": X, "y": y, "w": space.weight, "b": space.bias})


def draw(paper: Figure, finding: Finding) -> None:
    """Points, a line that separates them, and the way of each to it."""
    axes = paper.subplots()
    X, y, w, b = (finding.data[name] for name in "Xywb")
    normal = w / np.linalg.norm(w)
    gaps = (X @ w + b) / np.linalg.norm(w)
    feet = X - gaps[:, None] * normal
    along = np.array([-normal[1], normal[0]])
    reach = np.array([-3.0, 3.0])
    line = -b * w / (w @ w) + reach[:, None] * along
    axes.plot(*line.T, color=INK, label="w·x + b = 0")
    for x, foot, gap in zip(X, feet, gaps, strict=True):
        smallest = abs(gap) == np.abs(gaps).min()
        axes.plot(
            *np.stack([x, foot]).T, color=LINEAR if smallest else INK, lw=2 if smallest else 0.8
        )
    for sign, mark in ((1, "o"), (-1, "s")):
        axes.plot(*X[y == sign].T, mark, color=MODEL, markersize=7, label=f"y = {sign:+d}")
    axes.plot([], [], color=LINEAR, lw=2, label=f"γ(S) = {np.abs(gaps).min():.2f}, the smallest")
    centre = X.mean(0)
    axes.set(xlim=centre[0] + np.array([-3.4, 3.4]), ylim=centre[1] + np.array([-1.9, 1.9]))
    axes.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
    axes.set_title("the margin of a set is the distance of its nearest point")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="margin",
    title="The margin of a set is positive if and only if every point is right",
    statement=(
        "The geometric margin of a point is its distance to the hyperplane, with a minus sign on "
        "the wrong side. The smallest margin of a set is positive if and only if the unit is right "
        "about all of it."
    ),
    formula=(
        r"\gamma(x, y) = \frac{y (w^\top x + b)}{\lVert w \rVert}, \qquad "
        r"\gamma(S) = \min_{(x, y) \in S} \gamma(x, y) > 0 \iff f(x) = y \;\; \forall (x, y) \in S"
    ),
    sources=("M005",),
    measure=measure,
    reference="Novikoff (1962), On convergence proofs on perceptrons.",
    full={"units": 20_000, "points": 8},
    draw=draw,
)
