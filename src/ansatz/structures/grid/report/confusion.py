"""Reports the confusion matrix of classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.montage import BLUE, VERMILION
from ansatz.figures.number_format import percent, printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, figure, to_svg
from ansatz.report.discrimination import confusion
from ansatz.report.effect import Share, wilson
from ansatz.report.evidence import Evidence, ExampleNoun
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.pictures import IMAGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]
MOST = 50  # classes of the picture
COUNTED = 20  # classes up to which counts are written into it
PAIRS = 10


def section(evidence: Evidence) -> Section | None:
    """Reports the confusion matrix of the test rows; None where outcomes are not classes."""
    if evidence.classes is None or evidence.distribution is None:
        return None
    probs, code = class_probabilities(evidence)
    weight, classes = evidence.weight.numpy(), list(evidence.classes)
    return confusion_section(code, probs, classes, weight=weight, unit=evidence.unit)


def draw_confusion(axes: "Axes", counts: ArrayLike, names: Sequence[str]) -> None:
    """Draws the ``(K, K)`` matrix: correct blue, mistakes vermilion, by shares of the row."""
    matrix = np.asarray(counts, dtype=np.float64)
    k = len(matrix)
    share = matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-300)
    image = np.empty((k, k, 4))
    image[..., :3] = np.array(VERMILION) / 255
    image[np.arange(k), np.arange(k), :3] = np.array(BLUE) / 255
    image[..., 3] = np.sqrt(share)  # so that one in a hundred is visible
    axes.imshow((255 * image).round().astype(np.uint8), interpolation="none")
    size = 8.5 if k <= 12 else max(8.5 * (12 / k) ** 0.6, 4.0)
    letter = 0.6 * size / 72  # inches, on average
    long = letter * max(len(name) for name in names)
    width, height = axes.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    turned = 0 if long <= min(width - long - 0.4, height - 0.5) / k else 90
    axes.set_xticks(range(k), names, fontsize=size, rotation=turned)
    axes.set_yticks(range(k), names, fontsize=size)
    axes.set(xlabel="predicted", ylabel="true")
    axes.tick_params(length=0)
    if k <= COUNTED:
        widest = len(f"{matrix.max():.0f}")
        text = min(8.5, 8.5 * (10 / k) ** 0.9, 8.5 * (3.5 / widest) * (10 / k) ** 0.5)
        for i, j in zip(*np.nonzero(matrix), strict=True):
            tone = "white" if share[i, j] > 0.3 else INK
            count = f"{matrix[i, j]:.0f}"
            axes.text(j, i, count, ha="center", va="center", fontsize=text, color=tone)


def confusion_section(
    truth: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    weight: ArrayLike | None = None,
    unit: ExampleNoun = IMAGE,
) -> Section | None:
    """Reports the confusion matrix, the most confused pairs, and recall and precision.

    Args:
        truth: class codes of the test rows.
        probabilities: predicted probabilities.
        classes: names by code.
        weight: frequency weights of the rows.
        unit: the name of an example.

    Shapes:
        - truth: ``(N,)``; probabilities: ``(N, K)``.

    Example:
        >>> from ansatz.diagnostics import confusion_section
        >>> probabilities = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]
        >>> confusion_section([0, 1, 1], probabilities, ["cat", "dog"]).lead[:41]
        '66.7 % of 3 test images are classified co'
    """
    code, probs = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    if not len(code):
        return None
    counts = confusion(code, probs.argmax(1), len(classes), weight)
    names = [printable(name, 20) for name in classes]
    right = wilson(float(np.trace(counts)), float(counts.sum()))
    pairs = _pairs(counts)
    parts: list[Text | Table | Figure] = [_figure(counts, names, right, unit)]
    if pairs:
        parts.append(_pair_table(counts, pairs, code, probs, classes))
    parts.append(_class_table(counts, classes, unit))
    lead = _lead(counts, right, pairs, names, unit)
    return Section("Confusion of classes", lead, parts)


def _lead(
    counts: Numbers,
    right: Share,
    pairs: list[tuple[int, int]],
    names: Sequence[str],
    unit: ExampleNoun,
) -> str:
    accuracy = (
        f"{percent(right.value)} of {counts.sum():.0f} test {unit.many} are classified correctly "
        f"(95 % interval {percent(right.low)} to {percent(right.high)})."
    )
    if not pairs:
        return accuracy
    i, j = pairs[0]
    return (
        f"{accuracy} The most frequent mistake is “{names[i]}” predicted as “{names[j]}”: "
        f"{counts[i, j]:.0f} times, {percent(counts[i, j] / counts[i].sum())} of “{names[i]}”."
    )


def _pairs(counts: Numbers) -> list[tuple[int, int]]:
    """Lists confused pairs of classes, the most frequent first."""
    mistakes = counts.copy()
    np.fill_diagonal(mistakes, 0)
    order = np.argsort(-mistakes.ravel(), kind="stable")[:PAIRS]
    found = zip(*np.unravel_index(order, counts.shape), strict=True)
    return [(int(i), int(j)) for i, j in found if mistakes[i, j] > 0]


def _figure(counts: Numbers, names: list[str], right: Share, unit: ExampleNoun) -> Figure:
    mistakes = counts.sum(1) + counts.sum(0) - 2 * np.diag(counts)
    chosen = np.sort(np.argsort(-mistakes, kind="stable")[:MOST])
    k = len(chosen)
    side = min(2.6 + 0.28 * k, 5.6) if k <= COUNTED else 6.2
    with figure(min(side + 0.9, 6.6), side) as paper:
        draw_confusion(paper.subplots(), counts[np.ix_(chosen, chosen)], [names[c] for c in chosen])
        svg = to_svg(paper)
    rest = len(counts) - k
    more = f" {rest} classes with fewer mistakes are not shown." if rest else ""
    return Figure(
        svg,
        f"Test {unit.many} by class (rows) and predicted class (columns). Blue: correct; "
        "vermilion: mistakes; the tint shows the share of the row on a square-root scale, so that "
        f"rare confusions are visible.{more}",
        f"Confusion matrix of {k} classes; {percent(right.value)} are correct.",
    )


def _pair_table(
    counts: Numbers,
    pairs: list[tuple[int, int]],
    code: NDArray[Any],
    probs: Numbers,
    classes: Sequence[Any],
) -> Table:
    top = probs.argmax(1)
    rows = []
    for i, j in pairs:
        there = (code == i) & (top == j)
        rows.append(
            [
                str(classes[i]),
                str(classes[j]),
                f"{counts[i, j]:.0f}",
                percent(counts[i, j] / counts[i].sum()),
                f"{counts[j, i]:.0f}",
                percent(float(probs[there, j].mean())),
            ]
        )
    head = ["true", "predicted", "count", "share of the class", "reverse", "mean probability"]
    return Table(head, rows, "The most frequent mistakes, and their mean predicted probability.")


def _class_table(counts: Numbers, classes: Sequence[Any], unit: ExampleNoun) -> Table:
    total, taken, hit = counts.sum(1), counts.sum(0), np.diag(counts)
    found = hit / np.maximum(total, 1e-300)
    there = np.flatnonzero(total > 0)
    order = there[np.argsort(found[there], kind="stable")][: MOST // 2]
    rows = []
    for k in order:
        share = wilson(float(hit[k]), float(total[k]))
        right = wilson(float(hit[k]), float(taken[k])) if taken[k] > 0 else None
        rows.append(
            [
                str(classes[k]),
                f"{total[k]:.0f}",
                percent(share.value),
                f"{percent(share.low)} to {percent(share.high)}",
                percent(right.value) if right else "–",
                f"{percent(right.low)} to {percent(right.high)}" if right else "–",
            ]
        )
    rest = len(there) - len(order)
    more = f" {rest} classes with a higher recall are not shown." if rest else ""
    head = ["class", unit.many, "recall", "95 % interval", "precision", "95 % interval"]
    return Table(head, rows, f"Classes by recall; Wilson intervals.{more}")
