"""Reports losses by subgroup, and the rows with the largest losses."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from ansatz.data import Column
from ansatz.figures.number_format import number, printable, with_error
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.metrics import mean_estimate
from ansatz.report.baselines import row_error
from ansatz.report.evidence import Evidence
from ansatz.report.excess_loss import excess_losses
from ansatz.report.normal_scores import p_text
from ansatz.report.outcome_report import shown_cell, shown_outcome, shown_prediction
from ansatz.structures.vector.report.boosting import level_codes
from ansatz.structures.vector.report.importance import importances

if TYPE_CHECKING:
    import pandas as pd


LEAST = 20  # rows of a group
SHOWN = 15
FEW = 5  # distinct values of a number that each make a group
LEVELS = 20  # of a column, the most frequent


class Subgroup(NamedTuple):
    """The mean loss and the mean excess loss of a group, against that of all other rows."""

    column: str
    level: str
    rows: int
    loss: float
    error: float
    excess: float  # the loss minus the one that the predictions expect; without one, the loss
    worse: float  # excess over that of the other rows
    worse_error: float
    p_value: float  # of no difference, two-sided, unadjusted


def groups_of(cells: "pd.Series", column: Column) -> list[tuple[str, NDArray[np.bool_]]]:
    """Splits rows by levels, by thirds or single values of a number, and by missing values."""
    import pandas as pd

    missing = cells.isna().to_numpy()
    found: list[tuple[str, NDArray[np.bool_]]] = []
    if column.role == "numeric":
        values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
        known = values[np.isfinite(values)]
        distinct = np.unique(known)
        if 1 < len(distinct) <= FEW:
            found = [(number(float(value)), values == value) for value in distinct]
        elif len(known):
            low, high = np.quantile(known, [1 / 3, 2 / 3])
            if low < high:
                found = [
                    (f"≤ {number(float(low))}", values <= low),
                    (
                        f"{number(float(low))} to {number(float(high))}",
                        (values > low) & (values <= high),
                    ),
                    (f"> {number(float(high))}", values > high),
                ]
    elif column.role in ("categorical", "ordered"):
        codes = level_codes(cells, column.levels)
        share = np.bincount(codes[codes >= 0], minlength=len(column.levels))
        usual = np.argsort(-share, kind="stable")[:LEVELS]
        found = [(column.levels[k], codes == k) for k in usual if share[k]]
    if missing.any() and not missing.all():
        found.append(("(missing)", missing))
    return found


def subgroups(evidence: Evidence) -> list[Subgroup]:
    """Evaluates every group that is large enough, the one with the largest excess loss first."""
    losses = evidence.row_losses()
    excess = excess_losses(evidence)
    ranked = losses if excess is None else excess.value
    found = []
    for column in evidence.columns:
        if not column.used or column.name not in evidence.X.columns:
            continue
        for level, mask in groups_of(evidence.X[column.name], column):
            inside = torch.from_numpy(np.array(mask))  # writable, unlike what pandas gives
            if LEAST <= int(inside.sum()) <= len(mask) - LEAST:
                found.append(_evaluate(evidence, losses, ranked, column.name, level, inside))
    return sorted(found, key=lambda group: -group.excess)


def _evaluate(
    evidence: Evidence,
    losses: torch.Tensor,
    ranked: torch.Tensor,
    column: str,
    level: str,
    inside: torch.Tensor,
) -> Subgroup:
    """Evaluates one group; the influence of the gap is the difference of those of the means."""
    weight = evidence.weight
    rows = inside.nonzero()[:, 0]
    loss, of_loss = mean_estimate(losses[rows], weight[rows])
    value, influence = mean_estimate(ranked[rows], weight[rows])
    rest, other = mean_estimate(ranked[~inside], weight[~inside])
    total, part = float(weight.sum()), float(weight[rows].sum())
    effect = torch.zeros_like(ranked)
    effect[inside] = influence * (total / part)
    effect[~inside] = -other * (total / (total - part))
    gap, error = value - rest, row_error(evidence, effect)
    p = 2 * float(stats.norm.sf(abs(gap) / error)) if error > 0 else math.nan
    own = row_error(evidence, of_loss, rows)
    return Subgroup(column, level, len(rows), loss, own, value, gap, error, p)


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjusts p-values for multiple comparisons by Holm's method.

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    found = np.empty(len(p_values))
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return found


def subgroups_section(evidence: Evidence) -> Section | None:
    """Reports the worst groups, with p-values adjusted for multiple comparisons."""
    if not evidence.likelihood.additive:
        return Section("Subgroups", "A partial likelihood has no loss of a single group.")
    found = subgroups(evidence)
    if not found:
        return None
    excess = excess_losses(evidence)
    adjusted = holm(np.array([1.0 if math.isnan(g.p_value) else g.p_value for g in found]))
    rows: list[list[Cell]] = [
        [
            group.column,
            group.level,
            group.rows,
            with_error(group.loss, group.error),
            *([] if excess is None else [group.excess]),
            with_error(group.worse, group.worse_error),
            p_text(p),
        ]
        for group, p in zip(found[:SHOWN], adjusted, strict=False)
    ]
    clear = [g for g, p in zip(found, adjusted, strict=True) if p < 0.05 and g.worse > 0]
    what = evidence.loss_name
    lead = f"None of {len(found)} groups is predicted significantly worse than the other rows."
    if clear:
        worst = clear[0]
        lead = (
            f"{len(clear)} of {len(found)} groups are predicted significantly worse than the other "
            f"rows, most of all {printable(worst.column, 40)} {printable(worst.level, 40)}."
        )
    ranked = what if excess is None else excess.name
    meaning = (
        f"A higher {what} need not be a fault of the model: a group may be harder to predict, or "
        "have outcomes of a larger scale."
    )
    if excess is not None:
        meaning = f"{excess.meaning} A higher {what} alone is not a fault of the model."
    head = ["column", "level or range", "rows", f"{what} ± SE"]
    head += [] if excess is None else [excess.name]
    parts: list[Text | Table | Figure] = [
        Table(
            [*head, "worse than others by", "Holm p"],
            rows,
            f"The {min(SHOWN, len(found))} groups with the highest mean {ranked} on the test rows: "
            f"levels of categories, thirds of numbers, of at least {LEAST} rows. p-values are "
            f"adjusted for {len(found)} comparisons (Holm).",
        ),
        Text(meaning, "note"),
    ]
    return Section("Subgroups", lead, parts)


COUNT = 20
COLUMNS = 5  # of features shown
LEVEL = 0.9


def worst_rows(losses: torch.Tensor, count: int = COUNT) -> NDArray[np.intp]:
    """Finds the rows with the largest losses, largest first."""
    order = np.argsort(-losses.numpy(), kind="stable")
    found: NDArray[np.intp] = order[:count]
    return found


def worst_rows_section(evidence: Evidence) -> Section | None:
    """Reports the worst rows with outcome, prediction, interval and important columns."""
    losses = evidence.row_losses()
    chosen = worst_rows(losses)
    names = [name for item in importances(evidence) for name in item.columns][:COLUMNS]
    intervals = _intervals(evidence)
    head = ["row", "outcome", "prediction"]
    if intervals is not None:
        head.append(f"{LEVEL:.0%} interval".replace("%", " %"))
    rows: list[list[Cell]] = []
    for k in chosen:
        row: list[Cell] = [
            int(evidence.rows[k]),
            shown_outcome(evidence, int(k)),
            shown_prediction(evidence, int(k)),
        ]
        if intervals is not None:
            row.append(f"{number(intervals[k, 0], 3)} to {number(intervals[k, 1], 3)}")
        row.append(float(losses[k]))
        row += [shown_cell(evidence.X[name].iloc[k]) for name in names]
        rows.append(row)
    what = evidence.loss_name
    share = _share(evidence, losses)
    lead = (
        f"The 1 % of rows with the largest losses contribute {share} of the total loss."
        if len(losses) >= 100 and share
        else "Check these rows for errors in the data."
    )
    return Section(
        "Rows with the largest loss",
        lead,
        [
            Table(
                [*head, what, *names],
                rows,
                f"The {len(rows)} test rows with the largest {what}, with their numbers in the "
                "table; features by importance.",
            ),
            Text(
                "This section shows outcomes and features of single rows: share it with care.",
                "note",
            ),
        ],
    )


def _share(evidence: Evidence, losses: torch.Tensor) -> str:
    if float(losses.min()) < 0:  # a share of terms of both signs is meaningless
        return ""
    total = float((losses * evidence.weight).sum())
    top = worst_rows(losses, max(1, len(losses) // 100))
    part = float((losses * evidence.weight)[torch.from_numpy(top.copy())].sum())
    return f"{100 * part / total:.0f} %" if total > 0 else ""


def _intervals(evidence: Evidence) -> NDArray[np.float64] | None:
    distribution = evidence.distribution
    plain = evidence.classes is None and not hasattr(distribution, "ranks")
    if distribution is None or not plain or evidence.point.ndim != 1:
        return None
    if int(getattr(evidence.likelihood, "causes", 1)) > 1:
        return None
    with torch.no_grad():
        low, high = distribution.interval(LEVEL)
    return torch.stack([low, high], -1).numpy()
