"""Shows masks over images: the best, the median and the worst case by Dice coefficient."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.montage import (
    GREEN,
    PURPLE,
    VERMILION,
    Pictures,
    blended,
    coarse,
    pictures,
    strip,
)
from ansatz.figures.number_format import printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import PALETTE
from ansatz.metrics import overlap
from ansatz.report.evidence import Evidence, ExampleNoun
from ansatz.structures.grid.report.network import names_of
from ansatz.structures.grid.report.pictures import (
    IMAGE,
    SIGNAL,
    VOLUME,
    averaged,
    nearest,
    shown_late,
    slices_of,
)

SIDE = 128  # pixels of a picture
COLOURS = ("blue", "vermilion", "green", "purple", "ochre", "light blue")  # the palette's


NOTES = {
    SIGNAL: "Signals are drawn as curves, masks as bands behind them.",
    VOLUME: "Of volumes the middle slice is shown and scored here.",
}


def section(evidence: Evidence) -> Section | None:
    """Shows the best, the median and the worst case, and the disagreement of an ensemble."""
    truth = slices_of(evidence.outcome.numpy())
    classes = [] if evidence.classes is None else [str(name) for name in evidence.classes]

    model = evidence.model

    def disagree(rows: NDArray[Any]) -> NDArray[Any]:
        each = (
            evidence.X[np.array([row])] for row in rows
        )  # one at a time: many numbers per pixel
        found = [model.of_classes.disagreement(model.posterior, example) for example in each]
        return slices_of(torch.cat(found).numpy())

    made = overlays_section(
        shown_late(evidence.X),
        np.maximum(truth, 0),
        slices_of(evidence.point),
        classes,
        labelled=truth >= 0,
        names=names_of(evidence),
        unit=evidence.unit,
        disagreement=disagree if model.task.inference.averages else None,
    )
    if made is not None and evidence.unit in NOTES:
        made.parts.append(Text(NOTES[evidence.unit], "note"))
    return made


def overlays_section(
    images: NDArray[Any],
    truth: ArrayLike,
    predicted: ArrayLike,
    classes: Sequence[Any],
    *,
    labelled: ArrayLike | None = None,
    names: Sequence[Any] | None = None,
    disagreement: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    unit: ExampleNoun = IMAGE,
) -> Section | None:
    r"""Shows image, true mask, predicted mask and difference of three cases; Dice by class.

    .. math:: \text{Dice}_k = \frac{2 |A_k \cap B_k|}{|A_k| + |B_k|}

    with :math:`A_k` the pixels of class k and :math:`B_k` those predicted as k. The first class is
    the background; an image is ranked by the mean over its other classes, true or predicted.

    Args:
        images: of the test rows.
        truth: class codes of their pixels.
        predicted: predicted codes.
        classes: names by code, the background first.
        labelled: False where a pixel has no label.
        names: of the images, files or row numbers; by default their positions.
        disagreement: of an ensemble: from image numbers to the disagreement of its members at
            each pixel, ``(n, H, W)``.
        unit: what an example is called.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - truth, predicted, labelled: ``(N, H, W)``.
    """
    y, guess = np.asarray(truth), np.asarray(predicted)
    if not len(y):
        return None
    seen = np.ones(y.shape, bool) if labelled is None else np.asarray(labelled, bool)
    scores = _dice(y, guess, seen, len(classes))  # (N, K)
    with np.errstate(invalid="ignore"):
        counts = np.isfinite(scores[:, 1:]).sum(1)
        ranked = np.nansum(scores[:, 1:], 1) / np.where(counts > 0, counts, np.nan)
    parts: list[Text | Table | Figure] = []
    order = np.argsort(ranked, kind="stable")[: int(np.isfinite(ranked).sum())]  # nan is last
    if len(order):
        parts.append(
            _figure(images, y, guess, seen, ranked, order, classes, names, disagreement, unit)
        )
    parts.append(_table(scores, classes, unit))
    return Section("Masks, from the best to the worst", _lead(ranked, classes, unit), parts)


def _dice(
    y: NDArray[Any], guess: NDArray[Any], seen: NDArray[np.bool_], classes: int
) -> NDArray[np.float64]:
    found = overlap(
        torch.from_numpy(np.where(seen, y, 0).astype(np.int64)),
        torch.from_numpy(guess.astype(np.int64)),
        torch.from_numpy(seen.astype(np.float64)),
        classes=classes,
    )
    both, all_ = found.both.numpy(), (found.true + found.predicted).numpy()
    return np.where(all_ > 0, 2 * both / np.where(all_ > 0, all_, 1), np.nan)


def _lead(ranked: NDArray[np.float64], classes: Sequence[Any], unit: ExampleNoun) -> str:
    found = ranked[np.isfinite(ranked)]
    what = f"of {classes[1]}" if len(classes) == 2 else f"of {len(classes) - 1} classes"
    if not len(found):
        return f"Dice {what} is not defined: no test {unit.one} has any, true or predicted."
    rest = len(ranked) - len(found)
    more = f" {rest} {unit.many} have none." if rest else ""
    return (
        f"Dice {what} over {len(found)} test {unit.many}: {found.mean():.3f} on average, "
        f"from {found.min():.3f} to {found.max():.3f}.{more}"
    )


def _figure(
    images: NDArray[Any],
    y: NDArray[Any],
    guess: NDArray[Any],
    seen: NDArray[np.bool_],
    ranked: NDArray[np.float64],
    order: NDArray[Any],
    classes: Sequence[Any],
    names: Sequence[Any] | None,
    disagreement: Callable[[NDArray[Any]], NDArray[Any]] | None,
    unit: ExampleNoun,
) -> Figure:
    cases = {"best": order[-1], "median": order[(len(order) - 1) // 2], "worst": order[0]}
    if len(order) == 1:
        cases = {"the only": order[0]}
    rows = np.array(list(cases.values()))
    ground = pictures(images[rows], SIDE)
    size = ground.shape[1:3]
    masks = [nearest(mask[rows], size) for mask in (y, guess, seen)]
    columns = [
        ground,
        _tinted(ground, masks[0], masks[2]),
        _tinted(ground, masks[1], np.ones_like(masks[2])),
        _difference(ground, *masks),
    ]
    heads = ["image", "true", "predicted", "difference"]
    if disagreement is not None:
        columns.append(blended(ground, averaged(disagreement(rows), size), signed=False))
        heads.append("disagreement")
    shown = np.stack(columns, 1).reshape(-1, *ground.shape[1:])
    labels = [f"{word}: {ranked[row]:.3f}\n{_called(row, names)}" for word, row in cases.items()]
    svg = strip(shown, [], columns=len(heads), lines=0, labels=labels, heads=heads)
    missed = "missed" if len(classes) == 2 else "missed or of another class"
    caption = (
        f"Cases by the Dice coefficient of their {unit.one}. {_legend(classes)} Difference: green "
        f"correct, vermilion {missed}, purple false positive."
    )
    if disagreement is not None:
        caption += (
            " Disagreement: blue where the members of the ensemble disagree most, by the mutual "
            f"information of member and class, scaled per {unit.one}."
        )
    scores = ", ".join(f"{word} {ranked[row]:.3f}" for word, row in cases.items())
    return Figure(svg, caption, f"Masks over {unit.many}; Dice: {scores}.")


def _legend(classes: Sequence[Any]) -> str:
    """Writes the colours of the classes."""
    tints = [
        f"{COLOURS[k % len(COLOURS)]} {printable(name, 30)}" for k, name in enumerate(classes[1:8])
    ]
    return f"Masks: {', '.join(tints)}{', ...' if len(classes) > 8 else ''}."


def _called(row: int, names: Sequence[Any] | None) -> str:
    return (
        f"test row {row}"
        if names is None
        else printable(re.split(r"[/\\]", str(names[row]))[-1], 18)
    )


def _tinted(ground: Pictures, codes: NDArray[Any], seen: NDArray[Any]) -> Pictures:
    """Colours each class but the first; unlabelled pixels fade."""
    tints = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTE], np.float32)
    colour = tints[(codes - 1) % len(tints)]
    found = _faded(ground, 0.6)
    found = np.where((codes > 0)[..., None], 0.2 * found + 0.8 * colour, found)
    found = np.where((seen > 0)[..., None], found, 0.3 * found + 0.7 * 255)
    return coarse(found, 4)


def _difference(
    ground: Pictures, y: NDArray[Any], guess: NDArray[Any], seen: NDArray[Any]
) -> Pictures:
    found = _faded(ground, 0.3)
    labelled = seen > 0
    for where, tint in (
        ((y == guess) & (y > 0), GREEN),
        ((y != guess) & (y > 0), VERMILION),
        ((y == 0) & (guess > 0), PURPLE),
    ):
        there = (where & labelled)[..., None]
        found = np.where(there, 0.2 * found + 0.8 * np.array(tint, np.float32), found)
    return coarse(found, 4)


def _faded(ground: Pictures, kept: float) -> NDArray[np.float32]:
    """Turns pictures grey with a share of their contrast."""
    grey = 255 - kept * (255 - ground.astype(np.float32).mean(-1, keepdims=True))
    return np.repeat(grey, 3, -1)


def _table(scores: NDArray[np.float64], classes: Sequence[Any], unit: ExampleNoun) -> Table:
    rows: list[list[Any]] = []
    for k, name in enumerate(classes):
        there = scores[:, k][np.isfinite(scores[:, k])]
        if len(there):
            low, middle, high = (float(v) for v in np.quantile(there, [0, 0.5, 1]))
            rows.append(
                [str(name), len(there), *(f"{v:.3f}" for v in (there.mean(), low, middle, high))]
            )
        else:
            rows.append([str(name), 0, None, None, None, None])
    head = ["class", f"{unit.many} with it", "mean Dice", "worst", "median", "best"]
    caption = f"Dice by class over the {unit.many} that have it, true or predicted."
    return Table(head, rows, caption)
