"""A network narrower than its input is blind along a direction."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.expressivity._narrow import grid, narrow_network, uniform
from ansatz.claims.expressivity._sequential import lebesgue, sequential, values

STEPS = 80  # of the quadrature, each way


def measure(
    generator: torch.Generator,
    *,
    angles: int = 13,
    depths: Sequence[int] = (1, 2, 4, 8),
    networks: int = 100,
    points: int = 2000,
    parts: int = 8,
) -> Finding:
    """ε* by quadrature along fibres, networks of width 1, and one that is wide after its first."""
    angle = np.linspace(0, np.pi / 2, angles)
    along = np.array([ridge_error(each) for each in angle])
    step = angle[1]
    sharp = minimize_scalar(
        ridge_error,
        bounds=(angle[along.argmin()] - step, angle[along.argmin()] + step),
        method="bounded",
    )
    least, direction = float(min(sharp.fun, along.min())), float(sharp.x)
    finer = abs(ridge_error(direction, 2 * STEPS) - ridge_error(direction))
    x = uniform(generator, points, 2, -1, 1)
    f = (x**2).sum(1)
    best = {depth: best_of_width_one(generator, depth, networks, x, f) for depth in depths}
    lowest, standard_error = min(best.values())
    seen, bend = one_unit_first(direction)
    apart = 4 * np.abs(values(seen, x) - f)
    wide = narrow_network(*grid_boxes(parts, 1 / parts**2), edge=1 / parts**2)
    six = float(4 * np.abs(values(wide, x) - f).mean())
    checks = [
        Check(
            "smallest error of width 1 on [-1, 1]², whatever the depth",
            lowest,
            least,
            4 * standard_error + 2 * finer,
            f"4 standard errors over {points} points, twice the change by a finer quadrature",
            ">=",
            wrong=Wrong("width 6, which is n + 4", measured=six),
        ),
        Check(
            "error of one unit first, 60 after it, in the best direction",
            float(apart.mean()),
            least,
            4 * float(apart.std()) / sqrt(points) + 2 * finer + bend,
            f"4 standard errors over {points} points, a finer quadrature, and 60 straight pieces",
            wrong=Wrong("later layers made up for the first", predicted=0.0),
        ),
        Check(
            "smallest error of anything constant along an axis",
            float(along[0]),
            1.0,
            2 * abs(ridge_error(0.0, 2 * STEPS) - ridge_error(0.0)) + 1 / STEPS**2,
            "the change by a finer quadrature, whose error is of second order",
            wrong=Wrong("the mean in place of the median", predicted=float(16 / (9 * sqrt(3)))),
        ),
    ]
    rows = [[depth, error, least, 8 / 3] for depth, (error, _) in best.items()]
    table = Table(["hidden layers", "best error of width 1", "ε*", "∫|f|"], rows)
    data = {"angle": angle, "along": along, "best": best, "six": six, "least": least}
    return Finding(checks, table, data)


def fibres(angle: float, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places t along w, the lengths of the lines w·x = t in the square, and |x|² on each."""
    w, v = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    t = ((np.arange(steps) + 0.5) / steps * 2 - 1) * np.abs(w).sum()
    v = np.where(np.abs(v) < 1e-12, 1e-12, v)
    # x = t w + s v lies in the square for s between these.
    ends = np.stack([(side - t[:, None] * w) / v for side in (-1.0, 1.0)])  # (2, T, 2)
    start, stop = ends.min(0).max(1), ends.max(0).min(1)
    length = np.maximum(stop - start, 0)
    s = start[:, None] + (np.arange(steps) + 0.5) / steps * length[:, None]
    return t, length, t[:, None] ** 2 + s**2


def ridge_error(angle: float, steps: int = STEPS) -> float:
    """The smallest ∫|f - g(w·x)| over [-1, 1]² of any g: g is the median of f on each line."""
    t, length, f = fibres(angle, steps)
    inner = np.abs(f - np.median(f, axis=1, keepdims=True)).mean(1) * length
    return float(inner.sum() * (t[1] - t[0]))


