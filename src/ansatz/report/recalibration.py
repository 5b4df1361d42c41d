"""Reports the effect of recalibration on the test rows."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Distribution
from ansatz.metrics import influence_error, mean_estimate
from ansatz.report.corp import decompose, reliability
from ansatz.report.effect import EffectSize
from ansatz.report.evidence import Evidence
from ansatz.report.interval_coverage import covered, intervals
from ansatz.report.normal_scores import normal_scores
from ansatz.report.pit import draw_pit, pit_histogram
from ansatz.report.reliability import draw_reliability
from ansatz.report.transform import Transform, is_classes, targets, transform

Numbers = NDArray[np.float64]
TITLE = "Recalibration, before and after"
NONE = "The predictions were not recalibrated."
_KINDS = {
    "temperature": "the logits were divided by a temperature of",
    "scale": "the scale of the predicted distributions was multiplied by",
    "dispersion": "the dispersion of the predicted distributions was multiplied by",
}


class ScoreChange(NamedTuple):
    """The paired change of the log score."""

    before: float  # mean negative log-likelihood
    after: float  # the same with recalibration
    difference: EffectSize  # after - before, with its 95 % interval; below 0 is better


def paired_change(
    before: torch.Tensor,
    after: torch.Tensor,
    *,
    weight: torch.Tensor | None = None,
    group: NDArray[Any] | None = None,
) -> ScoreChange:
    """Computes the change of a mean loss."""
    first, second = (mean_estimate(loss, weight) for loss in (before, after))
    change = second.minus(first)
    codes = None
    if group is not None:
        codes = torch.from_numpy(np.unique(group.astype(str), return_inverse=True)[1])
    reach = 1.96 * influence_error(change.influence, weight, group=codes)
    value = change.value
    effect = EffectSize("change of nll", value, value - reach, value + reach, 0.0)
    return ScoreChange(first.value, second.value, effect)


def section(evidence: Evidence) -> Section | None:
    """Reports test rows before and after; one sentence if there was no recalibration."""
    if evidence.distribution is None:
        return None
    done = evidence.model.recalibration
    if done is None:
        return Section(TITLE, NONE)
    parts: list[Text | Table | Figure] = [_out_of_fold(done)]
    what = f"{_KINDS.get(done.kind, 'the predictions were changed by')} {done.value:.3f}"
    if getattr(evidence.distribution, "circular", False):
        what = f"the predicted concentration was divided by {done.value:.3f}"
    what = f"{what[0].upper()}{what[1:]}, estimated on out-of-fold rows."
    plain = _before(evidence)
    before, _ = evidence.model.outcome.distribution(plain, evidence.outcome)
    assert before is not None  # as that of the served predictive
    parts += _on_test_rows(evidence, before)
    change = _change(evidence, plain, before)
    if change is None:
        return Section(TITLE, what, parts)
    gap = change.difference
    verdict = "improved" if gap.high < 0 else "worsened" if gap.low > 0 else "hardly changed"
    lead = (
        f"{what} On the test rows the nll {verdict}: {number(change.before)} before, "
        f"{number(change.after)} after (change {number(gap.value, 2)}, {number(gap.low, 2)} to "
        f"{number(gap.high, 2)})."
    )
    return Section(TITLE, lead, parts)


def _change(evidence: Evidence, plain: Predictive, before: Distribution) -> ScoreChange | None:
    """Computes the change of the score; of censored rows by their censored likelihood."""
    options: dict[str, Any] = {"weight": evidence.weight, "group": evidence.group}
    assert evidence.distribution is not None
    if not evidence.is_censored:
        y, after = evidence.value, evidence.distribution
        with torch.no_grad():
            pair = [-each.log_prob(y).reshape(len(y), -1).mean(1) for each in (before, after)]
        return paired_change(*(loss.double() for loss in pair), **options)
    if not evidence.likelihood.additive:
        return None
    losses = evidence.model.outcome.row_losses(plain, evidence.outcome)
    return paired_change(losses.double(), evidence.row_losses().double(), **options)


def _before(evidence: Evidence) -> Predictive:
    """Predicts without recalibration."""
    plain = evidence.model.posterior.without_recalibration()
    return plain.predictive(evidence.job.rows, evidence.job.offset, notes=[])


def _out_of_fold(done: Any) -> Table:
    names = [name for name in done.before if name in done.after]
    rows = [[name, done.before[name], done.after[name]] for name in names]
    return Table(
        ["metric", "before", "after"], rows, "On the out-of-fold rows that it was estimated on."
    )


def _on_test_rows(evidence: Evidence, before: Distribution) -> list[Text | Table | Figure]:
    after = evidence.distribution
    assert after is not None
    if evidence.is_censored or evidence.value.ndim > 1:
        return []
    if is_classes(after):
        return _of_classes(evidence, before, after)
    if not _has_cdf(after):
        return []
    y, weight = evidence.value, evidence.weight.numpy()
    candidates = {"before": before, "after": after}
    (target,) = targets(evidence)
    step = target.rounding
    found = {
        name: transform(likelihood, y, rounding=step) for name, likelihood in candidates.items()
    }
    usable = np.logical_and.reduce([part.finite() for part in found.values()])
    found = {name: part.take(usable) for name, part in found.items()}
    svg = _histograms(found, weight[usable], evidence.seed)
    rows = []
    group = None if evidence.group is None else evidence.group[usable]
    for name, likelihood in candidates.items():
        scores = normal_scores(found[name], weight=weight[usable], group=group)
        shares = [
            f"{100 * covered(intervals(likelihood, y, level), weight=weight).observed:.1f} %"
            for level in (0.5, 0.8, 0.9, 0.95)
        ]
        rows.append([name, f"{scores.scale.value:.3f}", *shares])
    head = ["", "scale of normal scores", "in 50 %", "in 80 %", "in 90 %", "in 95 %"]
    caption = (
        "Histograms of the probability integral transform of the test rows; flat if calibrated."
    )
    alt = "; ".join(f"{row[0]}: scale {row[1]}" for row in rows)
    below = "Test rows: scale of the normal scores, coverage of the intervals."
    return [Figure(svg, caption, alt), Table(head, rows, below)]


def _has_cdf(distribution: Distribution) -> bool:
    return not hasattr(distribution, "ranks") and not hasattr(distribution, "event_shape")


def _histograms(found: dict[str, Transform], weight: Numbers, seed: int) -> str:
    with figure(6.4, 2.4) as paper:
        grid = paper.subplots(1, 2, sharey=True)
        for axes, (name, part) in zip(grid, found.items(), strict=True):
            draw_pit(axes, pit_histogram(part, weight=weight, seed=seed), name)
        top = max(axes.get_ylim()[1] for axes in grid)
        for axes in grid:
            axes.set_ylim(0, top)
        grid[1].set_ylabel("")
        return to_svg(paper)


def _of_classes(
    evidence: Evidence, before: Distribution, after: Distribution
) -> list[Text | Table | Figure]:
    """Reports reliability of the second of two classes, or of the most probable class."""
    weight, code = evidence.weight.numpy(), evidence.value.long()
    rows, curves = [], {}
    for name, likelihood in (("before", before), ("after", after)):
        probs: torch.Tensor = likelihood.probs.double()  # type: ignore[attr-defined]
        if probs.ndim == 2 and probs.shape[1] == 2:
            probs = probs[:, 1]
        if probs.ndim == 1:
            forecast, event = probs, code
        else:
            forecast, top = probs.max(1)
            event = (top == code).long()
        pair = event.double().numpy(), forecast.numpy()
        brier = decompose(*pair, weight=weight)
        log = decompose(*pair, "log", weight=weight)
        curves[name] = reliability(*pair, weight=weight, seed=evidence.seed)
        cells = (brier.score, brier.miscalibration, log.score, log.miscalibration)
        rows.append([name, *(f"{cell:.4f}" for cell in cells)])
    with figure(6.0, 3.1) as paper:
        for axes, (name, curve) in zip(paper.subplots(1, 2), curves.items(), strict=True):
            draw_reliability(axes, curve, name)
        svg = to_svg(paper)
    head = ["", "Brier", "its miscalibration", "log score", "its miscalibration"]
    caption = "Reliability of the probabilities on the test rows."
    alt = "; ".join(f"{row[0]}: miscalibration {row[2]}" for row in rows)
    return [Figure(svg, caption, alt), Table(head, rows, "On the test rows.")]
