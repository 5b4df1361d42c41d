"""The number of grid cells that cover a symmetric function, counted."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(
    generator: torch.Generator,
    *,
    elements: int = 2,
    dimension: int = 3,
    cuts: int = 5,
    samples: int = 2_000,
) -> Finding:
    r"""Counts the cells by enumeration, and measures the error of one value per cell.

    The argument. A symmetric f on n points of the cube [0, 1]^d has n d arguments. Cut each axis
    into k = ‖∇f‖ √(nd) / ε intervals of length δ = 1/k: two points of one cell differ by at most
    δ √(nd), so f by at most ‖∇f‖ δ √(nd) = ε. The n points fall into K = k^d cells, and f needs
    one value per *multiset* of n cells: (K + n - 1 over n) <= (2K)^n / n! as soon as K >= n - 1.
    With K^n = k^{nd} = (‖∇f‖ √(nd) / ε)^{nd} that is 2^n (‖∇f‖² nd)^{nd/2} / (ε^{nd} n!).
    The worst case is real: f = ‖∇f‖ Σ x / √(nd) changes by ε from corner to corner of a cell.
    """
    size = elements * dimension
    accuracy = size**0.5 / cuts  # ‖∇f‖ = 1
    cells = enumerate_cells(cuts, dimension, elements)
    right = bound(elements, dimension, accuracy)
    printed = bound(elements, dimension, accuracy, exponent=elements / 2)
    few = max(k for k in range(1, cuts) if count(k, dimension, elements) <= printed)
    dice = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    checks = [
        Check(
            "largest error of one value per cell",
            worst_error(cuts, size, samples, dice),
            accuracy,
            8 * size * 2.0**-52,
            "rounding of a sum over the arguments",
            "<=",
            Wrong(
                "as many cells as the printed count allows",
                measured=worst_error(few, size, samples, dice),
                erratum="E63",
            ),
        ),
        Check(
            "cells up to the order of the points",
            cells,
            count(cuts, dimension, elements),
            0,
            "whole numbers",
            wrong=Wrong("the order counted", predicted=cuts**size),
        ),
        Check(
            "cells against the bound with exponent nd/2",
            cells,
            right,
            0.0,
            "an inequality with the factor (2K / (K + n - 1))ⁿ to spare",
            "<=",
            Wrong("exponent n/2", predicted=printed, erratum="E63"),
        ),
    ]
    table = Table(["accuracy", "cells", "exponent nd/2", "exponent n/2 (printed)"], [
        [e, count(k, dimension, elements), bound(elements, dimension, e),
         bound(elements, dimension, e, exponent=elements / 2)]
        for k, e in ((k, size**0.5 / k) for k in (4, 8, 16, 32, 64))
    ])  # fmt: skip
    return Finding(checks, table, {"rows": np.array(table.rows, dtype=float)})


def enumerate_cells(cuts: int, dimension: int, elements: int) -> int:
    """Multisets of cells, one by one."""
    cells = list(product(range(cuts), repeat=dimension))
    return sum(1 for _ in combinations_with_replacement(cells, elements))


def count(cuts: int, dimension: int, elements: int) -> int:
    """The same by a binomial coefficient."""
    return math.comb(cuts**dimension + elements - 1, elements)


def bound(n: int, d: int, accuracy: float, *, exponent: float | None = None) -> float:
    """2^n (nd)^{nd/2} / (ε^{nd} n!), ‖∇f‖ = 1."""
    power = n * d / 2 if exponent is None else exponent
    return float(2**n * (n * d) ** power / (accuracy ** (n * d) * math.factorial(n)))


def worst_error(cuts: int, size: int, samples: int, dice: np.random.Generator) -> float:
    """Of f = Σ x / √(nd), replaced by its value at the cell's lowest corner."""
    x = dice.random((samples, size))
    x[0] = 1 - 1e-12  # the highest corner, where the error is largest
    low = np.floor(x * cuts) / cuts
    return float(np.abs((x - low).sum(1)).max() / size**0.5)


def draw(paper: Figure, finding: Finding) -> None:
    """Cells over the accuracy, with both bounds."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, rows = paper.subplots(), finding.data["rows"]
    axes.loglog(rows[:, 0], rows[:, 2], color=MODEL, label="bound, exponent nd/2")
    axes.loglog(rows[:, 0], rows[:, 3], "--", color=LINEAR, lw=1, label="printed, exponent n/2")
    axes.loglog(rows[:, 0], rows[:, 1], "o", color=INK, ms=5, label="cells counted")
    axes.set_xticks(rows[:, 0], [f"{e:.2g}" for e in rows[:, 0]])
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks([1e3, 1e6, 1e9, 1e12], ["1e3", "1e6", "1e9", "1e12"])
    axes.set(xlabel="accuracy ε", ylabel="cells for 2 points of space")
    axes.set_title("a covering needs more cells than the printed exponent allows")
    axes.legend()


claim = Claim(
    id="deep-set-bound",
    title="The covering bound for symmetric functions",
    statement=(
        "One value per cell of a grid approximates a symmetric function of n points in d "
        "dimensions to ε with at most 2ⁿ(‖∇f‖²nd)^(nd/2) / (ε^(nd) n!) cells, as counting them "
        "shows: an upper bound on the features that a deep set needs. Often printed with the "
        "exponent n/2 and without the gradient; that many cells miss ε. The count is derived here, "
        "and was not compared with the wording of the published theorem."
    ),
    formula=(
        r"\binom{K + n - 1}{n} \le \frac{(2K)^n}{n!} = \frac{2^n (\|\nabla f\|^2 n d)^{nd/2}}"
        r"{\varepsilon^{nd}\, n!}, \qquad K = \Bigl(\frac{\|\nabla f\| \sqrt{nd}}"
        r"{\varepsilon}\Bigr)^d"
    ),
    sources=("E63", "M282"),
    measure=measure,
    reference=(
        "Han et al. (2019), Universal approximation of symmetric and anti-symmetric functions. "
        "https://arxiv.org/abs/1912.01765"
    ),
    full={"cuts": 10, "samples": 100_000},
    errata=(Erratum("E63", "2ⁿ(nd)^(n/2) / (ε^(nd) n!)", "2ⁿ(‖∇f‖²nd)^(nd/2) / (ε^(nd) n!)"),),
    draw=draw,
)
