"""Reports the reliability of predicted class probabilities."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import percent, printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, PALETTE, figure, to_svg
from ansatz.metrics import ece
from ansatz.report.corp import Decomposition, Reliability, add, decompose, reliability
from ansatz.report.discrimination import (
    ThresholdCurve,
    confusion,
    precision_recall_curve,
    roc_curve,
)
from ansatz.report.evidence import Evidence
from ansatz.report.transform import is_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]
MOST = 6  # classes that are shown


class Question(NamedTuple):
    """A binary event with its predicted probability."""

    name: str  # of the event
    event: Numbers  # ``(N,)``, 0 or 1
    probability: Numbers  # ``(N,)``


def questions(evidence: Evidence) -> list[Question]:
    """Turns class probabilities into binary events.

    Two classes: the second. Ordered classes: whether the outcome exceeds each threshold. Others:
    the six most frequent classes, each against the rest, and whether the most probable class is
    correct.
    """
    probs, code = class_probabilities(evidence)
    labels = evidence.classes
    names = [
        printable(name, 30) for name in (labels if labels is not None else range(len(probs.T)))
    ]
    if probs.shape[1] == 2:
        return [Question(names[1], (code == 1).astype(np.float64), probs[:, 1])]
    if evidence.likelihood.name == "ordinal":
        above = probs[:, ::-1].cumsum(1)[:, ::-1]
        return [
            Question(f"{names[k]} or more", (code >= k).astype(np.float64), above[:, k].clip(0, 1))
            for k in range(1, min(probs.shape[1], MOST + 1))
        ]
    weight = evidence.weight.numpy()
    frequent = np.argsort(-np.bincount(code, weight, probs.shape[1]), kind="stable")[:MOST]
    found = [
        Question(names[k], (code == k).astype(np.float64), probs[:, k]) for k in sorted(frequent)
    ]
    top = probs.argmax(1)
    return [*found, Question("the predicted class", (top == code).astype(np.float64), probs.max(1))]


def class_probabilities(evidence: Evidence) -> tuple[Numbers, NDArray[np.intp]]:
    """Returns predicted probabilities ``(N, K)`` and the codes of the outcomes ``(N,)``."""
    likelihood = evidence.distribution
    assert likelihood is not None
    with torch.no_grad():
        probs: torch.Tensor = likelihood.probs  # type: ignore[attr-defined]
    if probs.ndim == 1:
        probs = torch.stack([1 - probs, probs], 1)
    return probs.double().numpy(), evidence.value.long().numpy().astype(np.intp)


def draw_reliability(axes: "Axes", found: Reliability, title: str = "") -> None:
    """Draws the isotonic line with its consistency band, and a histogram of the forecasts."""
    edges = np.linspace(0, 1, 31)
    counts, _ = np.histogram(found.forecast, edges, weights=found.weight)
    axes.stairs(0.18 * counts / max(counts.max(), 1e-300), edges, color=INK, fill=True, alpha=0.35)
    some = np.unique(np.linspace(0, len(found.forecast) - 1, 150).round()).astype(np.intp)
    axes.fill_between(
        found.forecast[some], found.low[some], found.high[some], color=INK, alpha=0.2, lw=0
    )
    axes.plot([0, 1], [0, 1], color=INK, lw=0.8)
    x, y = _corners(found)
    axes.plot(x, y, color=MODEL, lw=1.5)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed frequency")
    axes.set_title(title)


def _corners(found: Reliability) -> tuple[Numbers, Numbers]:
    """Finds the corners of the step function."""
    level = found.calibrated
    bend = np.ones(len(level), dtype=np.bool_)
    if len(level) > 2:
        bend[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    return found.forecast[bend], level[bend]


def draw_curves(axes: "Axes", curves: dict[str, ThresholdCurve], *, kind: str) -> None:
    """Draws ROC or precision-recall curves by name."""
    if kind == "roc":
        axes.plot([0, 1], [0, 1], color=INK, lw=0.8)
    for (name, curve), colour in zip(curves.items(), PALETTE, strict=False):
        places = np.unique(np.linspace(0, len(curve.x) - 1, 300).round()).astype(np.intp)
        x, y = curve.x[places], curve.y[places]
        axes.plot(x, y, color=colour, lw=1.4, label=printable(name, 18))
    axes.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    axes.set_xlabel("false positive rate" if kind == "roc" else "recall")
    axes.set_ylabel("true positive rate" if kind == "roc" else "precision")
    axes.set_title("ROC" if kind == "roc" else "Precision and recall")
    if len(curves) > 1:
        axes.legend(loc="lower right" if kind == "roc" else "best", fontsize=7.5)


def section(evidence: Evidence) -> Section | None:
    """Reports reliability, decomposed scores, ROC, precision-recall, confusion of classes."""
    likelihood = evidence.distribution
    if (
        likelihood is None
        or not is_classes(likelihood)
        or hasattr(likelihood, "ranks")
        or evidence.value.ndim > 1
    ):
        return None
    asked = questions(evidence)
    weight = evidence.weight.numpy()
    found = {q.name: reliability_of(q, weight, evidence.seed) for q in asked}
    brier = {q.name: decompose(q.event, q.probability, weight=weight) for q in asked}
    log = {q.name: decompose(q.event, q.probability, "log", weight=weight) for q in asked}
    several = len(asked) > 1
    nominal = several and evidence.likelihood.name != "ordinal"
    left_out = max(class_probabilities(evidence)[0].shape[1] - MOST, 0) if nominal else 0
    separate = [q for q in asked if not several or q.name != "the predicted class"]
    rocs = {
        q.name: roc_curve(q.event, q.probability, weight=weight, group=evidence.group)
        for q in separate
        if 0 < q.event.sum() < len(q.event)
    }
    parts: list[Text | Table | Figure] = [
        _reliability_figure(found, left_out),
        _score_table(asked, brier, log, found, weight),
    ]
    total = _whole_brier(evidence, weight) if several else None
    if total is not None:
        parts.append(Text(_describe_total(total)))
    if rocs:
        parts += _curves(separate, rocs, weight, evidence.group)
    if not evidence.contribution.draws_confusion:
        parts.append(_confusion_table(evidence, weight))
    parts.append(_class_table(evidence, weight))
    return Section("Reliability of the probabilities", _lead(asked, brier, found), parts)


def reliability_of(q: Question, weight: Numbers, seed: int) -> Reliability:
    """Computes the reliability of one question's probabilities."""
    resamples = 200 if len(q.event) <= 20_000 else 60
    return reliability(q.event, q.probability, weight=weight, seed=seed, resamples=resamples)


