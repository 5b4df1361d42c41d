"""Straight lines between nodes: the error falls as h² for smooth functions, slower for others."""

from collections.abc import Sequence
from math import log

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(
    generator: torch.Generator, *, pieces: Sequence[int] = (8, 16, 32, 64, 128, 256)
) -> Finding:
    """Errors on x², sin 6x and √x, by numpy's interpolation."""
    h = 1 / np.asarray(pieces, dtype=np.float64)
    square, root, wave = (
        np.array([error(f, k) for k in pieces]) for f in (np.square, np.sqrt, _wave)
    )
    curvature = 36.0  # of sin 6x
    slope = log(wave[-1] / wave[0]) / log(pieces[-1] / pieces[0])
    # sup|f''| over a piece next to the top of |f''| is within 6h of it, relatively (6h)²/2.
    missing = (6 * h) ** 2 / 2
    ratio = float((wave / (curvature * h**2 / 8)).max())
    checks = [
        Check(
            "slope of log error against log pieces, for sin 6x",
            slope,
            -2.0,
            -log(1 - missing[0]) / log(pieces[-1] / pieces[0]),
            "the cosine of half a piece at the top, between 1 - (6h)²/2 and 1 of the bound",
            wrong=Wrong("first order", predicted=-1.0),
        ),
        Check(
            "largest ratio of the error on sin 6x and h²max|f''|/8",
            ratio,
            1.0,
            8 * np.finfo(float).eps / float(wave[-1]),
            "rounding, relative to the smallest error",
            "<=",
            wrong=Wrong("h²max|f''|/12", measured=ratio * 12 / 8),
        ),
        Check(
            "largest relative distance of the error on x² from h²/4",
            float(np.abs(square / (h**2 / 4) - 1).max()),
            0.0,
            8 * np.finfo(float).eps / float(square[-1]),
            "rounding, relative to the smallest error",
            wrong=Wrong("h²/8", measured=float(np.abs(square / (h**2 / 8) - 1).max())),
        ),
        Check(
            "largest relative distance of the error on √x from √h/4",
            float(np.abs(root / (np.sqrt(h) / 4) - 1).max()),
            0.0,
            8 * np.finfo(float).eps / float(root[-1]),
            "rounding: the largest error is at x = h/4, in the first piece",
            wrong=Wrong(
                "order h² without a second derivative",
                measured=float(np.abs(root / (root[0] * (h / h[0]) ** 2) - 1).max()),
            ),
        ),
    ]
    rows = list(zip(pieces, wave, curvature * h**2 / 8, square, root, strict=True))
    table = Table(["pieces", "sin 6x", "36h²/8", "x²", "√x"], rows)
    data = {"pieces": np.asarray(pieces), "wave": wave, "square": square, "root": root}
    return Finding(checks, table, data)


def _wave(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.sin(6 * x)
    return found


def error(f: "np.ufunc | object", pieces: int) -> float:
    """The largest distance from f at 33 points of each piece; quarters and middles among them."""
    assert callable(f)
    nodes = np.linspace(0, 1, pieces + 1)
    x = np.linspace(0, 1, 32 * pieces + 1)
    return float(np.abs(np.interp(x, nodes, f(nodes)) - f(x)).max())


def draw(paper: Figure, finding: Finding) -> None:
    """Three functions, three lines."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL, THIRD

    axes = paper.subplots()
    k = finding.data["pieces"]
    lines = {
        "sin 6x and 36h²/8": (finding.data["wave"], 36 / 8 / k**2, MODEL, "o"),
        "x² and h²/4": (finding.data["square"], 1 / 4 / k**2, THIRD, "s"),
        "√x and √h/4": (finding.data["root"], 1 / 4 / np.sqrt(k), LINEAR, "v"),
    }
    for name, (found, predicted, colour, mark) in lines.items():
        axes.plot(k, predicted, color=colour, lw=0.9)
        axes.plot(k, found, mark, color=colour, label=name)
    axes.set(xlabel="pieces 1/h", ylabel="largest error")
    axes.set_title("straight lines: h² where f is smooth, slower where it is not")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="linear-interpolation",
    title="Piecewise-linear functions are dense",
    statement=(
        "Joining the values of a continuous function at nodes of distance h by straight lines "
        "comes as near as one likes; for two continuous derivatives the error is at most "
        "h²max|f''|/8, and for x² it is h²/4. Without them it falls more slowly: for √x, √h/4."
    ),
    formula=r"\|f - I_h f\|_\infty \le \frac{h^2}{8} \|f''\|_\infty",
    sources=("M072",),
    measure=measure,
    reference="de Boor (1978), A practical guide to splines, chapter 3.",
    full={"pieces": (8, 16, 32, 64, 128, 256, 512, 1024, 2048)},
    draw=draw,
)
