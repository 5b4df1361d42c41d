"""Reports the coverage of predictive intervals on the test rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.fitting.intervals import interval_of
from ansatz.likelihoods import Distribution, Quantiles
from ansatz.report.evidence import Evidence
from ansatz.report.interval_coverage import (
    Coverage,
    Intervals,
    by_group,
    by_width,
    censored_coverage,
    coverage,
    covered,
    intervals,
)
from ansatz.report.transform import Target, Transform, targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]
LEVELS = (0.5, 0.8, 0.9, 0.95)


def draw_coverage(
    axes: "Axes", found: Sequence[Coverage], *, title: str = "", label: str = ""
) -> None:
    """Draws observed coverage with its intervals against the nominal coverage."""
    x = np.arange(len(found))
    observed = np.array([part.observed for part in found])
    ends = np.array([[part.low, part.high] for part in found])
    nominal = np.array([part.nominal for part in found])
    axes.hlines(nominal, x - 0.35, x + 0.35, color=INK, lw=1.2)
    bars = np.clip(np.abs(ends - observed[:, None]).T, 0, None)
    axes.errorbar(x, observed, yerr=bars, fmt="o", color=MODEL, ms=4, lw=1.3, capsize=0)
    axes.set_xticks(x, [part.label for part in found])
    axes.set_xlim(-0.6, len(found) - 0.4)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.set_xlabel(label)
    axes.set_ylabel("coverage")
    axes.set_title(title)


def section(evidence: Evidence) -> Section | None:
    """Reports coverage at 50, 80, 90 and 95 %, by width and by group; None without intervals."""
    if isinstance(evidence.likelihood, Quantiles):
        return _of_quantiles(evidence)
    outcomes = targets(evidence)
    if not outcomes:
        return None
    parts: list[Text | Table | Figure] = []
    leads = []
    for target in outcomes:
        overall, widths, groups = _of_target(evidence, target)
        leads.append(_lead(overall, target.name))
        parts += _show(overall, widths, groups, target.name)
    return Section("Coverage of the intervals", " ".join(leads), parts)


def _of_target(
    evidence: Evidence, target: Target
) -> tuple[list[Coverage], list[Coverage], list[Coverage]]:
    usable = target.transform.finite()
    found, weight = target.transform.take(usable), evidence.weight.numpy()[usable]
    likelihood = evidence.distribution
    assert likelihood is not None
    if found.censored.any():
        return [_censored(likelihood, found, usable, level, weight) for level in LEVELS], [], []
    whole = [
        _column(intervals(likelihood, evidence.value, level), target, usable) for level in LEVELS
    ]
    overall = [covered(part, weight=weight) for part in whole]
    at_90 = whole[2]
    groups = (
        [] if evidence.group is None else by_group(at_90, evidence.group[usable], weight=weight)
    )
    widths = by_width(at_90, weight=weight) if _varies(at_90.width) else []
    return overall, widths, groups


def _censored(
    distribution: Distribution,
    found: Transform,
    usable: NDArray[np.bool_],
    level: float,
    weight: Numbers,
) -> Coverage:
    with torch.no_grad():
        lower, upper = (end.numpy()[usable] for end in distribution.interval(level))
    width = np.inf if np.isinf(upper).any() else float(np.average(upper - lower, weights=weight))
    return censored_coverage(found, level, weight)._replace(width=width)


def _varies(width: Numbers) -> bool:
    finite = width[np.isfinite(width)]
    return len(finite) >= 40 and float(finite.max()) > 1.02 * max(float(finite.min()), 1e-300)


def _column(found: Intervals, target: Target, usable: NDArray[np.bool_]) -> Intervals:
    pick = (slice(None),) if target.column is None else (slice(None), target.column)
    return Intervals(
        found.level,
        found.inside[pick][usable],
        found.nominal[pick][usable],
        found.width[pick][usable],
    )


def _lead(found: list[Coverage], name: str) -> str:
    subject = f"{name}: " if name else ""
    at_90 = next((part for part in found if part.level == 0.9), found[-1])
    verdict = "as they should"
    if not at_90.holds:
        verdict = "too few" if at_90.observed < at_90.nominal else "too many"
    start = f"{subject}{100 * at_90.level:.0f} % intervals"
    return (
        f"{start[0].upper()}{start[1:]} cover {100 * at_90.observed:.1f} % of the test rows "
        f"({100 * at_90.low:.1f} to {100 * at_90.high:.1f} %), nominally "
        f"{100 * at_90.nominal:.1f} %: {verdict}."
    )


def _show(
    overall: list[Coverage], widths: list[Coverage], groups: list[Coverage], name: str
) -> list[Text | Table | Figure]:
    panels = 1 + bool(widths)
    with figure(6.4 if panels > 1 else 3.4, 2.7) as paper:
        grid = paper.subplots(1, panels, squeeze=False, width_ratios=[1, 2][:panels])[0]
        shown = [part._replace(label=f"{100 * part.level:g}") for part in overall]
        draw_coverage(grid[0], shown, title=name, label="level of the interval, %")
        if widths:
            short = [part._replace(label=part.label.split()[0]) for part in widths]
            label = f"{len(widths)} bins of the rows, narrowest 90 % intervals first"
            draw_coverage(grid[1], short, label=label)
        svg = to_svg(paper)
    caption = (
        "Share of test outcomes inside their equal-tailed intervals, with 95 % Wilson intervals; "
        "lines: nominal coverage."
    )
    parts: list[Text | Table | Figure] = [
        Figure(svg, caption, " ".join(_lead([part], name) for part in overall)),
        Table(
            ["level", "nominal", "observed", "95 % interval", "mean width", "rows"],
            [[f"{100 * part.level:g} %", *_cells(part)] for part in overall],
            _nominal(overall),
        ),
    ]
    for title, found in (
        ("90 % intervals, by width", widths),
        ("90 % intervals, by group", groups),
    ):
        if found:
            rows = [[part.label, *_cells(part)] for part in found]
            head = ["rows", "nominal", "observed", "95 % interval", "mean width", "rows"]
            parts.append(Table(["bin" if found is widths else "group", *head[1:]], rows, title))
    return parts


def _nominal(found: list[Coverage]) -> str:
    words = "Nominal: the probability that the predicted distributions give the intervals."
    if any(part.nominal > part.level + 1e-6 for part in found):
        words += " For whole numbers it is above the level."
    return words


def _cells(part: Coverage) -> list[str | float]:
    return [
        f"{100 * part.nominal:.1f} %",
        f"{100 * part.observed:.1f} %",
        f"{100 * part.low:.1f} to {100 * part.high:.1f} %",
        part.width,
        round(part.rows) if part.rows == round(part.rows) else part.rows,
    ]


def _of_quantiles(evidence: Evidence) -> Section | None:
    """Reports intervals between fitted quantiles, where both ends were fitted."""
    weight, y = evidence.weight.numpy(), evidence.outcome.numpy()
    if y.ndim > 1:
        return None
    found = []
    for level in LEVELS:
        try:
            ends = interval_of(evidence.model, evidence.predictive(), level)
        except ValueError:  # no such quantile was fitted
            continue
        inside = (y >= ends[:, 0]) & (y <= ends[:, 1])
        whole = np.full(len(y), level)
        found.append(coverage(inside, whole, ends[:, 1] - ends[:, 0], level=level, weight=weight))
    if not found:
        return None
    lead = _lead(found, "")
    return Section("Coverage of the intervals", lead, _show(found, [], [], ""))
