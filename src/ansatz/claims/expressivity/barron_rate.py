"""The squared error of one hidden layer falls as 1/m in any dimension."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy import stats
from scipy.special import gammaln

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure

RADIUS = 1.5


def measure(
    generator: torch.Generator,
    *,
    dimensions: Sequence[int] = (1, 3, 10),
    widths: Sequence[int] = (4, 16, 64, 256),
    repeats: int = 40,
    points: int = 100,
) -> Finding:
    """Errors of networks of m random steps, over a ball, in several dimensions."""
    rng = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    found = {d: errors(rng, d, widths, repeats, points) for d in dimensions}  # (R, W)
    m = np.asarray(widths, dtype=np.float64)
    bounds = {d: (2 * RADIUS * barron_constant(d)) ** 2 for d in dimensions}
    slopes = {d: _slope(m, found[d]) for d in dimensions}
    worst = max(slopes, key=lambda d: abs(slopes[d][0] + 1) / slopes[d][1])
    quantile = float(stats.norm.isf(1e-4 / (2 * len(dimensions))))
    ratio = max(float((found[d].mean(0) * m / bounds[d]).max()) for d in dimensions)
    last = max(float(found[d].mean(0)[-1] * m[-1] ** 2 / bounds[d]) for d in dimensions)
    checks = [
        Check(
            f"slope of log squared error against log units, d = {worst}",
            slopes[worst][0],
            -1.0,
            quantile * slopes[worst][1],
            f"{quantile:.1f} standard errors over {repeats} networks: 1 in 10,000 over "
            f"{len(dimensions)} dimensions",
            wrong=Wrong("m^(-2/d), as for a fixed grid", predicted=-2 / worst),
        ),
        Check(
            "largest ratio of mean squared error and (2rC)²/m",
            ratio,
            1.0,
            0.0,
            "a bound on the mean",
            "<=",
            wrong=Wrong("the rate 1/m²", measured=last),
        ),
    ]
    rows = [
        [d, int(k), found[d].mean(0)[i], bounds[d] / k] for d in dimensions for i, k in enumerate(m)
    ]
    table = Table(["d", "units", "mean squared error", "(2rC)²/m"], rows)
    return Finding(checks, table, {"m": m, "errors": found, "bounds": bounds})


def barron_constant(d: int) -> float:
    """C = E|ω| for f(x) = exp(-|x|²/2) = E cos(ω·x), ω standard normal."""
    return math.sqrt(2) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))


def errors(
    rng: np.random.Generator, d: int, widths: Sequence[int], repeats: int, points: int
) -> np.ndarray:
    """Squared errors ``(repeats, widths)`` of f(0) + (C'/m) Σ sign 1{α·x > t} over the ball."""
    x = rng.normal(size=(points, d))
    x *= (RADIUS * rng.random(points) ** (1 / d) / np.linalg.norm(x, axis=1))[:, None]
    f = np.exp(-(x**2).sum(1) / 2)
    mass = step_mass(d)
    found = np.empty((repeats, len(widths)))
    for i in range(repeats):
        for j, m in enumerate(widths):
            direction, place, sign = steps(rng, d, m)
            network = 1 + mass / m * ((x @ direction.T > place) @ sign)
            found[i, j] = ((network - f) ** 2).mean()
    return found


def steps(rng: np.random.Generator, d: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m draws of (α, t) with density |ω| |sin(|ω| t)| p(ω) on 0 < t < r, and -sign of the sine."""
    size, place = np.empty(0), np.empty(0)
    while len(size) < m:
        # |ω| p(ω) is the distribution of the length of a normal vector of one more dimension.
        trial = np.sqrt(rng.chisquare(d + 1, size=4 * m))
        t = rng.random(4 * m) * RADIUS
        keep = rng.random(4 * m) < np.abs(np.sin(trial * t))
        size, place = np.append(size, trial[keep]), np.append(place, t[keep])
    direction = rng.normal(size=(m, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction, place[:m], -np.sign(np.sin(size[:m] * place[:m]))


def step_mass(d: int) -> float:
    """C' = 2 E ∫ |ω| |sin(|ω| t)| dt over 0 < t < r, at most 2rC."""
    size = stats.chi.ppf((np.arange(4000) + 0.5) / 4000, d)
    t = (np.arange(400) + 0.5) / 400 * RADIUS
    return float(2 * RADIUS * (size[:, None] * np.abs(np.sin(size[:, None] * t))).mean())


def _slope(m: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """Least squares on log means, and its standard error by the delta method."""
    mean = found.mean(0)
    error = found.std(0, ddof=1) / math.sqrt(len(found)) / mean
    centred = np.log(m) - np.log(m).mean()
    weight = centred / (centred**2).sum()
    return float(weight @ np.log(mean)), float(np.sqrt((weight**2 * error**2).sum()))


def draw(paper: Figure, finding: Finding) -> None:
    """Errors over units in each dimension, on lines of slope -1."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, PALETTE

    axes = paper.subplots()
    m = finding.data["m"]
    colours = (PALETTE[0], PALETTE[2], PALETTE[3])
    for (d, found), colour in zip(finding.data["errors"].items(), colours, strict=True):
        mean, error = found.mean(0), found.std(0, ddof=1) / math.sqrt(len(found))
        axes.plot(m, finding.data["bounds"][d] / m, color=colour, lw=0.7)
        axes.errorbar(m, mean, 2 * error, fmt="o", color=colour, label=f"d = {d}")
        axes.plot(m, mean[0] * m[0] / m, ":", color=colour)
        last = d
    start = finding.data["errors"][last].mean(0)[0]
    grid = start * (m / m[0]) ** (-2 / last)
    axes.plot(m, grid, "--", color=LINEAR, lw=0.9, label=f"m^(-2/d), d = {last}")
    axes.plot([], [], color=PALETTE[0], lw=0.7, label="bound (2rC)²/m")
    axes.plot([], [], ":", color=PALETTE[0], label="slope -1")
    axes.set(xlabel="hidden units m", ylabel="mean squared error")
    axes.set_title("the squared error falls as 1/m, whatever the dimension")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="barron-rate",
    title="Barron's rate is free of the dimension",
    statement=(
        "If C = ∫|ω||f̂(ω)|dω is finite, some network of m sigmoidal units has a mean squared error "
        "of at most (2rC)²/m on a ball of radius r; drawing the units at random already gives it. "
        "The exponent is free of the dimension, but C may grow with it, even exponentially."
    ),
    formula=(
        r"\inf_{f_m} \int_{B_r} |f - f_m|^2 \, d\mu \le \frac{(2 r C_f)^2}{m}, \qquad "
        r"C_f = \int |\omega|\, |\hat f(\omega)| \, d\omega"
    ),
    sources=("M068",),
    measure=measure,
    reference="Barron (1993), Universal approximation bounds for superpositions of a sigmoid.",
    full={"widths": (4, 16, 64, 256, 1024), "repeats": 400, "points": 1000},
    draw=draw,
)
