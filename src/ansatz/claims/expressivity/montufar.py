"""A deep network that folds its input has exponentially many regions in its depth."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._sequential import sequential
from ansatz.claims.expressivity.zaslavsky import zaslavsky
from ansatz.networks import count_linear_regions, linear_regions

# (inputs n, units m of each layer, hidden layers L)
SHAPES = ((1, 2, 1), (1, 2, 4), (1, 3, 3), (2, 4, 1), (2, 4, 2), (2, 4, 3), (2, 5, 2), (3, 6, 1))
LARGER = (*SHAPES, (1, 2, 8), (1, 5, 4), (2, 4, 4), (2, 6, 3), (2, 8, 2), (3, 6, 2), (3, 9, 2))


def measure(
    generator: torch.Generator,
    *,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
) -> Finding:
    """Regions of the construction for several (n, m, L), counted."""
    counts = {shape: count_linear_regions(folds(*shape), (0, 1)) for shape in shapes}
    short = max(bound(*shape) - found for shape, found in counts.items())
    deep = (2, 4, 2)
    most = zaslavsky(2, 4) ** 2  # no network of two layers of 4 units has more regions
    checks = [
        Check(
            "regions with n = 2, m = 4, L = 2",
            count_linear_regions(folds(*deep), (0, 1)),
            bound(*deep),
            0,
            "whole numbers",
            ">=",
            wrong=Wrong("the exponent m(L - 1)", predicted=bound(*deep, exponent=4), erratum="E40"),
        ),
        Check(
            "largest shortfall of the counted regions below the bound",
            short,
            0,
            0,
            "whole numbers",
            "<=",
            wrong=Wrong(
                "the exponent m(L - 1)",
                measured=max(bound(n, m, L, exponent=m) - f for (n, m, L), f in counts.items()),
            ),
        ),
        Check(
            "the bound, below the largest number of regions of two layers of 4 units",
            bound(*deep),
            most,
            0,
            "whole numbers",
            "<=",
            wrong=Wrong("the exponent m(L - 1)", measured=bound(*deep, exponent=4)),
        ),
    ]
    rows = [[*s, found, bound(*s), bound(*s, exponent=s[1])] for s, found in counts.items()]
    table = Table(["n", "m", "L", "counted", "exponent n(L-1)", "exponent m(L-1)"], rows)
    return Finding(checks, table)


def bound(n: int, m: int, layers: int, *, exponent: int | None = None) -> int:
    """R(m) ⌊m/n⌋^(n(L-1)), or with another exponent per layer."""
    return zaslavsky(n, m) * (m // n) ** ((n if exponent is None else exponent) * (layers - 1))


def folds(n: int, m: int, layers: int) -> nn.Module:
    """L - 1 layers that fold each coordinate of [0, 1]^n into ⌊m/n⌋ parts, and one of planes."""
    parts = m // n
    kinks = np.arange(parts) / parts
    inside = np.zeros((m, n))
    bias = np.zeros(m)
    zigzag = np.zeros((n, m))
    for i in range(n):
        mine = slice(i * parts, (i + 1) * parts)
        inside[mine, i], bias[mine] = 1.0, -kinks
        # Up to 1 and back to 0, alternately: p x₊ - 2p (x - 1/p)₊ + 2p (x - 2/p)₊ - ...
        zigzag[i, mine] = 2 * parts * (-1.0) ** np.arange(parts)
        zigzag[i, i * parts] = parts
    planes, offset = crossing_planes(n, m)
    maps = [(inside if k == 0 else inside @ zigzag, bias) for k in range(layers - 1)]
    maps.append((planes if layers == 1 else planes @ zigzag, offset))
    return sequential(*maps, (np.eye(m), np.zeros(m)))


def crossing_planes(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """m hyperplanes in general position that meet in the unit cube, at least one active anywhere.

    Where none is active the network is 0 on both sides of a fold, and two regions would be one.
    """
    angle = np.pi * (np.arange(m) + 0.3) / m
    fixed = {1: np.ones((m, 1)), 2: np.column_stack([np.cos(angle), np.sin(angle)])}
    W = fixed[n] if n in fixed else np.random.default_rng(5).normal(size=(m, n))
    size = 0.07 if n < 3 else 0.004
    b = -W @ np.full(n, 0.5) + size * np.cos(7.0 * np.arange(m) ** 2 + 1)
    found = linear_regions(sequential((W, b), (np.eye(m), np.zeros(m))), [(0, 1)] * n).patterns
    there = {pattern.tobytes() for pattern in found}
    absent = next(p for p in product((False, True), repeat=m) if np.array(p).tobytes() not in there)
    signs = np.where(absent, -1.0, 1.0)  # so that this pattern, which is nowhere, is "none active"
    return signs[:, None] * W, signs * b


claim_erratum = Erratum("E40", "R(m, L) ≥ R(m) ⌊m/n⌋^(m(L−1))", "R(m, L) ≥ R(m) ⌊m/n⌋^(n(L−1))")


def draw(paper: Figure, finding: Finding) -> None:
    """The folded plane, and counts against both exponents."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL
    from ansatz.networks.regions.picture import draw_regions

    left, right = paper.subplots(1, 2)
    draw_regions(folds(2, 4, 2), (0, 1), left, shade="none")
    left.set(aspect="equal", xlabel="x₁", ylabel="x₂", title="2 × 2 folds of one pattern: 4 · 11")
    depth = np.arange(1, 5)
    counted = [count_linear_regions(folds(2, 4, int(L)), (0, 1)) for L in depth]
    right.plot(depth, [bound(2, 4, int(L)) for L in depth], color=INK, label="exponent n(L - 1)")
    printed = [bound(2, 4, int(L), exponent=4) for L in depth]
    right.plot(depth, printed, "--", color=LINEAR, lw=0.9, label="as printed: m(L - 1)")
    right.plot(depth, counted, "o", color=MODEL, label="counted")
    right.set(xlabel="hidden layers L", ylabel="regions", title="n = 2 inputs, m = 4 units a layer")
    right.set_xticks(depth)
    right.legend()
    logarithmic(right.yaxis)


claim = Claim(
    id="montufar",
    title="Regions grow exponentially with depth",
    statement=(
        "Layers of m units can fold each of n inputs ⌊m/n⌋ times, so a network of L such layers "
        "has at least R(m) ⌊m/n⌋^(n(L-1)) regions, where R(m) is the number of regions of one "
        "layer. Often printed with the exponent m(L-1), which for n = 2, m = 4, L = 2 is more than "
        "any network can have."
    ),
    formula=r"R(m, L) \ge R(m) \left\lfloor \frac mn \right\rfloor^{n(L-1)}",
    sources=("M071", "E40"),
    measure=measure,
    reference=(
        "Montúfar et al. (2014), On the number of linear regions of deep neural networks. "
        "https://arxiv.org/abs/1402.1869"
    ),
    full={"shapes": LARGER},
    errata=(claim_erratum,),
    draw=draw,
)
