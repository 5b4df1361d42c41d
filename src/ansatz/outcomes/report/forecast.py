"""Supplies what forecasts add to a report: fans, scores by horizon, skill, autocorrelation."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Chapter, Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, PALETTE, figure, to_svg
from ansatz.outcomes.path import EDGE, pits
from ansatz.report.baselines import Forecast, baselines
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport

Numbers = NDArray[np.float64]
FANS = 3  # origins that are drawn
MOST_SERIES = 12  # rows of the table of series
BINS = 10  # of a PIT histogram
LAGS = 24
MEASURES = ("crps", "absolute error")


class ForecastReport(OutcomeReport):
    """The contribution of forecasts to reports."""

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on forecasts."""
        here = "ansatz.outcomes.report.forecast"
        return [
            Chapter(29, "forecasts and outcomes", f"{here}:fans"),
            Chapter(30, "scores by horizon and series", f"{here}:by_horizon"),
            Chapter(31, "PIT by horizon", f"{here}:transforms"),
            Chapter(32, "skill against baselines", f"{here}:skill"),
            Chapter(33, "residual autocorrelation", f"{here}:autocorrelation"),
        ]


class Scores(NamedTuple):
    """Scores of each row and step, ``(N, H)``; the measure in a word."""

    values: Numbers
    measure: str


def scores_of(distribution: Any, point: torch.Tensor, y: torch.Tensor) -> Scores:
    """The CRPS of every outcome; the absolute error of a loss, which has no distribution."""
    with torch.no_grad():
        if distribution is not None:
            return Scores(distribution.crps(y).numpy(), MEASURES[0])
        return Scores((point - y).abs().numpy(), MEASURES[1])


def _own(evidence: Evidence) -> Scores:
    point = torch.from_numpy(np.asarray(evidence.point))
    return evidence.once("steps", lambda: scores_of(evidence.distribution, point, evidence.outcome))


def _of(evidence: Evidence, forecast: Forecast) -> Scores:
    return scores_of(forecast.distribution, forecast.point, evidence.outcome)


def fans(evidence: Evidence) -> Section | None:
    """Draws the forecasts from some origins beside what followed."""
    rows: Any = evidence.job.rows
    likelihood, raw = evidence.predictive()
    if not hasattr(likelihood, "interval") and not likelihood.has_distribution:
        return None
    picks = np.unique(np.linspace(0, len(rows) - 1, FANS + 2).astype(int)[1:-1])
    bands = {level: _bounds(likelihood, raw[picks], level) for level in (0.5, 0.9)}
    point = np.asarray(likelihood.point(raw[picks]).detach())
    back = max(2 * rows.horizon, 24)
    with figure(7.0, 2.1 * len(picks)) as paper:
        for k, axes in enumerate(np.atleast_1d(paper.subplots(len(picks), 1))):
            row = int(picks[k])
            history = rows[[row]].values_back(back)[0]
            ahead = np.arange(1, rows.horizon + 1)
            axes.plot(np.arange(1 - back, 1), history, color=INK, lw=1)
            axes.plot(ahead, evidence.outcome[row].numpy(), color=INK, lw=1, ls=":", marker=".")
            for level, bounds in bands.items():
                if bounds is not None:
                    axes.fill_between(
                        ahead, bounds[0][k], bounds[1][k], color=MODEL, alpha=0.45 - 0.3 * level,
                        lw=0,
                    )  # fmt: skip
            axes.plot(ahead, point[k], color=MODEL)
            name = rows.panel.names[rows.series[row]]
            time = rows.panel.clock.times(rows[[row]].step)[0]
            axes.set_title(printable(f"{name}, from {time}", 60))
            axes.set_xlabel("steps after the origin")
        drawing = to_svg(paper)
    caption = (
        "The history up to an origin (line), what followed (dotted), the forecast, and its 50 and "
        "90 % intervals. The origins are evenly spaced over the test."
    )
    alt = "Forecasts with intervals beside the outcomes that followed."
    lead = (
        f"{len(rows):,} forecasts of {rows.horizon} steps, each with the likelihood "
        f"{likelihood.name} at every step."
    )
    return Section("Forecasts and outcomes", lead, [Figure(drawing, caption, alt)])


def _bounds(likelihood: Any, raw: torch.Tensor, level: float) -> Any:
    try:
        with torch.no_grad():
            if likelihood.has_distribution:
                low, high = likelihood.distribution(raw).interval(level)
            else:
                low, high = likelihood.interval(raw, level)
    except ValueError:  # quantiles that were not asked for
        return None
    return low.numpy(), high.numpy()


