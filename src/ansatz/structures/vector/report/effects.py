"""Reports accumulated local effects of the most important columns."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data import Column
from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, PALETTE, figure, thin, to_svg
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import take
from ansatz.fitting.model import Model
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import Response
from ansatz.structures.vector.report.boosting import level_codes
from ansatz.structures.vector.report.importance import importances

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]


class EffectCurve(NamedTuple):
    """A centred effect at values of a column."""

    at: Numbers  # (K,): edges of the bins, or codes of the levels
    effect: Numbers  # (K, R)


def bin_edges(values: Numbers, bins: int = 20) -> Numbers:
    """Computes bin edges at quantiles, without repetition."""
    known = values[np.isfinite(values)]
    if not len(known):
        return known
    return np.unique(np.quantile(known, np.linspace(0, 1, bins + 1), method="nearest"))


def accumulate(
    predict: Callable[[NDArray[np.intp], Numbers], Numbers], values: Numbers, edges: Numbers
) -> EffectCurve:
    r"""Computes the accumulated local effect of a number.

    .. math:: g(z_k) = \sum_{j \le k} \frac{1}{n_j} \sum_{i: x_i \in (z_{j-1}, z_j]}
              f(z_j, x_{i, -}) - f(z_{j-1}, x_{i, -})

    centred to mean zero over the rows. Each row is moved only to the ends of its own bin, so that
    correlated columns stay together, unlike in partial dependence.

    Args:
        predict: (row numbers, values of the column there) to predictions ``(n, R)``.
        values: ``(N,)``, of the rows; missing ones are ignored.
        edges: ``(K,)``, increasing.

    References:
        Apley and Zhu (2020), Visualizing the effects of predictor variables in black box
        supervised learning models, eq. 15-16. https://doi.org/10.1111/rssb.12377
    """
    rows = np.flatnonzero(np.isfinite(values))
    place = np.clip(np.searchsorted(edges, values[rows], side="left") - 1, 0, len(edges) - 2)
    change = predict(rows, edges[place + 1]) - predict(rows, edges[place])
    count = np.bincount(place, minlength=len(edges) - 1)
    mean = _means(change, place, count)
    effect = np.vstack([np.zeros((1, change.shape[1])), np.cumsum(mean, axis=0)])
    middle = (effect[1:] + effect[:-1]) / 2
    return EffectCurve(edges, effect - (count @ middle) / max(len(rows), 1))


def accumulate_levels(
    predict: Callable[[NDArray[np.intp], NDArray[np.intp]], Numbers],
    codes: NDArray[np.intp],
    order: Sequence[int],
) -> EffectCurve:
    """Computes the effect of levels in a given order, moving rows to neighbouring levels."""
    steps = []
    for below, above in pairwise(order):
        rows = np.flatnonzero((codes == below) | (codes == above))
        low, high = (np.full(len(rows), code, dtype=np.intp) for code in (below, above))
        steps.append((predict(rows, high) - predict(rows, low)).mean(axis=0))
    width = predict(np.zeros(1, dtype=np.intp), np.array([order[0]], dtype=np.intp)).shape[1]
    effect = np.vstack(
        [np.zeros((1, width)), np.cumsum(np.array(steps).reshape(-1, width), axis=0)]
    )
    count = np.array([(codes == code).sum() for code in order], dtype=np.float64)
    centred = effect - (count @ effect) / max(count.sum(), 1.0)
    return EffectCurve(np.asarray(order, dtype=np.float64), centred)


def _means(change: Numbers, place: NDArray[np.intp], count: NDArray[np.intp]) -> Numbers:
    total = np.column_stack(
        [np.bincount(place, column, minlength=len(count)) for column in change.T]
    )
    found: Numbers = total / np.maximum(count, 1)[:, None]
    return found


MOST = 8  # columns drawn
ROWS = 1_500  # that effects are averaged over
LEVELS = 10  # of a column drawn, the most frequent
SECONDS = 20.0  # of refits, by the time of the fit
REFITS = 8  # at most, unless given


class ColumnEffect(NamedTuple):
    """The effect of one column, in the model and in refits."""

    column: str
    curve: EffectCurve
    again: list[EffectCurve]  # by refits or members
    labels: list[str]  # of levels; empty for numbers
    values: NDArray[np.float64]  # of the rows, for the rug


def refit_models(evidence: Evidence) -> tuple[list[Model], str]:
    """Refits the task on bootstrap samples of the training rows.

    By default as many as take about 20 seconds by the time of the fit, at most 8.

    Returns:
        The fitted models, and a note on the bands.
    """
    if evidence.training is None:
        return [], "Without the training rows there are no refits and no bands."
    asked = evidence.settings.get("refits")
    history = evidence.model.history
    seconds = 0.3 if history is None else max(float(history.seconds), 0.3)
    count = min(REFITS, int(SECONDS / seconds)) if asked is None else int(asked)
    if count < 2 and asked is None:
        return [], (f"A refit takes about {seconds:.0f} s: for bands, set --refits 5.")
    rng = np.random.default_rng(evidence.seed)
    job, task, models = evidence.training.job, evidence.model.task, []
    for turn in range(count):
        rows = _resample(job.group, len(job.y), rng)
        part = take(job, rows)._replace(valid=None, trainer_options={})
        models.append(fit_model(task.change(seed=task.settings.seed + 1 + turn), part))
    how = "groups" if job.group is not None else "rows"
    words = f"Bands: the range over {count} refits on bootstrap samples of the training {how}."
    return models, words if count else "No bands: refits were turned off."


def _resample(group: Any, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    if group is None:
        return np.sort(rng.integers(0, count, count))
    _, codes = np.unique(np.asarray(group).astype(str), return_inverse=True)
    drawn = rng.integers(0, codes.max() + 1, codes.max() + 1)
    return np.sort(np.concatenate([np.flatnonzero(codes == code) for code in drawn]))


def effects(evidence: Evidence, models: list[Model], names: list[str]) -> list[ColumnEffect]:
    """Computes accumulated local effects of columns on the test rows."""
    response = evidence.outcome_report.response(evidence)
    if response is None:
        return []
    rng = np.random.default_rng(evidence.seed)
    count = len(evidence.weight)
    rows = np.sort(rng.choice(count, min(count, ROWS), replace=False))
    found = []
    for column in evidence.columns:
        if column.name not in names or not column.used or column.role == "date":
            continue
        made = [_effect(evidence, response, column, rows, m) for m in (evidence.model, *models)]
        kept = [effect for effect in made if effect is not None]
        if kept:
            first = kept[0]
            again = [EffectCurve(first.curve.at, e.curve.effect) for e in kept[1:]]
            found.append(first._replace(again=again))
    return sorted(found, key=lambda effect: names.index(effect.column))


def _effect(
    evidence: Evidence, response: Response, column: Column, rows: NDArray[np.intp], model: Model
) -> ColumnEffect | None:
    import pandas as pd

    frame = evidence.X.iloc[rows]
    cells = frame[column.name]
    offset = None if evidence.job.offset is None else evidence.job.offset[torch.from_numpy(rows)]

    def at(chosen: NDArray[np.intp], values: Any) -> NDArray[np.float64]:
        moved = frame.iloc[chosen].copy(deep=False)
        moved[column.name] = pd.Series(values, index=moved.index)
        part = None if offset is None else offset[torch.from_numpy(chosen)]
        served = model.predictive(evidence.contribution.inputs(moved, evidence.job), part, notes=[])
        return evidence.outcome_report.respond(model.outcome, served, response)

    if column.role == "numeric":
        values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
        edges = bin_edges(values)
        if len(edges) < 2:
            return None
        return ColumnEffect(column.name, accumulate(at, values, edges), [], [], values)
    codes = level_codes(cells, column.levels)
    share = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    usual = [k for k in np.argsort(-share, kind="stable")[:LEVELS] if share[k]]
    if len(usual) < 2:
        return None
    order = (
        sorted(usual)
        if column.role == "ordered"
        else _order(evidence, response, codes, rows, usual)
    )
    spelling = _spelling(cells, column)

    def at_level(chosen: NDArray[np.intp], level: NDArray[np.intp]) -> NDArray[np.float64]:
        return at(chosen, spelling[level])

    curve = accumulate_levels(at_level, codes, order)
    labels = [column.levels[k] for k in order]
    return ColumnEffect(column.name, curve, [], labels, codes.astype(np.float64))


def _spelling(cells: Any, column: Column) -> NDArray[Any]:
    """Finds a cell of each level as in the table: 1 and "1" are one level."""
    codes = level_codes(cells, column.levels)
    found = np.array(list(column.levels), dtype=object)
    for code in np.unique(codes[codes >= 0]):
        found[code] = cells.iloc[int(np.flatnonzero(codes == code)[0])]
    return found


def _order(
    evidence: Evidence,
    response: Response,
    codes: NDArray[np.intp],
    rows: NDArray[np.intp],
    usual: list[int],
) -> list[int]:
    """Sorts levels by the mean prediction of their rows."""
    report, model = evidence.outcome_report, evidence.model
    found = evidence.once(
        "response", lambda: report.respond(model.outcome, evidence.predictive(), response)
    )
    first = found[rows, 0]
    return sorted(usual, key=lambda k: float(first[codes == k].mean()))


def draw_effect(axes: "Axes", effect: ColumnEffect, response: Response) -> None:
    """Draws a curve with its band and a rug; dots for levels."""
    curve, levels = effect.curve, bool(effect.labels)
    at = np.arange(len(curve.at)) if levels else curve.at
    for k, name in enumerate(response.names):
        colour = PALETTE[k]
        if effect.again:
            band = np.stack([again.effect[:, k] for again in effect.again])
            low, high = band.min(axis=0), band.max(axis=0)
            if levels:
                axes.vlines(at + 0.12 * k, low, high, color=colour, alpha=0.35, linewidth=4)
            else:
                axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        shift = 0.12 * k if levels else 0
        axes.plot(at + shift, curve.effect[:, k], "o" if levels else "-", color=colour, label=name)
    axes.axhline(0, color=INK, linewidth=0.5, alpha=0.6)
    axes.set_title(printable(effect.column, 32))
    if levels:
        long = max(len(label) for label in effect.labels) * len(at) > 24
        turn: dict[str, Any] = (
            {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if long else {}
        )
        axes.set_xticks(at, [printable(label, 14) for label in effect.labels], **turn)
        axes.set_xlim(-0.5, len(at) - 0.5)
    else:
        (rug,) = thin(effect.values[np.isfinite(effect.values)], limit=150)
        bottom = axes.get_ylim()[0]
        axes.plot(rug, np.full(len(rug), bottom), "|", color=INK, markersize=5, alpha=0.5)


def section(evidence: Evidence) -> Section | None:
    """Reports the effects of the most important columns."""
    response = evidence.outcome_report.response(evidence)
    names = [name for item in importances(evidence) for name in item.columns][:MOST]
    if not names:
        return None
    if response is None:
        sentence = "Effects of directions are not defined."
        return Section("Effects", sentence)
    models, words = refit_models(evidence)
    found = effects(evidence, models, names)
    if not found:
        return None
    across = min(2, len(found))
    down = -(-len(found) // across)
    with figure(7.2 if across == 2 else 4.2, 2.1 * down) as paper:
        panels = paper.subplots(down, across, squeeze=False).ravel()
        for axes, effect in zip(panels, found, strict=False):
            draw_effect(axes, effect, response)
        for axes in panels[len(found) :]:
            axes.set_axis_off()
        if len(response.names) > 1:
            panels[0].legend()
        else:
            for axes in panels[::across]:
                axes.set_ylabel("change")
        drawn = to_svg(paper)
    parts: list[Text | Table | Figure] = [
        Figure(
            drawn,
            f"Accumulated local effects on {', '.join(response.names)}, with mean zero over the "
            f"test rows; marks at the bottom: values of the rows. {words}",
            f"Effects of {len(found)} columns.",
        ),
        Text(
            "Each row is moved only within its own bin of the column, so that correlated columns "
            "stay together. Unordered levels are sorted by the mean prediction of their rows. "
            "Effects are predictive, not causal.",
            "note",
        ),
    ]
    return Section("Effects", _lead(found, response), parts)


def _lead(found: list[ColumnEffect], response: Response) -> str:
    def swing(effect: ColumnEffect) -> float:
        column = effect.curve.effect[:, 0]
        if not effect.labels:  # without the few extreme values
            known = effect.values[np.isfinite(effect.values)]
            low, high = np.quantile(known, [0.05, 0.95])
            grid = np.linspace(low, high, 50)
            column = np.interp(grid, effect.curve.at, column)
        return float(column.max() - column.min())

    largest = max(found, key=swing)
    where = "Over its levels," if largest.labels else "Between its 5 % and 95 % quantiles,"
    return (
        f"{where} {printable(largest.column, 40)} changes {response.names[0]} by "
        f"{number(swing(largest), 3)}, more than any other column shown."
    )