def _lead(
    asked: list[Question], brier: dict[str, Decomposition], found: dict[str, Reliability]
) -> str:
    worst = max(asked, key=lambda q: brier[q.name].miscalibration)
    part, line = brier[worst.name], found[worst.name]
    gap = float(np.average(np.abs(line.calibrated - line.forecast), weights=line.weight))
    verdict = "agree with the observed frequencies"
    if line.outside > 0.2:
        verdict = "are close to the observed frequencies" if gap < 0.03 else "are miscalibrated"
    where = "" if len(asked) == 1 else f" (worst: {worst.name})"
    return (
        f"Predicted probabilities {verdict}{where}: on average {100 * gap:.1f} points from the "
        f"isotonic line, which leaves the band of calibrated probabilities for "
        f"{100 * line.outside:.0f} % of the rows; miscalibration is {part.miscalibration:.4f} of a "
        f"Brier score of {part.score:.4f}."
    )


def _reliability_figure(found: dict[str, Reliability], left_out: int) -> Figure:
    count = len(found)
    columns = 1 if count == 1 else 2 if count == 2 else 3 if count <= 6 else 4
    lines = -(-count // columns)
    size = 3.4 if count == 1 else 6.6 / columns
    width = 3.6 if count == 1 else 6.6
    with figure(width, lines * (size + 0.25)) as paper:
        grid = paper.subplots(lines, columns, squeeze=False)
        for axes, (name, part) in zip(grid.flat, found.items(), strict=False):
            draw_reliability(axes, part, printable(name, 76 // columns))
            if columns > 3:  # the long labels do not fit
                axes.set(xlabel="predicted", ylabel="observed")
        for axes in grid[:, 1:].flat:
            axes.set_ylabel("")
        for axes in grid.flat[count:]:
            axes.set_axis_off()
        svg = to_svg(paper)
    caption = (
        "Observed frequency of the event against its predicted probability, by isotonic "
        "regression (CORP). Band: pointwise 90 % band of calibrated probabilities. Bars at the "
        "bottom: histogram of the predicted probabilities."
    )
    if left_out:
        caption += f" {left_out} rarer classes are left out."
    alt = "; ".join(
        f"{name}: outside the band for {part.outside:.0%} of rows" for name, part in found.items()
    )
    return Figure(svg, caption, f"Reliability diagrams. {alt}.")


def _score_table(
    asked: list[Question],
    brier: dict[str, Decomposition],
    log: dict[str, Decomposition],
    found: dict[str, Reliability],
    weight: Numbers,
) -> Table:
    rows: list[list[str | float]] = []
    w = torch.from_numpy(weight)
    for q in asked:
        error = float(ece(torch.from_numpy(q.event), torch.from_numpy(q.probability), w))
        outside = f"{100 * found[q.name].outside:.0f} %"
        for name, parts in (("Brier", brier[q.name]), ("log", log[q.name])):
            last = [f"{error:.4f}".replace("-", "−"), outside] if name == "Brier" else ["", ""]
            rows.append([q.name, name, *(f"{part:.4f}" for part in parts), *last])
    head = ["event", "score", "mean", "miscalibration", "discrimination", "uncertainty"]
    return Table(
        [*head, "ECE", "outside band"],
        rows,
        "Score = miscalibration − discrimination + uncertainty, exactly. Miscalibration is the "
        "gain of isotonic recalibration on these rows, an upper bound for new ones. ECE: 15 bins "
        "of equal size, debiased.",
    )


def _whole_brier(evidence: Evidence, weight: Numbers) -> Decomposition:
    """Sums the Brier scores of the single classes."""
    probs, code = class_probabilities(evidence)
    return add(
        [
            decompose((code == k).astype(np.float64), probs[:, k], weight=weight)
            for k in range(probs.shape[1])
        ]
    )


def _describe_total(total: Decomposition) -> str:
    return (
        f"All classes together: Brier score {total.score:.4f} = miscalibration "
        f"{total.miscalibration:.4f} − discrimination {total.discrimination:.4f} + uncertainty "
        f"{total.uncertainty:.4f}, the sums over classes."
    )


def _curves(
    asked: list[Question],
    rocs: dict[str, ThresholdCurve],
    weight: Numbers,
    group: NDArray[Any] | None,
) -> list[Text | Table | Figure]:
    pairs = {
        q.name: precision_recall_curve(q.event, q.probability, weight=weight, group=group)
        for q in asked
        if q.name in rocs
    }
    with figure(6.4, 3.1) as paper:
        left, right = paper.subplots(1, 2)
        draw_curves(left, rocs, kind="roc")
        draw_curves(right, pairs, kind="precision-recall")
        if len(pairs) == 1:
            q = asked[0]
            share = float(np.average(q.event, weights=weight))
            right.axhline(share, color=INK, lw=0.8)
        svg = to_svg(paper)
    rows: list[list[str | float]] = []
    for q in asked:
        if q.name in rocs:
            share = float(np.average(q.event, weights=weight))
            roc, pair = rocs[q.name], pairs[q.name]
            rows.append([q.name, f"{100 * share:.1f} %", *_area(roc), *_area(pair)])
    areas = ", ".join(f"{name} {curve.area:.3f}" for name, curve in rocs.items())
    head = ["event", "frequency", "AUC", "95 % interval", "average precision", "95 % interval"]
    return [
        Figure(
            svg,
            "Left: true against false positive rate. Right: precision against recall. Grey lines: "
            "a random score.",
            f"ROC and precision-recall curves; areas under the ROC: {areas}.",
        ),
        Table(
            head,
            rows,
            "Intervals: of the AUC by DeLong's variance on the logit scale, of the average "
            "precision by bootstrap.",
        ),
    ]


def _area(curve: ThresholdCurve) -> list[str]:
    return [f"{curve.area:.3f}", f"{curve.low:.3f} to {curve.high:.3f}"]


def _confused(evidence: Evidence, weight: Numbers) -> tuple[list[str], Numbers, NDArray[np.intp]]:
    """Names the classes, counts rows by class and predicted class, and chooses those to show."""
    probs, code = class_probabilities(evidence)
    labels = evidence.classes
    names = [
        printable(name, 20) for name in (labels if labels is not None else range(len(probs.T)))
    ]
    counts = confusion(code, probs.argmax(1), probs.shape[1], weight)
    return names, counts, np.sort(np.argsort(-counts.sum(1), kind="stable")[: MOST * 2])


def _class_table(evidence: Evidence, weight: Numbers) -> Table:
    names, counts, chosen = _confused(evidence, weight)
    rows: list[list[str | float | int | None]] = []
    for k in chosen:
        hits, rows_of, predicted = counts[k, k], counts[k].sum(), counts[:, k].sum()
        total = int(rows_of) if float(rows_of).is_integer() else float(rows_of)
        both = rows_of + predicted
        rows.append(
            [
                names[k],
                total,
                percent(hits / predicted) if predicted > 0 else None,
                percent(hits / rows_of) if rows_of > 0 else None,
                percent(2 * hits / both) if both > 0 else None,
            ]
        )
    return Table(
        ["class", "rows", "precision", "recall", "F1"],
        rows,
        "By the most probable class. Precision: the share of the rows predicted to be of a class "
        "that are. Recall (sensitivity): the share of its rows that are predicted to be. F1: their "
        "harmonic mean.",
    )


def _confusion_table(evidence: Evidence, weight: Numbers) -> Table:
    names, counts, chosen = _confused(evidence, weight)
    rows: list[list[str | float]] = []
    for k in chosen:
        cells = [int(v) if float(v).is_integer() else float(v) for v in counts[k, chosen]]
        rows.append([names[k], *cells])
    head = ["is \\ predicted", *(names[k] for k in chosen)]
    rest = len(counts) - len(chosen)
    more = f" {rest} rarer classes are left out." if rest else ""
    return Table(head, rows, f"Rows of each class by their most probable class.{more}")