def by_horizon(evidence: Evidence) -> Section:
    """Shows scores and coverage at each step ahead, and of each series."""
    own = _own(evidence)
    rows: Any = evidence.job.rows
    likelihood, raw = evidence.predictive()
    bounds = _bounds(likelihood, raw, 0.9)
    y = evidence.outcome.numpy()
    inside = None if bounds is None else (bounds[0] <= y) & (y <= bounds[1])
    steps = np.arange(1, y.shape[1] + 1)
    with figure(7.0, 2.8) as paper:
        left, right = paper.subplots(1, 2)
        left.set_prop_cycle(color=PALETTE[1:])  # the first is the model's
        for forecast in baselines(evidence).forecasts:
            mine = forecast.name == "model"
            values = own if mine else _of(evidence, forecast)
            if values.measure != own.measure:
                continue
            left.plot(
                steps, values.values.mean(0), label=forecast.name, lw=2 if mine else 1,
                **({"color": MODEL} if mine else {}),
            )  # fmt: skip
        left.set_xlabel("step ahead")
        left.set_ylabel(f"mean {own.measure}")
        left.legend(fontsize=7)
        if inside is not None:
            right.plot(steps, inside.mean(0), color=MODEL, marker=".")
        right.axhline(0.9, color=INK, lw=0.8)
        right.set_ylim(0.6, 1.0)
        right.set_xlabel("step ahead")
        right.set_ylabel("share inside 90 % intervals")
        drawing = to_svg(paper)
    picked = np.unique(np.linspace(0, len(steps) - 1, 8).astype(int))
    cover = np.full(y.shape, np.nan) if inside is None else inside.astype(float)
    table = [[int(steps[k]), *_row(own.values[:, k], cover[:, k])] for k in picked]
    head = [f"mean {own.measure}", "90 % intervals hold"]
    parts: list[Any] = [
        Figure(drawing, "Scores and coverage at each step.", "Scores by step ahead."),
        Table(["step", *head], table, "By step ahead."),
    ]
    names, series = np.array(rows.panel.names, dtype=object), rows.series
    if len(np.unique(series)) > 1:
        means = {int(k): float(own.values[series == k].mean()) for k in np.unique(series)}
        worst = sorted(means, key=lambda k: -means[k])[:MOST_SERIES]
        cells = [
            [printable(names[k], 40), *_row(own.values[series == k], cover[series == k])]
            for k in worst
        ]
        caption = f"By series, the {len(cells)} with the largest scores of {len(means)}."
        parts.append(Table(["series", *head], cells, caption))
    first, last = own.values[:, 0].mean(), own.values[:, -1].mean()
    lead = (
        f"The mean {own.measure} is {number(first)} one step ahead and {number(last)} at the last."
    )
    return Section("Scores by horizon and series", lead, parts)


def _row(values: Numbers, cover: Numbers) -> list[float | None]:
    share = float(cover.mean())
    return [float(values.mean()), share if np.isfinite(share) else None]


