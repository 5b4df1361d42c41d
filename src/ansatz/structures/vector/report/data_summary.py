"""Summarises the data: rows, columns, outcomes, notes of the fit."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data.categorical import spelled
from ansatz.data.dates import as_dates
from ansatz.data.description import table_one
from ansatz.figures.number_format import number, percent, printable
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ansatz.data import Column

MOST_COLUMNS = 60  # in the table
MOST_PANELS = 24  # drawn
TOP = 4  # levels listed by name


class ColumnSummary(NamedTuple):
    """A summary of a column."""

    name: str
    role: str
    missing: int
    distinct: int
    words: str  # quantiles, or the most frequent levels with their shares
    counts: NDArray[np.int64]  # of the bars of its small histogram
    edges: NDArray[np.float64]  # of the bars; empty for levels


def summarize_column(cells: "pd.Series", column: "Column") -> ColumnSummary:
    """Summarises a column by quantiles or its most frequent levels, with a histogram."""
    missing = int(cells.isna().sum())
    words, counts, edges = "", np.zeros(0, dtype=np.int64), np.zeros(0)
    if missing == len(cells):
        return ColumnSummary(column.name, column.role, missing, 0, "nothing", counts, edges)
    codes, levels = spelled(cells)
    distinct = len(np.unique(codes[codes >= 0]))
    if column.role == "date":
        days = as_dates(cells).dropna().sort_values()
        words = f"{days.iloc[0].date()} to {days.iloc[-1].date()}"
        counts, edges = np.histogram(days.astype("int64").to_numpy(dtype=np.float64), bins=20)
    elif column.role == "numeric" or (cells.dtype.kind in "iuf" and column.role != "categorical"):
        values = cells.dropna().to_numpy(dtype=np.float64)
        at = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
        words = " · ".join(number(float(value), 3) for value in at)
        counts, edges = np.histogram(values, bins=min(20, max(2, distinct)))
    else:
        every = np.bincount(codes[codes >= 0])
        order = np.argsort(-every, kind="stable")
        top = [
            f"{printable(levels[k], 24)} {percent(every[k] / len(cells), 0)}" for k in order[:TOP]
        ]
        rest = [f"{distinct - TOP} more"] if distinct > TOP else []
        words, counts = ", ".join(top + rest), every[order][:20].astype(np.int64)
    return ColumnSummary(column.name, column.role, missing, distinct, words, counts, edges)


def draw_column(axes: "Axes", summary: ColumnSummary) -> None:
    """Draws a small histogram, or bars of the most frequent levels."""
    axes.set_title(printable(summary.name, 22), fontsize=8, color=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    if not len(summary.counts):
        axes.text(0.5, 0.5, "all missing", ha="center", va="center", transform=axes.transAxes)
    elif len(summary.edges):
        axes.stairs(summary.counts, summary.edges, fill=True, color=MODEL, alpha=0.75)
        axes.set_xticks(
            [summary.edges[0], summary.edges[-1]],
            ["", ""]
            if summary.role == "date"
            else [number(float(e), 3) for e in summary.edges[[0, -1]]],
            fontsize=7,
        )
        first, last = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
        axes.tick_params(length=0)
    else:
        axes.bar(range(len(summary.counts)), summary.counts, color=MODEL, alpha=0.75, width=0.7)


def section(evidence: Evidence) -> Section | None:
    """Reports rows, columns, small histograms, and the notes of the fit about its data."""
    frame, where = _rows(evidence)
    summaries = [
        summarize_column(frame[column.name], column)
        for column in evidence.columns[:MOST_COLUMNS]
        if column.name in frame.columns
    ]
    parts: list[Text | Table | Figure] = []
    if summaries:
        parts.append(_table(summaries, len(frame), where))
        parts.append(_histograms(summaries[:MOST_PANELS], len(evidence.columns)))
    left = len(evidence.columns) - len(summaries)
    if left > 0:
        parts.append(Text(f"{left} further columns are not listed.", "note"))
    parts += _by_outcome(evidence)
    parts += _outcomes(evidence)
    parts += [Text(note, _kind(note)) for note in evidence.fit.get("notes", [])]
    return Section("The data", _lead(evidence), parts)


def _lead(evidence: Evidence) -> str:
    used = sum(column.used for column in evidence.columns)
    rows = f"{len(evidence.weight)} test rows"
    if evidence.training is not None:
        rows = f"{len(evidence.training.weight)} training rows and {rows}"
    left = len(evidence.columns) - used
    more = f", {left} not used" if left else ""
    features = f"{used} features{more}" if used != 1 else f"1 feature{more}"
    return f"{rows}; {features}; the outcome is {printable(evidence.target, 120)}."


def _rows(evidence: Evidence) -> tuple["pd.DataFrame", str]:
    if evidence.training is not None:
        return evidence.training.X, "the training rows"
    return evidence.X, "the test rows"


def _table(summaries: list[ColumnSummary], count: int, where: str) -> Table:
    rows: list[list[Cell]] = [
        [s.name, s.role, percent(s.missing / count) if s.missing else "", s.distinct, s.words]
        for s in summaries
    ]
    return Table(
        ["column", "role", "missing", "distinct", "values"],
        rows,
        f"Columns of {where}. Numbers: minimum, quartiles, maximum; levels: the most frequent "
        "with their share of the rows.",
    )


def _histograms(summaries: list[ColumnSummary], every: int) -> Figure:
    across = min(6, len(summaries))
    down = -(-len(summaries) // across)
    with figure(min(7.2, 1.2 * across + 0.4), 0.95 * down + 0.1) as paper:
        panels = paper.subplots(down, across, squeeze=False).ravel()
        for axes, summary in zip(panels, summaries, strict=False):
            draw_column(axes, summary)
        for axes in panels[len(summaries) :]:
            axes.set_axis_off()
        drawn = to_svg(paper)
    first = f" (the first {len(summaries)})" if every > len(summaries) else ""
    return Figure(
        drawn,
        f"Distribution of the columns{first}; levels by falling frequency.",
        f"Small histograms of {len(summaries)} columns.",
    )


def _by_outcome(evidence: Evidence) -> list[Text | Table | Figure]:
    """Describes the columns by levels or tertiles of the outcome, as Table 1 of a study does."""
    import pandas as pd

    frame, where = _rows(evidence)
    y = evidence.y if evidence.training is None else evidence.training.y
    if isinstance(y, pd.DataFrame) and "event" in y.columns:
        y = y["event"]
    values = np.asarray(y)
    columns = [c for c in evidence.columns[:MOST_COLUMNS] if c.name in frame.columns and c.used]
    if values.ndim != 1 or len(values) != len(frame) or not columns:
        return []
    name = next(word for word in ("outcome", "outcome_", "outcome__") if word not in frame.columns)
    cells = pd.Series(values, index=frame.index)
    found = table_one(frame.assign(**{name: cells}), name, columns)
    head = [printable(column, 40) for column in found.columns]
    rows: list[list[Cell]] = [[str(cell) for cell in row] for row in found.to_numpy()]
    words = "Mean (standard deviation), or median [quartiles] of skewed columns; counts (percent)"
    caption = f"Columns of {where} by {printable(evidence.target, 60)}. {words}."
    return [Table(head, rows, caption)]


def _outcomes(evidence: Evidence) -> list[Text | Table | Figure]:
    """Reports the outcome in training and test rows: classes, or quantiles of numbers."""
    learned = None if evidence.training is None else evidence.training.job.y.numpy()
    parts = [("training", learned), ("test", evidence.outcome.numpy())]
    known = [(name, values) for name, values in parts if values is not None]
    if evidence.classes is not None and evidence.outcome.ndim == 1:
        rows: list[list[Any]] = []
        for code, label in enumerate(evidence.classes[:20]):
            shares = [percent(float(np.mean(values == code))) for _, values in known]
            rows.append([str(label), *shares])
        more = f" Of {len(evidence.classes)} classes, 20 are shown." * (len(evidence.classes) > 20)
        head = [evidence.target, *(name for name, _ in known)]
        return [Table(head, rows, f"Shares of the classes.{more}")]
    if evidence.outcome.ndim == 1:
        rows = [
            [name, len(values), *(float(q) for q in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))]
            for name, values in known
        ]
        head = ["outcome", "rows", "minimum", "lower quartile", "median", "upper quartile"]
        head.append("maximum")
        return [Table(head, rows, f"The outcome {printable(evidence.target, 60)}.")]
    return []


def _kind(note: str) -> str:
    words = ("copies", "copy", "leak", "exactly", "R2", "warning", "duplicate")
    return "warning" if any(word in note for word in words) else "note"
