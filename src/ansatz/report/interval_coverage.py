"""Computes the coverage of predictive intervals on held-out rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.figures.number_format import printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.fitting.intervals import interval_of
from ansatz.likelihoods import Distribution, Quantiles
from ansatz.metrics import kaplan_meier
from ansatz.report.effect import wilson
from ansatz.report.evidence import Evidence
from ansatz.report.transform import Target, Transform, targets, transform

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]


class Coverage(NamedTuple):
    """The coverage of intervals on some rows."""

    label: str  # of the rows
    level: float
    nominal: float  # mean predicted probability of the intervals; for counts above the level
    observed: float  # the share of the rows inside
    low: float  # of the 95 % interval of the share
    high: float
    width: float  # the mean length of the intervals; infinite where any is
    rows: float  # number of rows, by weight

    @property
    def holds(self) -> bool:
        """Whether the interval of the observed share contains the nominal share."""
        return self.low <= self.nominal <= self.high


def coverage(
    inside: ArrayLike,
    nominal: ArrayLike,
    width: ArrayLike,
    *,
    level: float,
    weight: ArrayLike | None = None,
    label: str = "all rows",
) -> Coverage:
    """Computes the share of rows inside their intervals, with Wilson's interval."""
    held = np.asarray(inside, dtype=np.float64)
    w = np.ones(len(held)) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    share = wilson(float((w * held).sum()), total)
    if not total > 0:
        return Coverage(label, level, level, *share, float("nan"), 0.0)
    mean, length = (float(np.average(np.asarray(part), weights=w)) for part in (nominal, width))
    return Coverage(label, level, mean, *share, length, total)


class Intervals(NamedTuple):
    """The intervals of one level on every row."""

    level: float
    inside: NDArray[np.bool_]  # ``(N,)``, whether the outcome lies inside
    nominal: Numbers  # ``(N,)``, the predicted probability
    width: Numbers  # ``(N,)``


def intervals(
    distribution: Distribution, y: Tensor, level: float, found: Transform | None = None
) -> Intervals:
    r"""Computes equal-tailed intervals and whether they contain the outcomes.

    The interval from the :math:`\alpha/2` to the :math:`1 - \alpha/2` quantile contains y where
    :math:`F(y) \ge \alpha/2` and :math:`F(y^-) < 1 - \alpha/2`. Its nominal coverage
    :math:`F(u) - F(l^-)` is above :math:`1 - \alpha` for discrete distributions.

    Args:
        distribution: the predicted distribution of each outcome.
        y: ``(N,)`` or ``(N, K)``.
        level: :math:`1 - \alpha`.
        found: the transforms, if already computed.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import intervals
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(3), torch.ones(3))
        >>> intervals(standard, torch.tensor([0.0, 1.0, 2.0]), 0.9).inside
        array([ True,  True, False])
    """
    found = transform(distribution, y) if found is None else found
    tail = (1 - level) / 2
    inside = (found.upper >= tail) & (found.lower < 1 - tail)
    with torch.no_grad():
        lower, upper = distribution.interval(level)
        before = (
            lower - 1
            if distribution.discrete
            else torch.nextafter(lower, torch.full_like(lower, -torch.inf))
        )
        if getattr(distribution, "circular", False):
            nominal = torch.full_like(lower, level)
        else:
            nominal = distribution.cdf(upper) - distribution.cdf(before)
    return Intervals(level, inside, nominal.double().numpy(), (upper - lower).double().numpy())


def covered(
    found: Intervals, *, weight: ArrayLike | None = None, rows: Any = slice(None), label: str = ""
) -> Coverage:
    """Computes the coverage of intervals on some of the rows.

    Args:
        found: the intervals.
        weight: ``(N,)`` frequency weights.
        rows: an index of the rows to use.
        label: the name of these rows.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import covered, intervals
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(4), torch.ones(4))
        >>> covered(intervals(standard, torch.tensor([0.0, 1.0, 1.5, 2.0]), 0.9)).observed
        0.75
    """
    w = np.ones(len(found.inside)) if weight is None else np.asarray(weight, dtype=np.float64)
    parts = (found.inside[rows], found.nominal[rows], found.width[rows])
    return coverage(*parts, level=found.level, weight=w[rows], label=label or "all rows")


def censored_coverage(found: Transform, level: float, weight: ArrayLike | None = None) -> Coverage:
    r"""Estimates the coverage where some outcomes are censored.

    By the Kaplan-Meier curve S of the transforms: :math:`S(\alpha/2) - S(1 - \alpha/2)`, with
    Wilson's interval for the number of rows that would give the same variance.
    """
    w = np.ones(len(found.lower)) if weight is None else np.asarray(weight, dtype=np.float64)
    right = found.censored & (found.above_upper <= 0)
    place = np.where(right, found.lower, (found.lower + found.upper) / 2)
    time, event = torch.from_numpy(place), torch.from_numpy((~right).astype(np.int64))
    curve = kaplan_meier(time, event, torch.from_numpy(w))
    tail = (1 - level) / 2
    ends = torch.tensor([tail, 1 - tail], dtype=torch.float64)
    below, above = (float(v) for v in curve.at(ends))
    share = below - above
    variance = _variance(place, right, w, curve.times.numpy(), curve.values.numpy(), tail)
    total = share * (1 - share) / variance if variance > 0 else float(w[~right].sum())
    interval = wilson(share * total, total)
    return Coverage("all rows", level, level, *interval, float("nan"), float(w.sum()))


def _variance(
    place: Numbers,
    right: NDArray[np.bool_],
    w: Numbers,
    times: Numbers,
    values: Numbers,
    tail: float,
) -> float:
    """Greenwood's variance of S(a) - S(b) with a < b: both are functions of the same hazards."""
    order = np.argsort(place)
    risk = w.sum() - np.concatenate([[0.0], np.cumsum(w[order])])
    at_risk = risk[np.searchsorted(place[order], times)]
    before = np.concatenate([[1.0], values[:-1]])
    hazard = 1 - values / np.where(before > 0, before, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(hazard < 1, hazard / ((1 - hazard) * at_risk), 0.0)
    early, middle = step[times <= tail].sum(), step[(times > tail) & (times <= 1 - tail)].sum()
    s_a = values[times <= tail][-1] if (times <= tail).any() else 1.0
    s_b = values[times <= 1 - tail][-1] if (times <= 1 - tail).any() else 1.0
    return float((s_a - s_b) ** 2 * early + s_b**2 * middle)


def by_width(
    found: Intervals, *, weight: ArrayLike | None = None, bins: int = 10
) -> list[Coverage]:
    """Computes the coverage in bins of rows of equal size, ordered by the width of the interval.

    Intervals that are calibrated on average may be too narrow where they are narrow.
    """
    order = np.argsort(np.nan_to_num(found.width, posinf=np.finfo(np.float64).max), kind="stable")
    split = np.array_split(order, max(1, min(bins, len(order) // 20)))
    return [
        covered(found, weight=weight, rows=rows, label=f"{k} of {len(split)}")
        for k, rows in enumerate(split, 1)
    ]


def by_group(
    found: Intervals, group: ArrayLike, *, weight: ArrayLike | None = None, most: int = 10
) -> list[Coverage]:
    """Computes the coverage in the largest groups, of at least 20 rows each."""
    names = np.asarray(group).astype(str)
    labels, counts = np.unique(names, return_counts=True)
    chosen = [k for k in np.argsort(-counts, kind="stable")[:most] if counts[k] >= 20]
    return [
        covered(found, weight=weight, rows=names == labels[k], label=printable(labels[k], 40))
        for k in chosen
    ]


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