def transforms(evidence: Evidence) -> Section | None:
    """Draws the PIT at the first, a middle and the last step."""
    likelihood, raw = evidence.predictive()
    if not likelihood.has_distribution:
        return None
    u = pits(likelihood, raw, evidence.outcome).numpy()
    H = u.shape[1]
    steps = sorted({0, H // 2, H - 1})
    with figure(7.0, 2.3) as paper:
        for k, axes in zip(steps, np.atleast_1d(paper.subplots(1, len(steps))), strict=True):
            axes.hist(u[:, k], bins=BINS, range=(0, 1), density=True, color=MODEL, alpha=0.6)
            axes.axhline(1, color=INK, lw=0.8)
            axes.set_title(f"step {k + 1}")
            axes.set_xlabel("F(y)")
        drawing = to_svg(paper)
    far = int(np.abs(u.mean(0) - 0.5).argmax())
    lead = (
        f"F(y) has mean {u.mean():.3f} (calibrated: 0.5) and standard deviation {u.std():.3f} "
        f"(0.289); its mean is farthest from 0.5 at step {far + 1}: {u[:, far].mean():.3f}."
    )
    caption = "Flat where forecasts are calibrated; high at the ends where they are too narrow."
    return Section("PIT by horizon", lead, [Figure(drawing, caption, "Histograms of F(y).")])


def skill(evidence: Evidence) -> Section | None:
    r"""Compares with every baseline, with standard errors from blocks of time.

    .. math:: \text{skill} = 1 - \bar s / \bar s_0, \qquad
        \operatorname{se}(\bar d) = \operatorname{sd}(\text{block means of } d) / \sqrt{B}

    Windows overlap and errors last: differences d are averaged over all series at an origin, and
    over blocks of at least a horizon and a season.
    """
    own, rows = _own(evidence), evidence.job.rows
    table = []
    for forecast in baselines(evidence).forecasts:
        if forecast.name == "model":
            continue
        other = _of(evidence, forecast)
        if other.measure != own.measure:
            continue
        gap = other.values.mean(1) - own.values.mean(1)
        error = block_error(gap, rows.step, max(rows.horizon, rows.season))  # type: ignore[attr-defined]
        base = float(other.values.mean())
        table.append([forecast.name, base, 1 - own.values.mean() / base, float(gap.mean()), error])
    if not table:
        return None
    beaten = [str(name) for name, _, _, gap, error in table if error and gap > 2 * error]
    lead = (
        f"It beats {', '.join(beaten)} by more than two standard errors."
        if beaten
        else "It beats no baseline by more than two standard errors."
    )
    head = ["baseline", f"mean {own.measure}", "skill", "difference", "standard error"]
    caption = "Skill is 1 - score / score of the baseline; errors are from blocks of time."
    return Section("Skill against baselines", lead, [Table(head, table, caption)])


def block_error(gap: Numbers, step: NDArray[np.int64], length: int) -> float | None:
    """The standard error of a mean over rows, from means of blocks of ``length`` steps."""
    block = (step - step.min()) // length
    counts = np.bincount(block)
    means = np.bincount(block, gap)[counts > 0] / counts[counts > 0]
    return float(means.std(ddof=1) / len(means) ** 0.5) if len(means) > 2 else None


def autocorrelation(evidence: Evidence) -> Section | None:
    """Draws the autocorrelation of one-step residuals; of a good forecast there is none."""
    likelihood, raw = evidence.predictive()
    if not likelihood.has_distribution:
        return None
    u = pits(likelihood, raw, evidence.outcome)[:, 0].clamp(EDGE, 1 - EDGE)
    z, rows = torch.special.ndtri(u.double()).numpy(), evidence.job.rows
    lags = np.arange(1, min(LAGS, max(2, len(z) // 4)) + 1)
    found, pairs = lagged(z, rows.series, rows.step, lags)  # type: ignore[attr-defined]
    band = 1.96 / np.sqrt(np.maximum(pairs, 1))
    with figure(6.4, 2.4) as paper:
        axes = paper.subplots()
        axes.vlines(lags, 0, found, color=MODEL)
        axes.fill_between(lags, -band, band, color=INK, alpha=0.12, lw=0)
        axes.axhline(0, color=INK, lw=0.7)
        axes.set_xlabel("lag")
        axes.set_ylabel("autocorrelation")
        drawing = to_svg(paper)
    outside = int((np.abs(found) > band).sum())
    lead = (
        f"{outside} of {len(lags)} lags lie outside the 95 % band of independent residuals; by "
        f"chance {0.05 * len(lags):.1f} would."
    )
    caption = "Normal scores of one-step forecasts. What repeats could still be forecast."
    parts: list[Any] = [Figure(drawing, caption, "Autocorrelation of residuals by lag.")]
    if len(rows.panel) > 1:  # type: ignore[attr-defined]
        parts.append(Text("Pairs are taken within series; series are treated as independent."))
    return Section("Residual autocorrelation", lead, parts)


def lagged(
    z: Numbers, series: NDArray[np.int64], step: NDArray[np.int64], lags: NDArray[np.int64]
) -> tuple[Numbers, NDArray[np.int64]]:
    """The correlation of values that lie a lag apart in one series, and the number of pairs."""
    steps = int(step.max() - step.min()) + 1
    grid = np.full((int(series.max()) + 1, steps), np.nan)
    grid[series, step - step.min()] = z - z.mean()
    variance = float(np.nanmean(grid**2))
    found, pairs = [], []
    for lag in lags:
        product = grid[:, lag:] * grid[:, :-lag] if lag < steps else grid[:, :0]
        pairs.append(int(np.isfinite(product).sum()))
        found.append(float(np.nanmean(product)) / variance if pairs[-1] else 0.0)
    return np.array(found), np.array(pairs)
