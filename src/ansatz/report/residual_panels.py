"""Draws the four classic residual panels on quantile residuals, for every likelihood."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, thin, to_svg
from ansatz.report.evidence import Evidence, Novelty
from ansatz.report.residual_tests import quantile_residuals, uniform_envelope
from ansatz.report.transform import Target, targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]
# Of sqrt|Z| for a standard normal Z: its mean 2^(1/4) Gamma(3/4) / sqrt(pi) and its sd.
ROOT_MEAN = 2**0.25 * math.gamma(0.75) / math.sqrt(math.pi)
ROOT_SD = math.sqrt(math.sqrt(2 / math.pi) - ROOT_MEAN**2)


def draw_along(
    axes: "Axes", x: Numbers, y: Numbers, *, centre: float = 0.0, sd: float = 1.0
) -> float:
    """Draws points with a smooth line and its pointwise 95 % band if calibrated.

    Returns:
        The share of x where the line leaves the band; 5 % if calibrated.
    """
    line = local_linear(x, y)
    reach = 1.96 * sd * line.factor
    shown_x, shown_y = thin(x, y, limit=800)
    axes.plot(shown_x, shown_y, ".", color=MODEL, ms=3, alpha=0.5, mew=0)
    axes.fill_between(line.x, centre - reach, centre + reach, color=INK, alpha=0.25, lw=0)
    axes.axhline(centre, color=INK, lw=0.8)
    axes.plot(line.x, line.value, color=LINEAR, lw=1.5)
    return float((np.abs(line.value - centre) > reach).mean())


def draw_normal_qq(axes: "Axes", scores: Numbers) -> None:
    """Draws sorted normal scores against normal quantiles, with their simultaneous envelope."""
    rows = len(scores)
    band = uniform_envelope(rows)
    expected = special.ndtri(np.arange(1, rows + 1) / (rows + 1))
    ordered = np.sort(scores)
    if rows > 800:  # all of the tails, a part of the middle
        middle, *_ = thin(np.arange(100, rows - 100), limit=400)
        keep = np.concatenate([np.arange(100), middle, np.arange(rows - 100, rows)])
        expected, ordered = expected[keep], ordered[keep]
    low, high = special.ndtri(np.clip([band.low, band.high], 1e-300, 1 - 1e-16))
    axes.fill_between(special.ndtri(band.expected), low, high, color=INK, alpha=0.2, lw=0)
    reach = float(np.abs(expected).max())
    axes.plot([-reach, reach], [-reach, reach], color=INK, lw=0.8)
    axes.plot(expected, ordered, ".", color=MODEL, ms=3)
    edge = max(float(np.abs(ordered).max()), reach) * 1.05
    axes.set_ylim(-min(edge, 12), min(edge, 12))
    axes.set_xlabel("normal quantile")
    axes.set_ylabel("residual, sorted")


def section(evidence: Evidence) -> Section | None:
    """Reports four panels for every numeric outcome."""
    outcomes = targets(evidence)
    if not outcomes:
        return None
    how_new = evidence.contribution.novelty(evidence)
    parts: list[Text | Table | Figure] = []
    leads = []
    for target in outcomes:
        usable = target.transform.finite()
        if usable.sum() < 20:
            parts.append(Text("Fewer than twenty rows have a residual: too few to draw."))
            continue
        drawn, lead = _panels(evidence, target, usable, how_new)
        parts.append(drawn)
        leads.append(lead)
    return Section("Residual panels", " ".join(leads), parts)


def _panels(
    evidence: Evidence, target: Target, usable: NDArray[np.bool_], how_new: Novelty | None
) -> tuple[Figure, str]:
    found = quantile_residuals(target.transform.take(usable), seed=evidence.seed, repeats=1)
    z = found.normal[0]
    x, label = _axis(target.fitted[usable], evidence)
    with figure(6.4, 5.2) as paper:
        (a, b), (c, d) = paper.subplots(2, 2)
        bias = draw_along(a, x, z)
        a.set(xlabel=label, ylabel="residual", title="Residuals by prediction")
        draw_normal_qq(b, z)
        b.set_title("Normal QQ")
        scale = draw_along(c, x, np.sqrt(np.abs(z)), centre=ROOT_MEAN, sd=ROOT_SD)
        c.set(xlabel=label, ylabel="√|residual|", title="Scale and location")
        if how_new is None:
            d.set_axis_off()
            d.text(0.5, 0.5, evidence.contribution.no_novelty, ha="center", va="center")
        else:
            _draw_novelty(d, how_new, z, usable)
        if target.name:
            paper.suptitle(target.name)
        svg = to_svg(paper)
    lead = _lead(bias, scale, target.name)
    return Figure(svg, _caption(how_new), lead), lead


def _draw_novelty(axes: "Axes", how_new: Novelty, z: Numbers, usable: NDArray[np.bool_]) -> None:
    """Draws residuals by novelty, which has a long tail, on a logarithmic axis."""
    value = how_new.value[usable]
    positive = value[value > 0]
    if not len(positive):
        axes.set_axis_off()
        axes.text(0.5, 0.5, "all rows duplicate training rows", ha="center", va="center")
        return
    place = np.log10(np.maximum(value, positive.min()))
    draw_along(axes, place, z)
    ticks = _log_ticks(float(place.min()), float(place.max()))
    axes.set_xticks(ticks, [f"{10**tick:.3g}" for tick in ticks])
    axes.set(xlabel=how_new.name, ylabel="residual", title=f"Residuals by {how_new.title}")


def _log_ticks(low: float, high: float) -> list[float]:
    """Chooses ticks at 1, 2, 5, 10, ... or at powers of ten."""
    for steps in ((1, 2, 5), (1,)):
        ticks = [np.log10(step) + k for k in range(-9, 10) for step in steps]
        found = [float(tick) for tick in ticks if low <= tick <= high]
        if len(found) <= 6:
            break
    return found or [low, high]


def _axis(fitted: Numbers, evidence: Evidence) -> tuple[Numbers, str]:
    """Chooses predictions, or their ranks where a few lie far out or are not finite."""
    word = evidence.outcome_report.prediction
    if np.isfinite(fitted).all():
        inner = np.quantile(fitted, [0.05, 0.95])
        if np.ptp(fitted) <= 6 * max(float(np.ptp(inner)), 1e-300):
            return fitted, word
    rank = np.argsort(np.argsort(fitted, kind="stable"), kind="stable")
    return (rank + 0.5) / len(fitted), f"rank of the {word}"


def _lead(bias: float, scale: float, name: str) -> str:
    subject = f"{name}: " if name else ""
    found = []
    if bias > 0.25:
        found.append("their mean depends on the prediction")
    if scale > 0.25:
        found.append("their scale depends on the prediction")
    verdict = " and ".join(found) or "neither their mean nor their scale depends on the prediction"
    words = f"{subject}residuals are normal scores of the outcomes; {verdict}."
    return words[0].upper() + words[1:]


def _caption(how_new: Novelty | None) -> str:
    words = (
        "Quantile residuals as normal scores: standard normal and independent of everything if "
        "the model is right. Lines: local means, with pointwise 95 % bands if calibrated; the band "
        "of the QQ panel is simultaneous."
    )
    return words if how_new is None else f"{words} {how_new.meaning}"


class Smooth(NamedTuple):
    """A smooth line and its standard error."""

    x: Numbers  # ``(M,)``
    value: Numbers  # ``(M,)``
    factor: Numbers  # ``(M,)``: its standard error in standard deviations of a point


def local_linear(x: ArrayLike, y: ArrayLike, *, share: float = 0.5, points: int = 40) -> Smooth:
    r"""Fits local linear regressions with tricube weights.

    .. math:: \hat m(t) = \sum_i l_i(t) y_i, \qquad w_i(t) = (1 - |x_i - t|^3 / h(t)^3)^3_+

    with h(t) the distance to the farthest of ``share`` of the points: loess without robustness.
    As it is linear in y, its variance is :math:`\sigma^2 \sum_i l_i^2`.

    References:
        Cleveland (1979), Robust locally weighted regression and smoothing scatterplots.
        https://doi.org/10.1080/01621459.1979.10481038
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    places = np.unique(np.quantile(x, np.linspace(0.005, 0.995, points)))
    near = max(int(np.ceil(share * len(x))), min(len(x), 3))
    value, factor = np.empty(len(places)), np.empty(len(places))
    for k, t in enumerate(places):
        distance = np.abs(x - t)
        reach = np.partition(distance, near - 1)[near - 1] * (1 + 1e-9)
        w = np.clip(1 - (distance / reach) ** 3, 0, None) ** 3 if reach > 0 else distance == 0
        row = _hat(x - t, np.asarray(w, dtype=np.float64))
        value[k], factor[k] = row @ y, np.sqrt(row @ row)
    return Smooth(places, value, factor)


def _hat(d: Numbers, w: Numbers) -> Numbers:
    """Computes the weights of the points in the fitted value at distance 0."""
    s0, s1, s2 = float(w.sum()), float((w * d).sum()), float((w * d * d).sum())
    determinant = s0 * s2 - s1 * s1
    if determinant <= 1e-10 * s0 * s2 or s0 * s2 == 0:  # all points at one x
        return w / s0
    return w * (s2 - s1 * d) / determinant
