"""Reports the calibration of predicted vectors and directions."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.figures.number_format import printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import LINEAR, MODEL, figure, to_svg
from ansatz.likelihoods import Distribution, VectorDistribution
from ansatz.report.effect import EffectSize, cluster_sums, ratio
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import effect_row, normal_scores
from ansatz.report.pit import PitHistogram, draw_pit, pit_histogram
from ansatz.report.transform import Transform, transform

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]
MOST = 7  # components shown
_BLOCK = 2**21


def average_rank(
    distribution: VectorDistribution, y: Tensor, *, draws: int = 99, seed: int = 0
) -> Transform:
    r"""Ranks each outcome among draws of its predicted distribution, as an interval of [0, 1].

    A vector is ranked by the mean of the ranks of its components among outcome and draws. The
    rank of the outcome is uniform on 1, ..., S + 1 if calibrated; rank r is the interval
    [(r - 1) / (S + 1), r / (S + 1)], ties share theirs.

    References:
        Thorarinsdottir, Scheuerer and Heinz (2016), Assessing the calibration of high-dimensional
        ensemble forecasts using rank histograms. https://doi.org/10.1080/10618600.2014.977447
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        drawn = distribution.sample((draws,), generator=generator).double()  # (S, N, K)
    lower, upper = torch.empty(len(y)), torch.empty(len(y))
    size = max(1, _BLOCK // (drawn.shape[-1] * (draws + 1) ** 2))
    for rows in torch.arange(len(y)).split(size):
        pool = torch.cat([y[rows].double().unsqueeze(0), drawn[:, rows]])  # (S + 1, n, K)
        ahead = (pool.unsqueeze(1) > pool.unsqueeze(0)).double()
        equal = (pool.unsqueeze(1) == pool.unsqueeze(0)).double()
        rank = (ahead + 0.5 * equal).sum(1).mean(-1)  # (S + 1, n)
        below = (rank[1:] < rank[0] - 1e-9).sum(0)
        ties = ((rank[1:] - rank[0]).abs() <= 1e-9).sum(0)
        lower[rows] = (below / (draws + 1)).to(lower)
        upper[rows] = ((below + ties + 1) / (draws + 1)).to(upper)
    low, high = lower.double().numpy(), upper.double().numpy()
    return Transform(low, high, 1 - low, 1 - high, np.zeros(len(low), dtype=np.bool_))


def draw_histograms(axes: "list[Axes]", found: dict[str, PitHistogram]) -> None:
    """Draws a histogram in each of the axes."""
    for place, (name, histogram) in zip(axes, found.items(), strict=False):
        draw_pit(place, histogram, name)
        place.set_xlabel("rank" if name == "joint" else "F(y)")
    for place in axes[len(found) :]:
        place.set_axis_off()


def section(evidence: Evidence) -> Section | None:
    """Reports histograms of the components and of joint ranks; None for other outcomes."""
    likelihood = evidence.distribution
    if not isinstance(likelihood, VectorDistribution):
        return None
    weight = evidence.weight.numpy()
    names = evidence.model.outcome.names
    count = evidence.value.shape[-1]
    labels = [printable(names[k], 24) if k < len(names) else f"y{k}" for k in range(count)]
    found = {}
    parts: dict[str, Transform] = {}
    whole = transform(likelihood.marginal, evidence.value)
    for k in range(min(count, MOST)):
        parts[labels[k]] = whole.take((slice(None), k))
    parts["joint"] = average_rank(likelihood, evidence.value, seed=evidence.seed)
    rows: list[list[str]] = []
    for name, part in parts.items():
        usable = part.finite()
        group = None if evidence.group is None else evidence.group[usable]
        kept = part.take(usable)
        found[name] = pit_histogram(kept, weight=weight[usable], seed=evidence.seed)
        scores = normal_scores(kept, weight=weight[usable], group=group)
        rows += [effect_row(scores.location, f"{name}: "), effect_row(scores.scale, f"{name}: ")]
    return Section("Calibration of the predictions", _lead(found), _show(found, rows))


def _lead(found: dict[str, PitHistogram]) -> str:
    off = [name for name, histogram in found.items() if not histogram.holds]
    if not off:
        return "Every component and their joint distribution are calibrated."
    return f"Not calibrated: {', '.join(off)}."


def _show(found: dict[str, PitHistogram], rows: list[list[str]]) -> list[Text | Table | Figure]:
    columns = min(len(found), 4)
    lines = -(-len(found) // columns)
    with figure(6.6, 2.1 * lines + 0.2) as paper:
        grid = paper.subplots(lines, columns, squeeze=False)
        draw_histograms(list(grid.flat), found)
        svg = to_svg(paper)
    caption = (
        "Histograms of each component's probability integral transform under its marginal "
        "distribution, and of the rank of the whole vector among 99 draws of its joint "
        "distribution (by the mean rank of its components). Flat if calibrated. Bands: 95 % of the "
        "bars of a calibrated forecast, each by itself (inner) and all together (outer)."
    )
    head = ["", "estimate", "95 % interval", "if calibrated", "p"]
    return [
        Figure(svg, caption, _lead(found)),
        Table(head, rows, "Location and scale of the normal scores of transforms and ranks."),
    ]


class AngularErrors(NamedTuple):
    """Errors of predicted directions."""

    error: Numbers  # ``(N,)``, from the predicted mean direction to the outcome, in (-pi, pi]
    bias: EffectSize  # their mean direction, 0 if calibrated
    concentration: EffectSize  # observed over expected mean cosine; below 1 overconfident


def angular_errors(
    distribution: Distribution,
    y: Tensor,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> AngularErrors:
    r"""Estimates bias and concentration of errors, with 95 % intervals.

    With e the angle from the mean direction, the bias is the angle of the mean of (cos e, sin e),
    and the expected cosine of each row is 1 minus its circular variance.

    References:
        Mardia and Jupp (2000), Directional Statistics, chapter 5.
    """
    with torch.no_grad():
        gap = (y.double() - distribution.mean.double()).numpy()
        expected = (1 - distribution.variance).double().numpy()
    error = gap - 2 * np.pi * np.round(gap / (2 * np.pi))
    w = np.ones(len(error)) if weight is None else np.asarray(weight, dtype=np.float64)
    cosine, sine = (float(np.average(f(error), weights=w)) for f in (np.cos, np.sin))
    angle = math.atan2(sine, cosine)
    length = math.hypot(cosine, sine)
    off = np.sin(error - angle)  # of mean 0
    variance = (w * off**2).sum() if group is None else (cluster_sums(w * off, group) ** 2).sum()
    reach = 1.96 * math.sqrt(float(variance)) / (w.sum() * max(length, 1e-12))
    bias = EffectSize("bias, radians", angle, angle - reach, angle + reach, 0.0)
    name = "mean cosine of errors, observed / expected"
    return AngularErrors(error, bias, ratio(name, np.cos(error), expected, weight=w, group=group))


def draw_errors(axes: "Axes", found: AngularErrors, density: tuple[Numbers, Numbers]) -> None:
    """Draws the histogram of errors and the mean predicted density."""
    edges = np.linspace(-np.pi, np.pi, int(np.clip(len(found.error) // 12, 9, 37)))
    heights, _ = np.histogram(found.error, edges, density=True)
    axes.stairs(heights, edges, color=MODEL, fill=True, alpha=0.45, label="errors")
    axes.plot(*density, color=LINEAR, label="predicted")
    axes.set_xlim(-np.pi, np.pi)
    axes.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    axes.set_xlabel("outcome − predicted mean direction")
    axes.set_ylabel("density")
    axes.legend(loc="upper right")


def directions_section(evidence: Evidence) -> Section | None:
    """Reports errors of directions; None for other outcomes."""
    likelihood = evidence.distribution
    if likelihood is None or not getattr(likelihood, "circular", False) or evidence.value.ndim > 1:
        return None
    weight = evidence.weight.numpy()
    found = angular_errors(likelihood, evidence.value, weight=weight, group=evidence.group)
    with figure(5.2, 2.6) as paper:
        draw_errors(paper.subplots(), found, _mean_density(likelihood, weight))
        svg = to_svg(paper)
    size = float(np.average(np.abs(found.error), weights=weight))
    bias, sure = found.bias, found.concentration
    lead = (
        f"Outcomes lie {size:.2f} radians from the predicted direction on average; the mean cosine "
        f"of the errors is {sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f}) times the "
        "predicted one; below 1 the predictions are overconfident."
    )
    caption = (
        "Angles between outcomes and predicted mean directions, and the mean predicted density, "
        "which follows the histogram if calibrated."
    )
    head = ["", "estimate", "95 % interval", "if calibrated", "p"]
    rows = [effect_row(bias), effect_row(sure)]
    return Section("Errors of direction", lead, [Figure(svg, caption, lead), Table(head, rows, "")])


def _mean_density(distribution: Distribution, weight: Numbers) -> tuple[Numbers, Numbers]:
    angle = torch.linspace(-math.pi, math.pi, 121, dtype=torch.float64)
    with torch.no_grad():
        heights = (
            distribution.log_prob(distribution.mean + angle.unsqueeze(1)).exp().double().numpy()
        )  # (121, N)
    return angle.numpy(), np.average(heights, axis=1, weights=weight)
