"""Reports the best decision when the two kinds of errors have different costs."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ansatz.figures.number_format import number, printable, with_error
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, to_svg
from ansatz.metrics import mean_estimate
from ansatz.report.baselines import row_error
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def best_threshold(miss: float, alarm: float) -> float:
    r"""Computes the probability from which a row should be classified as positive.

    A positive decision costs :math:`c_a (1 - p)` on average, a negative one :math:`c_m p`: the
    first is cheaper from :math:`p = c_a / (c_a + c_m)`.

    Args:
        miss: cost of a false negative, :math:`c_m`.
        alarm: cost of a false positive, :math:`c_a`.

    References:
        Elkan (2001), The foundations of cost-sensitive learning, eq. 2.
    """
    return alarm / (alarm + miss)


def best_level(under: float, over: float) -> float:
    r"""Computes the quantile level of least cost: the critical ratio of the newsvendor.

    A decision q costs :math:`c_u (y - q)_+ + c_o (q - y)_+`; its mean is least where
    :math:`P(Y \le q) = c_u / (c_u + c_o)`.

    Args:
        under: cost of each unit too few, :math:`c_u`.
        over: cost of each unit too many, :math:`c_o`.

    References:
        Arrow, Harris and Marschak (1951), Optimal inventory policy.
    """
    return under / (under + over)


def class_costs(event: Tensor, taken: Tensor, miss: float, alarm: float) -> Tensor:
    """Computes the cost of each row; ``event`` and ``taken`` are ``(N,)``, 0 or 1."""
    return (
        miss * ((event == 1) & (taken == 0)).double()
        + alarm * ((event == 0) & (taken == 1)).double()
    )


def number_costs(y: Tensor, decision: Tensor, under: float, over: float) -> Tensor:
    """Computes the cost of each row."""
    gap = (y - decision).double()
    return under * gap.clamp(min=0) + over * (-gap).clamp(min=0)


def section(evidence: Evidence) -> Section | None:
    """Reports the best decision under the given costs and what it saves; None without costs."""
    costs = evidence.settings.get("costs") or {}
    if not costs:
        return None
    title = "Decisions from costs"
    binary = evidence.classes is not None and len(evidence.classes) == 2
    if "miss" in costs:
        if not binary or evidence.outcome.ndim != 1:
            return Section(title, "Costs of misses and false alarms need outcomes of two classes.")
        return _classes(evidence, costs["miss"], costs["alarm"], title)
    plain = evidence.classes is None and not evidence.is_censored and evidence.point.ndim == 1
    circular = getattr(evidence.distribution, "circular", False)
    if evidence.distribution is None or not plain or circular:
        return Section(title, "Costs per unit need a likelihood of one number.")
    return _numbers(evidence, costs["under"], costs["over"], title)


def _classes(evidence: Evidence, miss: float, alarm: float, title: str) -> Section:
    probs = evidence.distribution.probs.double()  # type: ignore[union-attr]
    p = probs if probs.ndim == 1 else probs[:, 1]
    event, best = evidence.outcome, best_threshold(miss, alarm)
    assert evidence.classes is not None
    label = printable(evidence.classes[1], 40)

    def cost(threshold: float) -> Tensor:
        return class_costs(event, (p >= threshold).long(), miss, alarm)

    rules = {
        f"'{label}' from probability {number(best, 3)}, optimal": cost(best),
        f"'{label}' from probability 0.5, the default": cost(0.5),
        f"'{label}' for every row": cost(0.0),
        f"'{label}' for no row": cost(math.inf),
    }
    grid = np.linspace(0.0, 1.0, 101)
    curve = np.array([float(mean_estimate(cost(t), evidence.weight).value) for t in grid])
    with figure(6.0, 2.5) as paper:
        axes = paper.subplots()
        draw_costs(axes, grid, curve, {"optimal": best, "default": 0.5})
        axes.set_xlabel(f"threshold on P({label})")
        drawn = to_svg(paper)
    text = (
        f"A miss costs {number(miss)}, a false alarm {number(alarm)}: the optimal threshold for "
        f"'{label}' is {number(best, 3)}, alarm / (alarm + miss), if probabilities are calibrated. "
        "It depends on the costs only, not on the test rows."
    )
    return _section(evidence, title, text, rules, drawn, "threshold")


def _numbers(evidence: Evidence, under: float, over: float, title: str) -> Section:
    distribution, y = evidence.distribution, evidence.value
    assert distribution is not None
    best = best_level(under, over)

    def quantile(level: float) -> Tensor:
        with torch.no_grad():
            return distribution.icdf(torch.full_like(distribution.mean, level))

    rules = {
        f"the {number(100 * best, 3)} % quantile, optimal": number_costs(
            y, quantile(best), under, over
        ),
        "the point prediction, the default": number_costs(
            y, torch.as_tensor(evidence.point), under, over
        ),
        "the median": number_costs(y, quantile(0.5), under, over),
    }
    grid = np.unique(np.append(np.linspace(0.05, 0.95, 19), [0.98, 0.99]))
    curve = np.array(
        [
            mean_estimate(
                number_costs(y, quantile(float(level)), under, over), evidence.weight
            ).value
            for level in grid
        ]
    )
    with figure(6.0, 2.5) as paper:
        axes = paper.subplots()
        draw_costs(axes, grid, curve, {"optimal": best, "median": 0.5})
        axes.set_xlabel("level of the quantile")
        drawn = to_svg(paper)
    text = (
        f"A unit too few costs {number(under)}, a unit too many {number(over)}: the optimal "
        f"decision is the {number(100 * best, 3)} % quantile of each predicted distribution, "
        "under / (under + over). The level depends on the costs only, not on the test rows."
    )
    return _section(evidence, title, text, rules, drawn, "level")


def draw_costs(axes: "Axes", grid: np.ndarray, curve: np.ndarray, marks: dict[str, float]) -> None:
    """Draws mean cost against the threshold or level, with the rules marked."""
    axes.plot(grid, curve, color=MODEL)
    for colour, (name, place) in zip((LINEAR, INK), marks.items(), strict=True):
        axes.axvline(place, color=colour, linewidth=0.9, linestyle="--", label=name)
    axes.set_ylabel("mean cost per row")
    axes.legend()


def _section(
    evidence: Evidence, title: str, text: str, rules: dict[str, Tensor], drawn: str, what: str
) -> Section:
    names = list(rules)
    default = rules[names[1]]
    rows: list[list[Cell]] = []
    for name, costs in rules.items():
        value, influence = mean_estimate(costs, evidence.weight)
        gap, effect = mean_estimate(default - costs, evidence.weight)
        saved = None if costs is default else with_error(gap, row_error(evidence, effect))
        rows.append([name, with_error(value, row_error(evidence, influence)), saved])
    gap, effect = mean_estimate(default - rules[names[0]], evidence.weight)
    error = row_error(evidence, effect)
    saving = f"saves {with_error(gap, error)} per row against the default"
    if not (error > 0 and abs(gap) > 2 * error):
        saving = f"is not distinguishable from the default ({with_error(gap, error)} per row)"
    elif gap < 0:
        saving = f"costs {with_error(-gap, error)} per row more than the default: see calibration"
    return Section(
        title,
        f"The optimal {what} {saving}.",
        [
            Text(text),
            Table(
                ["decision", "cost per row", "saved against the default"],
                rows,
                "On the test rows, ± one standard error; savings are paired by row.",
            ),
            Figure(
                drawn,
                f"Mean cost on the test rows by {what}. The optimal {what} follows from the costs.",
                f"Mean cost by {what}.",
            ),
        ],
    )
