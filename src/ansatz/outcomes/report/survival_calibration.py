"""Reports the calibration of survival curves, Brier scores and concordance."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import AnsatzError
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, to_svg
from ansatz.metrics import (
    antolini_c,
    brier_survival,
    d_calibration,
    harrell_c,
    integrated_brier,
    uno_c,
)
from ansatz.outcomes.report.horizons import Risk, calibrate, choose_horizons, reference_curve
from ansatz.outcomes.report.survival import SurvivalRows, survival_rows
from ansatz.report.discrimination import bootstrap_counts
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import p_text
from ansatz.report.transform import targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]


def draw_brier(axes: "Axes", times: Numbers, model: Numbers, reference: Numbers) -> None:
    """Draws Brier scores over time, of the model and of the Kaplan-Meier curve."""
    axes.plot(times, reference, color=LINEAR, label="Kaplan-Meier", ls=(0, (4, 2)))
    axes.plot(times, model, color=MODEL, label="model")
    axes.set_ylim(0, None)
    axes.set_xlabel("time")
    axes.set_ylabel("Brier score")
    axes.legend(loc="lower right")


def brier_parts(evidence: Evidence, rows: SurvivalRows) -> list[Text | Table | Figure]:
    """Reports Brier scores over time; only a sentence where they are undefined."""
    outcome = evidence.model.of_times
    followed = outcome.followed
    if rows.entry is not None or not len(followed.time):
        return [Text("With late entry a Brier score weighted for censoring is not defined.")]
    seen = rows.time[rows.cause > 0]
    first, last = float(seen.min()), min(float(seen.max()), followed.horizon)
    if not first < last:
        return []
    grid = torch.linspace(first, last, 61, dtype=torch.float64)[:-1]
    survival = outcome.survival(evidence.predictive(), grid.numpy())
    km = reference_curve(followed.time, followed.event, grid.tolist(), followed.weight)
    fixed = (grid, torch.from_numpy(rows.time), torch.from_numpy(rows.cause))
    train = (followed.time, followed.event)
    options: dict[str, Any] = {
        "weight": torch.from_numpy(rows.weight),
        "train_weight": followed.weight,
    }
    curves = (torch.from_numpy(survival), torch.from_numpy(km).expand(len(survival), -1))
    try:
        scores = [brier_survival(curve, *fixed, *train, **options).numpy() for curve in curves]
        totals = [float(integrated_brier(curve, *fixed, *train, **options)) for curve in curves]
    except AnsatzError as error:
        return [Text(f"No Brier score: {error}")]
    with figure(5.2, 2.6) as paper:
        draw_brier(paper.subplots(), grid.numpy(), *scores)
        svg = to_svg(paper)
    skill = 1 - totals[0] / totals[1]
    words = (
        f"Integrated Brier score {totals[0]:.4f}, {100 * abs(skill):.1f} % "
        f"{'below' if skill > 0 else 'above'} that of the Kaplan-Meier curve, {totals[1]:.4f}."
    )
    caption = (
        "Brier score of the survival curves over time, weighted for censoring by the training "
        "rows, beside that of the Kaplan-Meier curve of the training rows, without features."
    )
    return [Figure(svg, caption, words), Text(words)]


_RESAMPLES, _FEWER = 100, 30  # of up to 3,000 rows, and of more


def concordance_table(evidence: Evidence, rows: SurvivalRows) -> Table:
    """Reports Harrell's, Uno's and Antolini's C with bootstrap standard errors."""
    measures = _measures(evidence, rows)
    weight = torch.from_numpy(rows.weight)
    resamples = _RESAMPLES if len(weight) <= 3_000 else _FEWER
    table: list[list[str | float]] = []
    for name, measure in measures.items():
        try:
            value = float(measure(weight))
            samples = [
                float(measure(weight * torch.from_numpy(counts)))
                for counts in bootstrap_counts(
                    len(weight), resamples, evidence.seed, evidence.group
                )
            ]
        except AnsatzError as error:
            table.append([name, "–", "–", str(error)])
            continue
        low, high = np.nanquantile(samples, [0.025, 0.975])
        error_ = float(np.nanstd(samples))
        table.append([name, f"{value:.3f}", f"{error_:.3f}", f"{low:.3f} to {high:.3f}"])
    unit = "groups" if evidence.group is not None else "subjects"
    return Table(
        ["concordance", "estimate", "SE", "95 % interval"],
        table,
        f"0.5 is random order, 1 perfect order. Standard errors: {resamples} bootstrap samples of "
        f"{unit}.",
    )


