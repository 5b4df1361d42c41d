"""Draws histograms of the probability integral transform, flat if calibrated."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.metrics import kaplan_meier
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import NormalScores, describe_scores, effect_row, normal_scores
from ansatz.report.transform import EXACT, Target, Transform, targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]


class PitHistogram(NamedTuple):
    """Heights of the bars, 1 if uniform, and the bands of a calibrated forecast."""

    edges: Numbers  # ``(J + 1,)``
    heights: Numbers  # ``(J,)``
    low: float  # a single bar lies between low and high with probability 95 %
    high: float
    all_low: float  # all bars lie between all_low and all_high with probability 95 %
    all_high: float
    rows: float  # number of rows, by weight

    @property
    def largest(self) -> float:
        """The height furthest from 1."""
        return float(self.heights[np.abs(self.heights - 1).argmax()])

    @property
    def holds(self) -> bool:
        """Whether all bars lie within the simultaneous band."""
        return bool(((self.heights >= self.all_low) & (self.heights <= self.all_high)).all())


def mean_pit(found: Transform, u: ArrayLike, weight: ArrayLike | None = None) -> Numbers:
    r"""Computes the distribution function of the transforms at ``u``, without randomisation.

    .. math:: \bar F(u) = \frac{1}{n} \sum_i \min\left(\max\left(
              \frac{u - F_i(y_i^-)}{F_i(y_i) - F_i(y_i^-)}, 0\right), 1\right)

    A row of a continuous distribution is a step at F(y); a count is uniform over its jump, an
    interval-censored row over its interval. With right-censored rows it is 1 minus the
    Kaplan-Meier curve of the transforms.

    References:
        Czado, Gneiting and Held (2009), Predictive model assessment for count data, eq. 2.
        https://doi.org/10.1111/j.1541-0420.2009.01191.x
    """
    at = np.asarray(u, dtype=np.float64)
    w = np.ones(len(found.lower)) if weight is None else np.asarray(weight, dtype=np.float64)
    right = found.censored & (found.above_upper <= 0)
    if right.any():
        return _by_kaplan_meier(found, right, at, w)
    width = found.upper - found.lower
    point = width < EXACT
    values = np.empty(len(at))
    for k, level in enumerate(at):
        part = np.clip((level - found.lower) / np.where(point, 1.0, width), 0, 1)
        values[k] = np.average(np.where(point, found.upper <= level, part), weights=w)
    return values


def _by_kaplan_meier(
    found: Transform, right: NDArray[np.bool_], at: Numbers, w: Numbers
) -> Numbers:
    place = np.where(right, found.lower, (found.lower + found.upper) / 2)
    curve = kaplan_meier(
        torch.from_numpy(place), torch.from_numpy((~right).astype(np.int64)), torch.from_numpy(w)
    )
    values = 1 - curve.at(torch.from_numpy(at)).numpy()
    # Beyond the last uncensored transform only F <= 1 is known.
    return np.where(at >= 1, 1.0, values)


def pit_histogram(
    found: Transform, bins: int | None = None, *, weight: ArrayLike | None = None, seed: int = 0
) -> PitHistogram:
    r"""Heights :math:`J (\bar F(j/J) - \bar F((j-1)/J))` with the bands of a calibrated forecast.

    A bar of a calibrated continuous forecast holds a binomial number of rows. For counts the band
    is conservative; for censored rows it uses the number of uncensored ones. The simultaneous
    band is that of a multinomial sample, by simulation.

    Args:
        found: the transforms.
        bins: J; by default 5 to 20, about 30 rows in each.
        weight: ``(N,)`` frequency weights.
        seed: of the simulation.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import pit_histogram, transform
        >>> from ansatz.likelihoods import NormalDistribution
        >>> biased = NormalDistribution(torch.ones(200), torch.ones(200))
        >>> outcomes = torch.randn(200, generator=torch.Generator().manual_seed(0))
        >>> histogram = pit_histogram(transform(biased, outcomes))
        >>> histogram.holds, bool(histogram.heights[0] > histogram.heights[-1])
        (False, True)

    References:
        Czado, Gneiting and Held (2009), Predictive model assessment for count data.
        https://doi.org/10.1111/j.1541-0420.2009.01191.x
    """
    w = np.ones(len(found.lower)) if weight is None else np.asarray(weight, dtype=np.float64)
    rows = float(w[~found.censored].sum())
    count = bins or int(np.clip(rows // 30, 5, 20))
    edges = np.linspace(0, 1, count + 1)
    heights = count * np.diff(mean_pit(found, edges, w))
    n = max(round(rows), 1)
    each = stats.binom(n, 1 / count)
    low, high = (float(each.ppf(q)) * count / n for q in (0.025, 0.975))
    all_low, all_high = _simultaneous(n, count, seed)
    return PitHistogram(edges, heights, low, high, all_low, all_high, float(w.sum()))


@lru_cache(maxsize=64)
def _simultaneous(n: int, bins: int, seed: int, draws: int = 4000) -> tuple[float, float]:
    generator = np.random.default_rng(seed)
    heights = generator.multinomial(n, np.full(bins, 1 / bins), size=draws) * bins / n
    # Equal tails on both sides, so small that 95 % of the samples stay inside at all bars.
    each = stats.binom(n, 1 / bins)
    worst = np.minimum(each.cdf(heights.min(1) * n / bins), each.sf(heights.max(1) * n / bins - 1))
    tail = float(np.quantile(worst, 0.05, method="lower")) * (1 - 1e-9)  # it is still inside
    return float(each.ppf(tail)) * bins / n, float(each.isf(tail)) * bins / n


def draw_pit(axes: "Axes", histogram: PitHistogram, title: str = "") -> None:
    """Draws the bars of the histogram over the bands of a calibrated forecast.

    Args:
        axes: of matplotlib.
        histogram: from :func:`pit_histogram`.
        title: of the plot.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import draw_pit, pit_histogram, transform
        >>> from ansatz.figures import figure
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(90), torch.ones(90))
        >>> with figure(4, 3) as paper:
        ...     axes = paper.subplots()
        ...     draw_pit(axes, pit_histogram(transform(standard, torch.randn(90))), "model")
        >>> axes.get_title(loc="left")
        'model'
    """
    axes.axhspan(histogram.all_low, histogram.all_high, color=INK, alpha=0.12, lw=0)
    axes.axhspan(histogram.low, histogram.high, color=INK, alpha=0.18, lw=0)
    axes.axhline(1.0, color=INK, lw=0.8)
    axes.stairs(histogram.heights, histogram.edges, color=MODEL, fill=True, alpha=0.45, lw=0)
    axes.stairs(histogram.heights, histogram.edges, baseline=None, color=MODEL, lw=1.3)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.08 * max(histogram.heights.max(), histogram.all_high))
    axes.set_xlabel("probability integral transform F(y)")
    axes.set_ylabel("relative frequency")
    axes.set_title(title)


def section(evidence: Evidence) -> Section | None:
    """Reports the histogram of every numeric outcome; None where there is none."""
    outcomes = targets(evidence)
    if not outcomes:
        return None
    weight = evidence.weight.numpy()
    parts: list[Text | Table | Figure] = []
    leads, rows = [], []
    with figure(6.4, 2.6 if len(outcomes) < 3 else 5.0) as paper:
        grid = paper.subplots(-(-len(outcomes) // 2), min(len(outcomes), 2), squeeze=False)
        for axes, target in zip(grid.flat, outcomes, strict=False):
            usable = target.transform.finite()
            found = target.transform.take(usable)
            if not len(found.lower):
                continue
            group = None if evidence.group is None else evidence.group[usable]
            histogram = pit_histogram(found, weight=weight[usable], seed=evidence.seed)
            scores = normal_scores(found, weight=weight[usable], group=group)
            draw_pit(axes, histogram, target.name)
            leads.append(_lead(histogram, scores, target.name))
            rows += _rows(target, histogram, scores)
        for axes in grid.flat[len(outcomes) :]:
            axes.set_axis_off()
        svg = to_svg(paper)
    parts.append(Figure(svg, _caption(evidence, outcomes), _alt(rows)))
    head = ["", "estimate", "95 % interval", "if calibrated", "p"]
    parts.append(
        Table(
            head,
            rows,
            "Normal scores are the transforms as standard normal quantiles. Their location is the "
            "bias in predicted standard deviations; their scale is the factor by which the "
            "predicted standard deviation is too small (above 1) or too large (below 1).",
        )
    )
    return Section("Calibration of the predictions", " ".join(leads), parts)


def _lead(histogram: PitHistogram, scores: NormalScores, name: str) -> str:
    sentence = describe_scores(scores, name)
    if histogram.holds:
        return sentence
    low, high = float(histogram.heights.min()), float(histogram.heights.max())
    return (
        f"{sentence} The shape is off: bars of the histogram from {low:.2f} to {high:.2f}, if "
        f"calibrated between {histogram.all_low:.2f} and {histogram.all_high:.2f}."
    )


def _rows(target: Target, histogram: PitHistogram, scores: NormalScores) -> list[list[str]]:
    name = f"{target.name}: " if target.name else ""
    band = f"{histogram.all_low:.2f} to {histogram.all_high:.2f}"
    verdict = "within the band" if histogram.holds else "outside the band"
    return [
        effect_row(scores.location, name),
        effect_row(scores.scale, name),
        [f"{name}bar furthest from 1", f"{histogram.largest:.2f}", "–", band, verdict],
    ]


def _caption(evidence: Evidence, outcomes: list[Target]) -> str:
    likelihood = evidence.distribution
    words = [
        "Histogram of F(y), each test outcome on the scale of its own predicted distribution "
        "function. Flat: calibrated; U-shaped: predicted distributions too narrow; hump-shaped: "
        "too wide; sloped: biased. Bands: 95 % of the bars of a calibrated forecast, each by "
        "itself (inner) and all together (outer)."
    ]
    if likelihood is not None and likelihood.discrete:
        words.append(
            "Counts are uniform over the jump of the distribution function (Czado, Gneiting and "
            "Held), which makes the band conservative."
        )
    if any(target.rounding for target in outcomes):
        step = next(target.rounding for target in outcomes if target.rounding)
        words.append(f"Outcomes are rounded to {step:g}, which is taken into account.")
    if any(target.transform.censored.any() for target in outcomes):
        words.append("Censored rows enter by the Kaplan-Meier curve of the transforms.")
    return " ".join(words)


def _alt(rows: list[list[str]]) -> str:
    return "Histogram of probability integral transforms. " + "; ".join(
        f"{row[0]} {row[1]}" for row in rows
    )
