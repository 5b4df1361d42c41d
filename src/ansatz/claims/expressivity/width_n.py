"""A network no wider than its input has an infinite error in the mean, or that of zero."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import sequential
from ansatz.networks import linear_regions


def measure(
    generator: torch.Generator,
    *,
    boxes: Sequence[float] = (1.0, 1.5, 2.0, 4.0, 8.0),
    networks: int = 4,
    far: float = 1e4,
) -> Finding:
    """Best errors of width 1 on growing intervals; growth of ∫|F| of width 2 on growing squares."""
    best = [best_of_width_one(box) for box in boxes]
    cases = [strip(), *(random_narrow(generator, 2 + i % 3) for i in range(networks))]
    growth = [growth_of(network, far) for network in cases]
    found = [ratio for ratio in growth if ratio is not None]  # None: zero far out
    wide = growth_of(bump(), far)
    # A strip is 1/B of a square of side B: rounding of areas counts that much more.
    rounding = 64 * np.finfo(float).eps * 4 * far
    checks = [
        Check(
            f"best error of width 1 on [-{boxes[-1]:g}, {boxes[-1]:g}], over ∫|f|",
            best[-1],
            1.0,
            8 * 400 * np.finfo(float).eps,
            "rounding of a sum of 400 heights",
            wrong=Wrong("the best error on [-1, 1]", measured=best[0]),
        ),
        Check(
            "smallest growth of ∫|F| when the square's side doubles, width 2",
            min(found),
            2.0,
            rounding,
            "64 eps times the side, 4B: ∫|F| is a polynomial of B far out, of degree 1, 2 or 3",
            ">=",
            wrong=Wrong("width 4, a bump and zero around it", measured=wide or 0.0),
        ),
    ]
    rows = [[box, error] for box, error in zip(boxes, best, strict=True)]
    table = Table(["half-width of the interval", "best error of width 1 over ∫|f|"], rows)
    return Finding(
        checks, table, {"boxes": np.array(boxes), "best": np.array(best), "cases": cases}
    )


def tent(x: np.ndarray) -> np.ndarray:
    """The target on the line: (1 - |x|)₊, whose integral is 1."""
    return np.maximum(1 - np.abs(x), 0)


def best_of_width_one(box: float) -> float:
    """The smallest ∫|f - F| over [-box, box] of one unit a layer: monotone, with two kinks.

    Such a network is p left of s, q right of t and straight in between, or a part of that.
    """
    x = (np.arange(400) + 0.5) / 400 * 2 * box - box
    place = np.linspace(-1.5, 1.5, 9)
    s, t = (each.ravel() for each in np.meshgrid(place, place))
    s, t = s[s < t, None], t[s < t, None]
    rise = np.clip((x - s) / (t - s), 0, 1)  # (Q, 400)
    height = np.linspace(0, 1, 6)
    found = np.inf
    for p in height:
        for q in height:
            error = np.abs(p + (q - p) * rise - tent(x)).sum(1).min()
            found = min(found, float(error) * 2 * box / 400)
    return found / float(tent(x).sum() * 2 * box / 400)


def random_narrow(generator: torch.Generator, layers: int) -> nn.Module:
    """Two inputs, ``layers`` hidden layers of two units, one output."""
    draw = [
        torch.randn(2, 3, generator=generator, dtype=torch.float64).numpy() for _ in range(layers)
    ]
    out = torch.randn(3, generator=generator, dtype=torch.float64).numpy()
    return sequential(*((each[:, :2], each[:, 2]) for each in draw), (out[None, :2], out[2:]))


def strip() -> nn.Module:
    """(1 - |x₁|)₊ of width 2: as small as it gets, and yet not integrable."""
    return sequential(
        ([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0]), ([[-1.0, -1.0]], [1.0]), ([[1.0]], [0.0])
    )


def bump() -> nn.Module:
    """(1 - |x₁| - |x₂|)₊ of width 4: zero but for a square."""
    both = np.concatenate([np.eye(2), -np.eye(2)])
    return sequential((both, np.zeros(4)), (-np.ones((1, 4)), [1.0]), ([[1.0]], [0.0]))


def growth_of(network: nn.Module, far: float) -> float | None:
    """(I(4B) - I(2B)) / (I(2B) - I(B)), I(B) = ∫|F| over [-B, B]²; None if all are the same."""
    one, two, four = (integral(network, box) for box in (far, 2 * far, 4 * far))
    if abs(four - one) <= 1e-12 * abs(four):
        return None
    return (four - two) / (two - one)


def integral(network: nn.Module, box: float) -> float:
    """∫|F| over [-box, box]², exactly: |F| is affine on regions, so triangles and corners do."""
    both = sequential(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    total = 0.0
    for region in linear_regions(nn.Sequential(network, both), (-box, box)):
        corner = region.vertices
        value = corner @ region.weight[0] + region.bias[0]
        a, b = corner[1:-1] - corner[0], corner[2:] - corner[0]
        area = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
        total += float((area * (value[0] + value[1:-1] + value[2:]) / 3).sum())
    return total


def draw(paper: Figure, finding: Finding) -> None:
    """The best error climbs to that of zero; integrals of width 2 grow without end."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    left.axhline(1, color=INK, lw=0.9, label="∫|f|: the error of F = 0")
    left.plot(
        finding.data["boxes"], finding.data["best"], "o-", color=MODEL, label="best of width 1"
    )
    left.set(xlabel="half-width of the interval", ylabel="L¹ error / ∫|f|", ylim=(0, 1.25))
    left.set_title("n = 1: on the line, zero is the best")
    left.legend(loc="lower right")
    side = np.array([4.0, 16.0, 64.0, 256.0])
    for i, network in enumerate(finding.data["cases"]):
        curve = [integral(network, box) for box in side]
        label = {0: "width 2: a strip", 1: "width 2: random"}.get(i)
        right.plot(
            side,
            curve,
            "o-" if i == 0 else "-",
            color=MODEL,
            lw=1.3 if i == 0 else 0.6,
            label=label,
        )
    curve = [integral(bump(), box) for box in side]
    right.plot(side, curve, "s--", color=LINEAR, lw=0.9, label="width 4: a bump")
    right.set(
        xlabel="half-width of the square", ylabel="∫|F|", title="n = 2: width 2 grows for ever"
    )
    right.legend(fontsize=7.5)
    logarithmic(right.xaxis, right.yaxis)


claim = Claim(
    id="width-n",
    title="Width n is too little for all of space",
    statement=(
        "A rectified network of width n or less, however deep, has an infinite mean error over "
        "all of n-dimensional space, or exactly that of the function 0: if it is not zero "
        "somewhere, it is not zero far out. On growing boxes the best of width 1 turns into zero, "
        "and the integrals of width 2 at least double with the side; width 4 has a bump that "
        "stays."
    ),
    formula=(
        r"\text{width } \le n: \quad \int_{\mathbb R^n} |f - F|\, dx \in "
        r"\Big\{ +\infty, \; \int_{\mathbb R^n} |f|\, dx \Big\}"
    ),
    sources=("M077",),
    measure=measure,
    reference="Lu et al. (2017), The expressive power of neural networks, theorem 2.",
    full={"networks": 200},
    draw=draw,
)
