"""Units that are not polynomials span a dense set; polynomial units span k + 1 dimensions."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.polynomial import Polynomial
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure

STEEP = 40.0
X = np.linspace(-1, 1, 400)  # where |x| is approximated
WIDE = np.linspace(-1.35, 1.05, 480)  # holds the places of all units
SMOOTH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": nn.ReLU(),
    "tanh": nn.Tanh(),
    "softplus": nn.Softplus(),
    "step": lambda x: (x > 0).to(x.dtype),  # not even continuous
}
POWERS = (1, 2, 3, 5)


def measure(
    generator: torch.Generator, *, widths: Sequence[int] = (2, 4, 8, 16, 32, 64)
) -> Finding:
    """The rank of m random units on a grid, and how near they come to |x|."""
    ranks: dict[str, list[int]] = {}
    errors: dict[str, list[float]] = {}
    units: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        **{f"x^{k}": partial(torch.pow, exponent=k) for k in POWERS},
        **SMOOTH,
    }
    jitter = torch.rand(max(widths), generator=generator, dtype=torch.float64).numpy()
    for name, phi in units.items():
        ranks[name], errors[name] = [], []
        for width in widths:
            ranks[name].append(int(np.linalg.matrix_rank(features(phi, WIDE, jitter[:width]))))
            errors[name].append(distance(features(phi, X, jitter[:width])))
    m = np.asarray(widths)
    flat = max(int(np.abs(np.array(ranks[f"x^{k}"]) - np.minimum(m, k + 1)).max()) for k in POWERS)
    full = max(int(np.abs(np.array(ranks[name]) - m).max()) for name in SMOOTH)
    worst = max(int(np.abs(np.array(ranks[f"x^{k}"]) - m).max()) for k in POWERS)
    other = max(int(np.abs(np.array(ranks[name]) - np.minimum(m, 4)).max()) for name in SMOOTH)
    cubic = Polynomial.fit(X, np.abs(X), 3)(X) - np.abs(X)
    stuck = float(np.sqrt((cubic**2).mean()))
    checks = [
        Check(
            "largest |rank - min(m, k + 1)| of m units of degree k",
            flat,
            0,
            0,
            "whole numbers",
            wrong=Wrong("polynomial units were dense: rank m", measured=worst),
        ),
        Check(
            "largest |rank - m| of m units that are not polynomials",
            full,
            0,
            0,
            "whole numbers",
            wrong=Wrong("they were a cubic: rank 4", measured=other),
        ),
        Check(
            f"distance of |x| from {m[-1]} cubic units",
            errors["x^3"][-1],
            stuck,
            8 * np.finfo(float).eps * condition(features(units["x^3"], X, jitter)),
            "rounding: 8 eps times the condition number of the span",
            wrong=Wrong("it fell as that of relu units", predicted=errors["relu"][-1]),
        ),
    ]
    rows = [[name, *ranks[name], errors[name][-1]] for name in units]
    head = ["unit", *(f"rank of {k}" for k in widths), "distance of |x|"]
    return Finding(checks, Table(head, rows), {"m": m, "ranks": ranks, "errors": errors})


def features(
    phi: Callable[[torch.Tensor], torch.Tensor], x: np.ndarray, jitter: np.ndarray
) -> np.ndarray:
    """φ(a (x - t)) for m places t from -1.3 to 1, each column of length one."""
    m = len(jitter)
    places = -1.3 + 2.3 * (np.arange(m) + 0.25 + jitter / 2) / m
    found: np.ndarray = phi(torch.as_tensor(STEEP * (x[:, None] - places))).numpy()
    return found / np.maximum(np.linalg.norm(found, axis=0), np.finfo(float).tiny)


def distance(basis: np.ndarray) -> float:
    """Root mean square of |x| minus its projection onto the span."""
    left, size, _ = np.linalg.svd(basis, full_matrices=False)
    inside = left[:, size > size[0] * len(basis) * np.finfo(float).eps]  # as in matrix_rank
    rest = np.abs(X) - inside @ (inside.T @ np.abs(X))
    return float(np.sqrt((rest**2).mean()))


def condition(basis: np.ndarray) -> float:
    """Largest over smallest singular value, of those that count."""
    size = np.linalg.svd(basis, compute_uv=False)
    kept = size[size > size[0] * len(basis) * np.finfo(float).eps]
    return float(kept[0] / kept[-1])


def draw(paper: Figure, finding: Finding) -> None:
    """Ranks that grow and ranks that stop; distances that fall and distances that stop."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL

    left, right = paper.subplots(1, 2)
    m = finding.data["m"]
    for axes, what in ((left, "ranks"), (right, "errors")):
        for name, found in finding.data[what].items():
            power = name.startswith("x^")
            style = ("s--", LINEAR) if power else ("o-", MODEL)
            axes.loglog(m, found, style[0], color=style[1], lw=0.9, fillstyle="none")
    left.plot([], [], "o-", color=MODEL, fillstyle="none", label="relu, tanh, softplus, step")
    left.plot([], [], "s--", color=LINEAR, fillstyle="none", label="x, x², x³, x⁵")
    left.set(
        xlabel="units m", ylabel="dimension of the span", title="polynomial units stop at k + 1"
    )
    left.legend(fontsize=7, loc="upper left")
    left.set_ylim(top=120)
    right.set(
        xlabel="units m",
        ylabel="distance of |x| (root mean square)",
        title="and |x| stays out of reach",
    )
    for axes in (left, right):
        logarithmic(axes.xaxis, axes.yaxis)
        axes.set_xticks(m, [str(k) for k in m])


claim = Claim(
    id="leshno",
    title="Any unit but a polynomial",
    statement=(
        "The functions φ(ax + b) span a dense set of C(R) for every locally bounded, piecewise "
        "continuous φ that is not a polynomial; φ in C^∞, which is often asked for, is more than "
        "needed. For a polynomial of degree k their span has dimension k + 1, whatever the number "
        "of units, and the distance from other functions stops falling."
    ),
    formula=(
        r"\overline{\mathrm{span}}\{\varphi(a x + b) : a, b \in \mathbb R\} = C(\mathbb R) "
        r"\iff \varphi \text{ is not a polynomial}, \qquad "
        r"\deg \varphi = k \Rightarrow \dim = k + 1"
    ),
    sources=("M066",),
    measure=measure,
    reference=(
        "Leshno, Lin, Pinkus and Schocken (1993), Multilayer feedforward networks with a "
        "nonpolynomial activation function can approximate any function."
    ),
    full={"widths": (2, 4, 8, 16, 32, 64, 80)},
    draw=draw,
)
