"""Reports Kaplan-Meier curves by predicted risk, with numbers at risk."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import PALETTE, figure, to_svg
from ansatz.metrics import kaplan_meier, log_rank, median_follow_up
from ansatz.outcomes.report.survival import SurvivalRows, survival_rows
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Survival by risk group"
NAMES = ("low risk", "middle risk", "high risk")
_FEWEST = 10  # rows of a group
Numbers = NDArray[np.float64]


def risk_groups(risk: Numbers, weight: Numbers) -> NDArray[np.intp]:
    """Splits rows into thirds by predicted risk, ``(N,)`` from 0, the lowest; ties stay together.

    Args:
        risk: ``(N,)``.
        weight: ``(N,)`` frequency weights.
    """
    order = np.argsort(risk, kind="stable")
    total = np.cumsum(weight[order]) / weight.sum()
    inside = risk[order]
    cuts = np.unique([inside[total >= k / 3 - 1e-12][0] for k in (1, 2)])
    return np.searchsorted(cuts, risk, side="left")


def section(evidence: Evidence) -> Section | None:
    """Reports the curves of three groups by predicted risk, and the log-rank test."""
    rows = survival_rows(evidence)
    if rows is None or int(getattr(evidence.likelihood, "causes", 1)) > 1:
        return None
    outcome, served = evidence.model.of_times, evidence.predictive()
    group = risk_groups(outcome.risk(served), rows.weight)
    counts = np.bincount(group)
    if len(counts) < 2 or counts.min() < _FEWEST or not (rows.cause > 0).any():
        return None
    time, event, weight = (torch.from_numpy(a) for a in (rows.time, rows.cause, rows.weight))
    entry = None if rows.entry is None else torch.from_numpy(rows.entry)
    tested = log_rank(time, event, torch.from_numpy(group), weight, entry)
    names = NAMES if len(counts) == 3 else ("low risk", "high risk")
    ticks = np.linspace(0, float(rows.time.max()), 6)
    with figure(5.2, 3.0) as paper:
        grid = np.linspace(0, float(rows.time.max()), 101)[1:]
        _draw(paper.subplots(), rows, group, names, grid, outcome.survival(served, grid))
        svg = to_svg(paper)
    words = (
        f"Log-rank test of the {len(counts)} groups: chi-squared {tested.chi2:.1f} on {tested.df} "
        f"degrees of freedom, {p_text(tested.p_value)}."
    )
    caption = (
        "Kaplan-Meier curves of the test rows in thirds by predicted risk, and dashed the mean of "
        "the predicted curves of each third."
    )
    return Section(
        TITLE,
        f"{words} {_follow_up(rows)}",
        [
            Figure(svg, caption, words),
            _at_risk(rows, group, names, ticks),
            _events(tested.observed.numpy(), tested.expected.numpy(), counts, names),
            Text(
                "Groups are made by the model's own risks on rows that it did not train on; the "
                "test asks whether they differ, not whether the curves are calibrated.",
                "note",
            ),
        ],
    )


def _draw(
    axes: "Axes",
    rows: SurvivalRows,
    group: NDArray[np.intp],
    names: tuple[str, ...],
    grid: Numbers,
    predicted: Numbers,
) -> None:
    for g, name in enumerate(names):
        mine = group == g
        time, event, weight = (
            torch.from_numpy(a[mine]) for a in (rows.time, rows.cause, rows.weight)
        )
        entry = None if rows.entry is None else torch.from_numpy(rows.entry[mine])
        curve = kaplan_meier(time, event, weight, entry)
        x = np.concatenate([[0.0], curve.times.numpy(), [rows.time[mine].max()]])
        y = np.concatenate([[1.0], curve.values.numpy(), curve.values.numpy()[-1:]])
        axes.step(x[: len(y)], y[: len(x)], where="post", color=PALETTE[g], label=name)
        mean = np.average(predicted[mine], axis=0, weights=rows.weight[mine])
        axes.plot(grid, mean, color=PALETTE[g], ls=(0, (3, 2)), lw=0.9)
    axes.set(ylim=(0, 1.02), xlabel="time", ylabel="survival")
    axes.legend(loc="lower left")


def _at_risk(
    rows: SurvivalRows, group: NDArray[np.intp], names: tuple[str, ...], ticks: Numbers
) -> Table:
    table: list[list[str | float]] = []
    for g, name in enumerate(names):
        there = (group == g) & (rows.time >= ticks[:, None])  # (ticks, N)
        if rows.entry is not None:
            there &= rows.entry < np.maximum(ticks, np.nextafter(0, 1))[:, None]
        table.append([name, *(f"{rows.weight[mask].sum():.0f}" for mask in there)])
    head = ["at risk", *(number(float(t), 3) for t in ticks)]
    return Table(head, table, "Rows at risk at each time.")


def _events(
    observed: Numbers, expected: Numbers, counts: NDArray[np.intp], names: tuple[str, ...]
) -> Table:
    table: list[list[str | float]] = [
        [name, f"{count}", f"{o:.0f}", f"{e:.1f}"]
        for name, count, o, e in zip(names, counts, observed, expected, strict=True)
    ]
    return Table(
        ["group", "rows", "events", "expected"],
        table,
        "Events, and those expected if all groups had one hazard.",
    )


def _follow_up(rows: SurvivalRows) -> str:
    if rows.entry is not None:
        return "With late entry the median follow-up is not defined."
    parts = (torch.from_numpy(a) for a in (rows.time, rows.cause, rows.weight))
    found = median_follow_up(*parts)
    if not math.isfinite(found):
        return "Less than half of the rows would have been censored: no median follow-up."
    return f"Median follow-up (reverse Kaplan-Meier) {number(found, 3)}."
