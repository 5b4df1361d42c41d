"""Reports grouped permutation importance of columns."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number, printable, with_error
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.report.evidence import Evidence
from ansatz.structures.vector.report.boosting import encode_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALIKE = 0.7  # association above which columns are shuffled together
REPEATS = 10
WORK = 3_000_000  # predictions in total
MOST = 25  # groups shown


class Importance(NamedTuple):
    """The increase of the loss when a group of columns is shuffled."""

    columns: tuple[str, ...]
    rise: float
    error: float  # of the mean over the repeats


def associations(numbers: NDArray[np.float64], nominal: Sequence[bool]) -> NDArray[np.float64]:
    r"""Computes the association of each two columns, in [0, 1].

    Numbers and ordered levels by :math:`|\text{Spearman's } \rho|`; two nominal columns by
    Cramer's V, corrected for bias; a nominal column and a number by the correlation ratio of the
    number's ranks, the root of the share of their variance between the levels.

    References:
        Bergsma (2013), A bias-correction for Cramer's V and Tschuprow's T.
        https://doi.org/10.1016/j.jkss.2012.10.002
    """
    from scipy.stats import rankdata

    count, width = numbers.shape
    filled = np.where(np.isnan(numbers), -1.0, numbers)
    ranks = np.column_stack([rankdata(filled[:, j]) for j in range(width)]) if width else filled
    sd = ranks.std(axis=0)
    ranks = (ranks - ranks.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    found: NDArray[np.float64] = np.abs(ranks.T @ ranks) / max(count, 1)
    codes = {j: np.unique(filled[:, j], return_inverse=True)[1] for j in range(width) if nominal[j]}
    for i in codes:
        for j in range(width):
            if j in codes and j < i:
                found[i, j] = found[j, i] = _cramer(codes[i], codes[j])
            elif j not in codes:
                found[i, j] = found[j, i] = _ratio(codes[i], ranks[:, j])
    np.fill_diagonal(found, 1.0)
    return found


def _cramer(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    rows, columns, n = int(a.max()) + 1, int(b.max()) + 1, len(a)
    if min(rows, columns) < 2 or rows * columns > 10_000:
        return 0.0
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)
    expected = table.sum(1, keepdims=True) * table.sum(0) / n
    phi = float(((table - expected) ** 2 / np.maximum(expected, 1e-300)).sum()) / n
    phi = max(0.0, phi - (rows - 1) * (columns - 1) / max(n - 1, 1))
    r = rows - (rows - 1) ** 2 / max(n - 1, 1)
    c = columns - (columns - 1) ** 2 / max(n - 1, 1)
    return min(1.0, math.sqrt(phi / max(min(r, c) - 1, 1e-9)))


def _ratio(codes: NDArray[np.intp], ranks: NDArray[np.float64]) -> float:
    """Computes the correlation ratio of ranks with mean 0 and variance 1."""
    size = np.bincount(codes)
    mean = np.bincount(codes, ranks) / size
    between = float((size * mean**2).sum()) / len(ranks)
    levels, n = len(size), len(ranks)
    corrected = (between * n - (levels - 1)) / max(n - levels + 1, 1)  # chance explains levels - 1
    return math.sqrt(min(1.0, max(0.0, corrected)))


def group_columns(strength: NDArray[np.float64], threshold: float = ALIKE) -> list[list[int]]:
    """Groups columns that are connected by associations above the threshold."""
    from scipy.sparse.csgraph import connected_components

    if not len(strength):
        return []
    _, label = connected_components(strength > threshold, directed=False)
    return [np.flatnonzero(label == k).tolist() for k in dict.fromkeys(label.tolist())]


def importances(evidence: Evidence, repeats: int = REPEATS) -> list[Importance]:
    """Computes grouped permutation importance on the test rows, the most important first.

    Associated columns are shuffled together, since each may replace the other. The increase of
    the mean loss is averaged over the repeats.

    References:
        Breiman (2001), Random forests. https://doi.org/10.1023/A:1010933404324
    """
    return evidence.once("importances", lambda: _importances(evidence, repeats))


def _importances(evidence: Evidence, repeats: int) -> list[Importance]:
    columns = [column for column in evidence.columns if column.used]
    if not columns or len(evidence.weight) < 2:
        return []
    named = evidence.model.columns is not None
    numbers, nominal = encode_columns(evidence.X, columns if named else None)
    groups = group_columns(associations(numbers, nominal))
    rng = np.random.default_rng(evidence.seed)
    rows = _sample(len(evidence.weight), len(groups) * repeats, rng, evidence)
    part = _part(evidence, rows)
    base = _mean_loss(part, part.X)
    found = []
    for group in groups:
        names = [columns[j].name for j in group]
        rises = []
        for _ in range(repeats):
            shuffled = part.X.copy(deep=False)
            order = rng.permutation(len(shuffled))
            for name in names:
                shuffled[name] = part.X[name].iloc[order].set_axis(part.X.index)
            rises.append(_mean_loss(part, shuffled) - base)
        error = float(np.std(rises, ddof=1)) / len(rises) ** 0.5 if len(rises) > 1 else math.nan
        found.append(Importance(tuple(names), float(np.mean(rises)), error))
    return sorted(found, key=lambda item: -item.rise)


def _sample(
    count: int, times: int, rng: np.random.Generator, evidence: Evidence
) -> NDArray[np.intp]:
    keep = max(500, WORK // max(times, 1))
    if count <= keep or not evidence.likelihood.additive:
        return np.arange(count)
    return np.sort(rng.choice(count, keep, replace=False))


def _part(evidence: Evidence, rows: NDArray[np.intp]) -> Evidence:
    """Restricts the evidence to some rows, enough to compute losses."""
    import copy

    from ansatz.fitting.job import take

    if len(rows) == len(evidence.weight):
        return evidence
    part = copy.copy(evidence)
    part.job, index = take(evidence.job, rows), torch.from_numpy(rows)
    part.X, part.outcome = evidence.X.iloc[rows], evidence.outcome[index]
    part.weight = evidence.weight[index]
    return part


def _mean_loss(evidence: Evidence, X: "object") -> float:
    losses = evidence.row_losses(X)
    return float((losses * evidence.weight).sum() / evidence.weight.sum())


def draw_importances(axes: "Axes", found: Sequence[Importance]) -> None:
    """Draws bars with two standard errors, the most important at the top."""
    places = range(len(found))
    axes.barh(places, [item.rise for item in found], color=MODEL, alpha=0.75, height=0.62)
    for place, item in zip(places, found, strict=True):
        if math.isfinite(item.error):
            ends = [item.rise - 2 * item.error, item.rise + 2 * item.error]
            axes.plot(ends, [place, place], color=INK, linewidth=1.0)
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_yticks(places, [_label(item) for item in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("increase of the mean loss when shuffled")


def _label(item: Importance, limit: int = 3) -> str:
    names = [printable(name, 24) for name in item.columns]
    more = f" + {len(names) - limit} more" if len(names) > limit else ""
    return " + ".join(names[:limit]) + more


def section(evidence: Evidence) -> Section | None:
    """Reports groups of columns by importance."""
    found = importances(evidence)
    if not found:
        return None
    shown = found[:MOST]
    with figure(6.4, 0.6 + 0.24 * len(shown)) as paper:
        draw_importances(paper.subplots(), shown)
        drawn = to_svg(paper)
    parts: list[Text | Table | Figure] = [
        Figure(
            drawn,
            f"Increase of the mean {evidence.loss_name} of the test rows when the columns are "
            f"shuffled together, mean of {REPEATS} shuffles ± two standard errors of that mean.",
            "Bars of permutation importance: "
            + ", ".join(f"{_label(item)} {number(item.rise, 2)}" for item in shown[:5]),
        )
    ]
    joint = [item for item in found if len(item.columns) > 1]
    if joint:
        rows = [[", ".join(item.columns), with_error(item.rise, item.error)] for item in joint]
        parts.append(
            Table(
                ["columns shuffled together", "increase"],
                rows,
                "Columns whose association (|Spearman|, Cramer's V, correlation ratio) exceeds "
                f"{ALIKE}: alone each would look unimportant, since the others replace it.",
            )
        )
    if len(found) > len(shown):
        parts.append(
            Text(f"{len(found) - len(shown)} less important groups are not shown.", "note")
        )
    parts.append(
        Text(
            "Importance is predictive, not causal: it describes this model, not what would change "
            "the outcome. Shuffled rows may be implausible.",
            "note",
        )
    )
    clear = [item for item in found if item.rise > 2 * item.error]
    lead = "No column is important: shuffling does not increase the loss."
    if clear:
        rest = len(found) - len(clear)
        lead = f"The most important columns are {_label(clear[0])}"
        lead += f", then {_label(clear[1])}" if len(clear) > 1 else ""
        lead += f"; {rest} of {len(found)} groups have no clear importance." if rest else "."
    return Section("Importance of columns", lead, parts)