def _measures(evidence: Evidence, rows: SurvivalRows) -> dict[str, Any]:
    outcome, served = evidence.model.of_times, evidence.predictive()
    time, event = torch.from_numpy(rows.time), torch.from_numpy((rows.cause > 0).astype(np.int64))
    risk = torch.from_numpy(outcome.risk(served))
    entry = None if rows.entry is None else torch.from_numpy(rows.entry)
    found: dict[str, Any] = {"Harrell": lambda w: harrell_c(time, event, risk, w, entry)}
    followed = outcome.followed
    if entry is None and len(followed.time):
        found["Uno"] = lambda w: uno_c(
            time,
            event,
            risk,
            followed.time,
            followed.event,
            tau=followed.horizon,
            weight=w,
            train_weight=followed.weight,
        )
    if entry is None and len(time) <= 5_000:
        times = time[event > 0].unique()
        if len(times) > 200:
            times = times[torch.linspace(0, len(times) - 1, 200).long()]
        curves = torch.from_numpy(outcome.survival(served, times.numpy()))
        found["Antolini"] = lambda w: antolini_c(curves, times, time, event, w)
    return found


TITLE = "Calibration of survival"
ASSUMPTION = (
    "This section assumes that censoring is independent of the event given the features; the "
    "weights of the Brier score and of Uno's C, that it does not depend on the features. The data "
    "cannot verify these assumptions."
)


def draw_horizon(axes: "Axes", found: list[Risk], title: str = "") -> None:
    """Draws observed against predicted risk, with intervals."""
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
    """Reports calibration at three horizons, Brier score over time, concordance."""
    rows = survival_rows(evidence)
    if rows is None:
        sentence = (
            "Some events are interval-censored: risks by a horizon, Brier scores and concordance "
            "are not defined; see the histogram of transforms."
        )
        return Section(TITLE, sentence, [Text(ASSUMPTION, "note")])
    parts: list[Text | Table | Figure] = []
    causes = int(getattr(evidence.likelihood, "causes", 1))
    leads = []
    for cause in range(1, min(causes, 3) + 1):
        horizons = choose_horizons(rows.time, rows.cause == cause)
        if not horizons:
            parts.append(Text("No event occurred among the test rows."))
            continue
        risks = _risks(evidence, rows, horizons, cause, causes)
        leads.append(_lead(risks, horizons, cause, causes))
        parts += _horizon_parts(risks, horizons, cause, causes)
    if causes == 1 and (rows.cause > 0).any():
        parts += _d_calibration_part(evidence)
        parts += brier_parts(evidence, rows)
        parts.append(concordance_table(evidence, rows))
    parts.append(Text(ASSUMPTION, "note"))
    return Section(TITLE, " ".join(leads) or "No event occurred among the test rows.", parts)


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
    each = []
    for found, horizon in zip(risks, horizons, strict=True):
        predicted, observed = _total(found)
        each.append(
            f"{100 * predicted:.0f} % predicted, {100 * observed:.0f} % observed by {horizon:.4g}"
        )
    inside = sum(part.low <= part.predicted <= part.high for found in risks for part in found)
    count = sum(len(found) for found in risks)
    return (
        f"Risk{of}: {'; '.join(each)}. The predicted risk lies in the 95 % interval of the "
        f"observed risk in {inside} of {count} bins."
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
    head = ["by time", "predicted", "observed", "ratio", "mean gap", "bins within interval"]
    return [
        Figure(
            svg,
            f"Risk of an event by three times: {how} estimate with 95 % interval against the mean "
            f"prediction, in bins of the test rows by predicted risk.{of}",
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
        "D-calibration: the predicted survival probabilities at the observed times have shares "
        f"from {shares.min():.1f} to {shares.max():.1f} % in ten equal bins (10 % if calibrated; "
        f"censored rows are uniform over their remaining bins); p {p_text(result.p_value)}."
    )
    return [Text(words)]
