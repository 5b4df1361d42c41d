"""Reports quantile residuals, which are uniform if calibrated, in the style of DHARMa."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, thin, to_svg
from ansatz.likelihoods import Distribution
from ansatz.report.effect import EffectSize
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import effect_row, p_text
from ansatz.report.residual_tests import (
    Envelope,
    Residuals,
    dispersion,
    holds,
    outliers,
    quantile_residuals,
    simulate,
    uniform_envelope,
    uniformity,
    zero_inflation,
)
from ansatz.report.transform import Target, targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]


class QuantileLine(NamedTuple):
    """A quantile of residuals along the predictions."""

    level: float  # of the quantile, where the line lies if calibrated
    x: Numbers  # ``(B,)``, centres of the bins, in ranks from 0 to 1
    value: Numbers  # ``(B,)``
    low: Numbers  # ``(B,)``: all bins lie between low and high with probability 95 %
    high: Numbers  # ``(B,)``
    p_value: float  # of the bin that is furthest off, corrected for their number

    @property
    def largest(self) -> float:
        """The largest distance from the level."""
        return float(np.abs(self.value - self.level).max())


TITLE = "Quantile residuals"


def draw_uniform_qq(axes: "Axes", uniform: Numbers, band: Envelope) -> None:
    """Draws sorted residuals against uniform quantiles, with their simultaneous envelope."""
    rows = len(uniform)
    expected = np.arange(1, rows + 1) / (rows + 1)
    x, y = thin(expected, np.sort(uniform), limit=400)
    axes.fill_between(band.expected, band.low, band.high, color=INK, alpha=0.2, lw=0)
    axes.plot([0, 1], [0, 1], color=INK, lw=0.8)
    axes.plot(x, y, ".", color=MODEL, ms=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("expected")
    axes.set_ylabel("residual, sorted")
    axes.set_title("Uniform QQ")


def draw_quantile_lines(
    axes: "Axes", uniform: Numbers, fitted: Numbers, lines: list[QuantileLine]
) -> None:
    """Draws residuals against ranks of the predictions, with their quartiles in bins."""
    rank = (stats.rankdata(fitted, "ordinal") - 0.5) / len(fitted)
    x, y = thin(rank, uniform, limit=800)
    axes.plot(x, y, ".", color=MODEL, ms=3, alpha=0.5, mew=0)
    for line in lines:
        at, value, low, high = line.x, line.value, line.low, line.high
        if len(at) == 1:  # one bin: level lines
            at = np.array([0.0, 1.0])
            value, low, high = (part.repeat(2) for part in (value, low, high))
        axes.fill_between(at, low, high, color=INK, alpha=0.17, lw=0)
        axes.axhline(line.level, color=INK, lw=0.8, ls=(0, (4, 3)))
        axes.plot(at, value, color=LINEAR, lw=1.5)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("rank of the prediction")
    axes.set_ylabel("residual")
    axes.set_title("Residuals by prediction")


def section(evidence: Evidence) -> Section | None:
    """Reports QQ plot, quartiles by prediction and tests; None where there are no residuals."""
    outcomes = targets(evidence)
    if not outcomes:
        return None
    parts: list[Text | Table | Figure] = []
    leads = []
    for target in outcomes:
        usable = target.transform.finite()
        if usable.sum() < 5:
            parts.append(Text("Fewer than five rows have a residual: too few to test."))
            continue
        found = quantile_residuals(target.transform.take(usable), seed=evidence.seed)
        lines = quantile_lines(found.uniform[0], target.fitted[usable])
        effects = [uniformity(found.uniform), *_by_likelihood(evidence, target, usable)]
        effects.append(outliers(found.uniform))
        inside = holds(np.sort(found.uniform[0]), uniform_envelope(int(usable.sum())))
        leads.append(_lead(effects, lines, inside, target.name))
        parts.append(_figure(found, target.fitted[usable], lines, target))
        parts.append(_table(effects, lines, target.name))
        parts.append(Text(_how(found, evidence, target), "note"))
    return Section(TITLE, " ".join(leads), parts)


def _by_likelihood(
    evidence: Evidence, target: Target, usable: NDArray[np.bool_]
) -> list[EffectSize]:
    """Tests dispersion and zeros by the predicted distributions."""
    distribution = evidence.distribution
    if distribution is None or evidence.is_censored or getattr(distribution, "circular", False):
        return []
    rows = torch.from_numpy(np.flatnonzero(usable))
    weight = evidence.weight.numpy()[usable]
    group = None if evidence.group is None else evidence.group[usable]
    y = target.of(evidence.value).double()[rows]
    found = []
    with torch.no_grad():
        mean, variance = target.of(distribution.mean)[rows], target.of(distribution.variance)[rows]
    if bool(variance.isfinite().all()):
        draws = target.of(simulate(distribution, evidence.seed))[:, rows]
        found.append(dispersion(mean, variance, y, draws, weight=weight, group=group))
    zero = _probability_of_zero(distribution, target)
    if zero is not None:
        p = zero.numpy()[usable]
        if (weight * p).sum() >= 0.5 or bool((y == 0).any()):
            options: dict[str, Any] = {"weight": weight, "group": group}
            found.append(zero_inflation((y == 0).numpy(), p, **options, seed=evidence.seed))
    return found


def _probability_of_zero(distribution: Distribution, target: Target) -> torch.Tensor | None:
    """Computes P(Y = 0) of each row, where 0 is the least value and an atom."""
    if distribution.lower != 0:
        return None
    with torch.no_grad():
        chance = target.of(distribution.cdf(torch.zeros_like(distribution.mean)))
    return chance if bool((chance > 0).any()) else None


def _lead(effects: list[EffectSize], lines: list[QuantileLine], inside: bool, name: str) -> str:
    subject = f"{name}: " if name else ""
    off = [
        f"{effect.name} {effect.value:.2f} ({effect.low:.2f} to {effect.high:.2f})"
        for effect in effects
        if effect.excludes_neutral and effect.p_value is not None and effect.p_value < 0.02
    ]
    bent = [line for line in lines if line.p_value < 0.01]
    if bent:
        worst = max(bent, key=lambda line: line.largest)
        off.append(f"the {100 * worst.level:.0f} % line deviates by up to {worst.largest:.2f}")
    if not off and inside:
        words = f"{subject}the residuals are those of a calibrated forecast."
    elif not off:
        words = f"{subject}the residuals leave the envelope of a calibrated forecast."
    else:
        words = f"{subject}the residuals are not those of a calibrated forecast: {'; '.join(off)}."
    return words[0].upper() + words[1:]


def _figure(found: Residuals, fitted: Numbers, lines: list[QuantileLine], target: Target) -> Figure:
    with figure(6.4, 2.9) as paper:
        left, right = paper.subplots(1, 2, width_ratios=[1, 1.35])
        draw_uniform_qq(left, found.uniform[0], uniform_envelope(found.uniform.shape[1]))
        draw_quantile_lines(right, found.uniform[0], fitted, lines)
        if target.name:
            paper.suptitle(target.name)
        svg = to_svg(paper)
    caption = (
        "Left: sorted residuals against uniform quantiles; if calibrated, all points lie in the "
        "band with probability 95 %. Right: residuals by rank of the prediction, with their "
        "quartiles in bins (lines) and the 95 % bands of all bins of a line together."
    )
    moved = ", ".join(f"{100 * line.level:.0f} % line {line.largest:.2f}" for line in lines)
    return Figure(
        svg, caption, f"Uniform QQ plot and quartiles of residuals; largest distances: {moved}."
    )


def _table(effects: list[EffectSize], lines: list[QuantileLine], name: str) -> Table:
    rows = [effect_row(effect) for effect in effects]
    rows += [
        [
            f"{100 * line.level:.0f} % line, largest distance",
            f"{line.largest:.2f}",
            "–",
            f"band ±{(line.high - line.low).max() / 2:.2f}",
            p_text(line.p_value),
        ]
        for line in lines
    ]
    head = ["", "estimate", "95 % interval", "if calibrated", "p"]
    caption = (
        "Look at effects first: with many rows the smallest misfit is significant. Outliers are "
        "rows beyond 250 simulations of their predicted distribution."
    )
    return Table(head, rows, f"{name}: {caption}" if name else caption)


def _random_rows(evidence: Evidence, target: Target) -> str:
    if evidence.is_censored:
        return "censored rows"
    if target.rounding:
        return f"outcomes that were rounded to {target.rounding:g}"
    return "discrete outcomes"


def _how(found: Residuals, evidence: Evidence, target: Target) -> str:
    words = []
    if len(found.uniform) > 1:
        words.append(
            f"Residuals of {_random_rows(evidence, target)} are randomised: numbers are medians "
            f"of {len(found.uniform)} draws from seed {evidence.seed}, figures show the first."
        )
    if target.transform.censored.any():
        words.append(
            "The outcome of a censored row is drawn from its own prediction, which can hide a "
            "misfit but not cause one; the observed variance is unknown."
        )
    if evidence.group is not None:
        words.append(
            "Intervals of ratios allow for dependence within groups; the other p-values do not."
        )
    if not words:
        words.append("The likelihood is continuous: the residuals are not randomised.")
    return " ".join(words)


def quantile_lines(
    uniform: ArrayLike, fitted: ArrayLike, levels: Sequence[float] = (0.25, 0.5, 0.75)
) -> list[QuantileLine]:
    r"""Computes quantiles of residuals in bins of equal size, ordered by prediction.

    The :math:`\lceil q m \rceil`-th of m uniform numbers has a Beta distribution, which gives
    the band exactly; the bins share the 5 % (Sidak).
    """
    u, order = np.asarray(uniform), np.argsort(np.asarray(fitted), kind="stable")
    parts = np.array_split(u[order], int(np.clip(len(u) // 150, 1, 10)))
    sizes = np.array([len(part) for part in parts])
    ends = np.concatenate([[0], np.cumsum(sizes)]) / len(u)
    x = (ends[1:] + ends[:-1]) / 2
    tail = (1 - 0.95 ** (1 / len(parts))) / 2
    lines = []
    for level in levels:
        place = np.maximum(np.ceil(level * sizes), 1).astype(np.intp)
        value = np.array([np.sort(p)[k - 1] for p, k in zip(parts, place, strict=True)])
        beta = stats.beta(place, sizes - place + 1)
        each = 2 * np.minimum(beta.cdf(value), beta.sf(value))
        p = float(1 - (1 - min(each.min(), 1.0)) ** len(parts))
        lines.append(QuantileLine(level, x, value, beta.ppf(tail), beta.isf(tail), p))
    return lines