def one_unit_first(angle: float, pieces: int = 60) -> tuple[nn.Module, float]:
    """The median along each line as a network behind one unit, and the error of its pieces."""
    t, length, f = fibres(angle, pieces + 1)
    median = np.median(f, axis=1)
    join = lebesgue(t + 2, median)
    first = sequential(([[np.cos(angle), np.sin(angle)]], [2.0]), ([[1.0]], [0.0]))
    step = t[1] - t[0]
    bend = float((np.abs(np.diff(median, 2)) / 8 * length[1:-1]).sum() * step)  # h² g''/8
    bend += step**2  # beyond the first and the last node: two corners of half a step
    return nn.Sequential(first[0], nn.ReLU(), join), bend  # type: ignore[index]


def best_of_width_one(
    generator: torch.Generator, depth: int, networks: int, x: np.ndarray, f: np.ndarray
) -> tuple[float, float]:
    """Random layers of one unit, output by least squares: least error, standard error."""
    draw = torch.randn(networks, 3 + 2 * (depth - 1), generator=generator, dtype=torch.float64)
    weights = draw.numpy()
    h = np.maximum(x @ weights[:, :2].T + weights[:, 2], 0)  # (N, Q): all networks at once
    for k in range(3, weights.shape[1], 2):
        h = np.maximum(weights[:, k] * h + weights[:, k + 1], 0)
    centred = h - h.mean(0)
    size = (centred**2).sum(0)
    slope = np.where(size > 1e-9, centred.T @ (f - f.mean()) / np.maximum(size, 1e-9), 0.0)
    apart = 4 * np.abs(f.mean() + slope * centred - f[:, None])
    least = int(apart.mean(0).argmin())
    return float(apart[:, least].mean()), float(apart[:, least].std() / sqrt(len(x)))


def grid_boxes(parts: int, edge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes of [-1, 1]², less their edges, and the height of f in the middle of each."""
    low, high, middle = grid(2, parts, -1.0, 1.0)
    return low + edge, high - edge, (middle**2).sum(1)


def draw(paper: Figure, finding: Finding) -> None:
    """ε* over directions, and errors over depth."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    left, right = paper.subplots(1, 2)
    data = finding.data
    left.plot(np.degrees(data["angle"]), data["along"], color=MODEL)
    left.axhline(data["least"], color=INK, lw=0.8)
    left.set(
        xlabel="direction the network sees (degrees)", ylabel="smallest L¹ error", ylim=(0, 1.2)
    )
    left.set_title("no direction is good enough")
    depth = list(data["best"])
    error = [data["best"][each][0] for each in depth]
    right.plot(depth, error, "o-", color=MODEL, label="best of width 1")
    right.axhline(data["least"], color=INK, lw=0.9, label="ε*")
    right.axhline(data["six"], ls="--", color=THIRD, lw=0.9, label="width 6")
    right.axhline(8 / 3, ls=":", color=LINEAR, label="∫|f|")
    right.set(
        xlabel="hidden layers",
        ylabel="L¹ error",
        ylim=(0, 3.1),
        title="depth does not help width 1",
    )
    right.legend(fontsize=7.5, ncols=2, loc="upper right", bbox_to_anchor=(1, 0.86))


claim = Claim(
    id="width-below-n",
    title="Width n - 1 has an error that depth cannot lower",
    statement=(
        "The first layer of a network narrower than its n inputs leaves a direction unseen, so for "
        "a function that changes along every direction the mean error on a cube stays above some "
        "ε* > 0, whatever the depth. For |x|² on [-1, 1]² and width 1, ε* is the smallest mean "
        "distance from the median along parallel lines."
    ),
    formula=(
        r"\text{width } \le n - 1: \quad \int_{[-1,1]^n} |f - F|\, dx \ge \varepsilon^* = "
        r"\min_{w} \int \Big( \min_c \int |f - c| \, ds \Big) dt > 0"
    ),
    sources=("M078",),
    measure=measure,
    reference="Lu et al. (2017), The expressive power of neural networks, theorem 3.",
    full={"angles": 181, "networks": 3000, "points": 10_000},
    draw=draw,
)
