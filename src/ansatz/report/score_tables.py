"""Reports the scores of the model beside its baselines, with standard errors."""

import math
from typing import TYPE_CHECKING

from ansatz.figures.number_format import number, with_error
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD, figure, to_svg
from ansatz.report.baselines import (
    WITHOUT_ERROR,
    MetricComparison,
    Score,
    baselines,
    compare,
    higher_is_better,
)
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 100  # rows below which a standard error is not reliable
COLOURS = {"model": MODEL, "linear": LINEAR, "constant": INK, "boosted trees": THIRD}


def best_baseline(evidence: Evidence) -> str | None:
    """Finds the baseline with the best score in the first metric; None without a baseline."""
    first = next((c for c in compare(evidence) if c.better), None)
    if first is None:
        return None
    return min(first.better, key=lambda name: first.better[name].value)


def verdict(evidence: Evidence) -> str:
    """Writes whether the model beats the best of its baselines; empty without a baseline."""
    baseline = best_baseline(evidence)
    first = next((c for c in compare(evidence) if baseline in c.better), None)
    if baseline is None or first is None:
        return ""
    names = {
        "linear": "the linear model of its likelihood",
        "constant": "the constant model",
    }
    if len(first.better) > 1 + ("constant" in first.better):
        names = {name: f"the best baseline ({names.get(name, name)})" for name in first.better}
    count = float(evidence.weight.sum())
    better = first.better[baseline]
    return assess_difference(
        names.get(baseline, baseline), first.metric, better, count, unit=evidence.unit.many
    )


def assess_difference(
    baseline: str, metric: str, better: Score, rows: float, *, unit: str = "rows"
) -> str:
    """Writes the sentence about a difference; below two standard errors it is not clear."""
    doubt = (
        f" (with {rows:.0f} {unit} the standard error itself is not reliable)" if rows < FEW else ""
    )
    size = with_error(abs(better.value), better.error)
    if abs(better.value) < 1e-9:
        return f"It equals {baseline} in {metric}."
    if not math.isfinite(better.ratio):
        word = "better" if better.value > 0 else "worse"
        return f"It is {word} than {baseline} by {size} in {metric}, without a standard error."
    ratio = f"{abs(better.ratio):.1f} standard errors"
    if abs(better.ratio) > 1000:  # identical differences: only rounding errors remain
        ratio = "more than 1,000 standard errors"
    if abs(better.ratio) < 2:
        return (
            f"It is not distinguishable from {baseline}: the difference in {metric} is "
            f"{with_error(better.value, better.error)}, {ratio}{doubt}."
        )
    if better.value > 0:
        return f"It beats {baseline} by {size} in {metric}, {ratio}{doubt}."
    return f"It loses to {baseline} by {size} in {metric}, {ratio}{doubt}."


def draw_scores(axes: "Axes", comparison: MetricComparison) -> None:
    """Draws every model's score with its 95 % interval as a dot plot."""
    names = list(comparison.scores)
    for place, name in enumerate(names):
        value, error = comparison.scores[name]
        colour = COLOURS.get(name, INK)
        if math.isfinite(error):
            axes.plot([value - 1.96 * error, value + 1.96 * error], [place, place], color=colour)
        axes.plot([value], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    side = "higher" if higher_is_better(comparison.metric) else "lower"
    axes.set_xlabel(f"{comparison.metric} ({side} is better)")


def worst_share(evidence: Evidence, baseline: str) -> float | None:
    """Computes the share of the nll difference due to the 1 % of rows that differ most."""
    found = baselines(evidence)
    other = found.find(baseline)
    mine = found.forecasts[0]
    if other is None or other.losses is None or mine.losses is None:
        return None
    gap = evidence.weight * (other.losses - mine.losses)
    total = float(gap.sum())
    if len(gap) < FEW or total == 0:
        return None
    top = gap.abs().topk(max(1, len(gap) // 100)).indices
    return float(gap[top].sum()) / total


def section(evidence: Evidence) -> Section | None:
    """Reports metrics with standard errors, and paired differences."""
    comparisons = compare(evidence)
    found = baselines(evidence)
    names = [forecast.name for forecast in found.forecasts]
    if not comparisons:
        return None
    parts: list[Text | Table | Figure] = [_score_table(comparisons, names, evidence.unit.many)]
    if len(names) > 1:
        parts.append(_difference_table(evidence, comparisons, names[1:]))
        with figure(6.4, 0.6 + 0.32 * len(names)) as paper:
            draw_scores(paper.subplots(), comparisons[0])
            parts.append(
                Figure(
                    to_svg(paper),
                    f"{comparisons[0].metric} on the test {evidence.unit.many} with 95 % "
                    "intervals. Intervals of two models may overlap although their paired "
                    "difference, in the table above, is clear.",
                    f"Dot plot of {comparisons[0].metric} by model.",
                )
            )
    share = worst_share(evidence, "linear")
    gaps = [c.better["linear"] for c in comparisons if c.metric == "nll" and "linear" in c.better]
    if share is not None and abs(share) > 0.3 and abs(gaps[0].ratio) > 2:
        parts.append(
            Text(
                f"{number(100 * share, 2)} % of the difference in nll to the linear model comes "
                f"from the 1 % of {evidence.unit.many} with the largest differences."
            )
        )
    parts += [Text(note, "note") for note in found.notes]
    lead = verdict(evidence) or f"Metrics on the test {evidence.unit.many}."
    return Section("Scores", lead, parts)


def _score_table(comparisons: list[MetricComparison], names: list[str], unit: str) -> Table:
    rows = [
        [
            f"{c.metric} {'↑' if higher_is_better(c.metric) else '↓'}",
            *(with_error(*c.scores[n]) if n in c.scores else None for n in names),
        ]
        for c in comparisons
    ]
    return Table(
        ["metric", *names],
        rows,
        f"On the test {unit}, ± one standard error; ↑ higher is better, ↓ lower is better."
        + f" All models have the same training {unit}; the notes say which distribution each has."
        * (len(names) > 1),
    )


def _difference_table(
    evidence: Evidence, comparisons: list[MetricComparison], names: list[str]
) -> Table:
    rows: list[list[str | None]] = []
    for c in (c for c in comparisons if c.metric not in WITHOUT_ERROR):
        cells: list[str | None] = []
        for name in names:
            gap = c.better.get(name)
            ratio = "" if gap is None or not math.isfinite(gap.ratio) else f" ({gap.ratio:+.1f})"
            cells.append(None if gap is None else with_error(*gap) + ratio.replace("-", "−"))
        rows.append([c.metric, *cells])
    how = f"Standard errors are of paired {evidence.unit.many}"
    if evidence.group is not None:
        how += ", clustered by group"
    elif evidence.time is not None:
        how += ", Newey and West's over time"
    few = float(evidence.weight.sum()) < FEW
    doubt = f" Below 100 {evidence.unit.many} standard errors are unreliable." * few
    return Table(
        ["model better by", *(f"than {name}" for name in names)],
        rows,
        "Positive where the model is better; in parentheses the difference in standard errors, "
        f"not distinguishable from 0 below 2. {how}.{doubt} They compare these fits, not the "
        "methods.",
    )
