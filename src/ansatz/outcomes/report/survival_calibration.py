"""Do people with a predicted risk of 30 % within five years have the event in 30 of 100 cases?"""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.metrics import d_calibration
from ansatz.outcomes.report.brier_over_time import brier_parts
from ansatz.outcomes.report.concordance import concordance_table
from ansatz.outcomes.report.horizons import Risk, calibrate, choose_horizons
from ansatz.outcomes.report.survival_rows import SurvivalRows, survival_rows
from ansatz.report.evidence import Evidence
from ansatz.report.univariate import targets
from ansatz.report.verdict import p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]
TITLE = "Are the survival curves right?"
ASSUMPTION = (
    "All of this assumes that, given the features, rows are censored independently of when their "
    "event would have come; the weights of the Brier score and of Uno's C also that censoring does "
    "not depend on the features. No data can show it."
)


def draw_horizon(axes: "Axes", found: list[Risk], title: str = "") -> None:
    """Observed against predicted risk, with intervals.

    Args:
        axes: of matplotlib.
        found: parts of the rows.
        title: above it.
    """
    x = np.array([part.predicted for part in found])
    y = np.array([part.observed for part in found])
    ends = np.array([[part.low, part.high] for part in found])
    ends = np.where(np.isfinite(ends), ends, y[:, None])
    top = min(1.0, 1.1 * max(float(x.max()), float(ends.max()), 0.05))
    axes.plot([0, top], [0, top], color=INK, lw=0.8)
    bars = np.clip(np.abs(ends - y[:, None]).T, 0, None)
    axes.errorbar(x, y, yerr=bars, fmt="o-", color=MODEL, ms=4, lw=1.1)
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    axes.set_xlabel("predicted risk")
    axes.set_ylabel("observed risk")
    axes.set_title(title)


def section(evidence: Evidence) -> Section | None:
    """Calibration at three horizons, Brier score over time, concordance."""
    rows = survival_rows(evidence)
    if rows is None:
        sentence = (
            "Some events are known as intervals only: risks by a horizon, Brier scores and "
            "concordance are not defined; the histogram of transforms and its test are."
        )
        return Section(TITLE, sentence, [Text(ASSUMPTION, "note")])
    parts: list[Text | Table | Figure] = []
    causes = int(getattr(evidence.likelihood, "causes", 1))
    leads = []
    for cause in range(1, min(causes, 3) + 1):
        horizons = choose_horizons(rows.time, rows.cause == cause)
        if not horizons:
            parts.append(Text("No event was seen among the test rows: nothing to compare with."))
            continue
        risks = _risks(evidence, rows, horizons, cause, causes)
        leads.append(_lead(risks, horizons, cause, causes))
        parts += _horizon_parts(risks, horizons, cause, causes)
    if causes == 1 and (rows.cause > 0).any():
        parts += _d_calibration_part(evidence)
        parts += brier_parts(evidence, rows)
        parts.append(concordance_table(evidence, rows))
    parts.append(Text(ASSUMPTION, "note"))
    return Section(TITLE, " ".join(leads) or "No event was seen among the test rows.", parts)


def _risks(
    evidence: Evidence, rows: SurvivalRows, horizons: list[float], cause: int, causes: int
) -> list[list[Risk]]:
    outcome, served = evidence.model.of_times, evidence.predictive()
    if causes > 1:
        predicted = outcome.incidence(served, horizons, cause)
    else:
        predicted = 1 - outcome.survival(served, horizons)
    return [
        calibrate(
            predicted[:, k],
            rows.time,
            rows.cause,
            horizon,
            cause=None if causes == 1 else cause,
            weight=rows.weight,
            entry=rows.entry,
        )
        for k, horizon in enumerate(horizons)
    ]


def _total(found: list[Risk]) -> tuple[float, float]:
    weight = [part.rows for part in found]
    predicted = float(np.average([part.predicted for part in found], weights=weight))
    observed = float(np.average([part.observed for part in found], weights=weight))
    return predicted, observed


def _lead(risks: list[list[Risk]], horizons: list[float], cause: int, causes: int) -> str:
    of = f" of cause {cause}" if causes > 1 else ""
    said = []
    for found, horizon in zip(risks, horizons, strict=True):
        predicted, observed = _total(found)
        said.append(
            f"{100 * predicted:.0f} % predicted and {100 * observed:.0f} % seen by {horizon:.4g}"
        )
    inside = sum(part.low <= part.predicted <= part.high for found in risks for part in found)
    count = sum(len(found) for found in risks)
    return (
        f"Risk{of}: {', '.join(said)}; the predicted risk lies in the 95 % interval of the "
        f"observed one in {inside} of {count} parts."
    )


def _horizon_parts(
    risks: list[list[Risk]], horizons: list[float], cause: int, causes: int
) -> list[Text | Table | Figure]:
    with figure(6.6, 2.6) as paper:
        grid = paper.subplots(1, len(horizons), squeeze=False)[0]
        for axes, found, horizon in zip(grid, risks, horizons, strict=True):
            draw_horizon(axes, found, f"by time {horizon:.4g}")
        svg = to_svg(paper)
    rows: list[list[str | float]] = []
    for found, horizon in zip(risks, horizons, strict=True):
        predicted, observed = _total(found)
        ratio = observed / predicted if predicted > 0 else math.nan
        gap = np.average(
            [abs(p.observed - p.predicted) for p in found], weights=[p.rows for p in found]
        )
        inside = sum(part.low <= part.predicted <= part.high for part in found)
        rows.append(
            [
                f"{horizon:.4g}",
                f"{100 * predicted:.1f} %",
                f"{100 * observed:.1f} %",
                f"{ratio:.2f}",
                f"{100 * float(gap):.1f} points",
                f"{inside} of {len(found)}",
            ]
        )
    of = f" Cause {cause}." if causes > 1 else ""
    how = "Aalen-Johansen" if causes > 1 else "Kaplan-Meier"
    head = ["by time", "predicted", "observed", "ratio", "mean gap", "parts within interval"]
    return [
        Figure(
            svg,
            f"Risk of an event by three times: {how} estimate with 95 % interval against the mean "
            f"prediction, in parts of the test rows by predicted risk.{of}",
            _lead(risks, horizons, cause, causes),
        ),
        Table(head, rows, f"Predicted and observed risk.{of}"),
    ]


def _d_calibration_part(evidence: Evidence) -> list[Text | Table | Figure]:
    (target,) = targets(evidence)
    usable = target.transform.finite()
    found = target.transform.take(usable)
    survival = torch.from_numpy(np.where(found.censored, found.above_lower, found.above_upper))
    event = torch.from_numpy((~found.censored).astype(np.int64))
    result = d_calibration(survival.clamp(0, 1), event, evidence.weight[torch.from_numpy(usable)])
    shares = 100 * result.shares.numpy()
    words = (
        f"D-calibration: the rows' own survival probabilities at their times fall into ten equal "
        f"bins with shares from {shares.min():.1f} to {shares.max():.1f} % (10 % each if the "
        "curves are right; censored rows are spread over what is left to them); p "
        f"{p_text(result.p_value)}."
    )
    return [Text(words)]
