"""Shows examples: of each class, the best and the worst, the most confident mistakes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.montage import LETTER, WIDTH, pictures, strip
from ansatz.figures.number_format import number, percent, printable
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.report.evidence import Evidence, ExampleNoun
from ansatz.report.outcome_report import (
    outcome_words,
    prediction_words,
    shown_outcome,
    shown_prediction,
)
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.network import names_of
from ansatz.structures.grid.report.pictures import IMAGE, pictures_of, shown_late

MOST = 12  # classes that are shown
EACH = 8  # images of a class
ELEMENTS = {1: "samples", 2: "pixels", 3: "voxels"}


def section(evidence: Evidence) -> Section | None:
    """Shows some examples of each class, and the notes of the fit."""
    notes: list[Any] = [Text(note, _kind(note)) for note in evidence.fit.get("notes", [])]
    if evidence.axis == "row" and evidence.classes is not None:
        codes, classes = evidence.value.long().numpy(), list(evidence.classes)
        images, unit = shown_late(evidence.X), evidence.unit
        made = examples_section(images, codes, classes, seed=evidence.seed, unit=unit)
        if made is not None:
            return Section(made.title, _lead(evidence), [*made.parts, *notes])
    return Section("The data", _lead(evidence), notes)


def _lead(evidence: Evidence) -> str:
    channels, *size = evidence.X.shape
    many = f"{len(evidence.weight)} test {evidence.unit.many}"
    if evidence.training is not None:
        many = f"{len(evidence.training.weight)} training {evidence.unit.many} and {many}"
    element = ELEMENTS[len(size)]
    what = f"{' × '.join(map(str, size))} {element} and {channels} channel{'s' * (channels > 1)}"
    return f"{many}, {what} each."


def _kind(note: str) -> str:
    return "warning" if note.startswith("warning") else "note"


def examples_section(
    images: NDArray[Any],
    truth: ArrayLike,
    classes: Sequence[Any],
    *,
    each: int = EACH,
    seed: int = 0,
    name: str = "test",
    unit: ExampleNoun = IMAGE,
) -> Section | None:
    """Shows some random images of every class, a row for each."""
    code = np.asarray(truth)
    counts = np.bincount(code, minlength=len(classes))
    if not len(code):
        return None
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST])
    chosen = chosen[counts[chosen] > 0]
    rows = _drawn(code, chosen, each, seed)
    size = 48 if len(chosen) > 4 else 64
    shown = pictures(images[np.maximum(rows, 0).ravel()], size)
    shown = _blanked(shown, rows.ravel() < 0)
    labels = [f"{printable(classes[k], 14)}\n{counts[k]}" for k in chosen]
    svg = strip(shown, [], columns=each, lines=0, side=0.6, labels=labels)
    rest = int((counts > 0).sum()) - len(chosen)
    more = f" {rest} rarer classes are not shown." if rest else ""
    height, width = images.shape[1:3]
    channels = images.shape[3] if images.ndim == 4 else 1
    lead = (
        f"{len(code)} {name} {unit.many} of {height} × {width} pixels and {channels} "
        f"{'channel' if channels == 1 else 'channels'}, in {int((counts > 0).sum())} "
        f"{'class' if int((counts > 0).sum()) == 1 else 'classes'}."
    )
    alt = "; ".join(f"{printable(classes[k], 30)}: {counts[k]} {unit.many}" for k in chosen)
    caption = f"Random {unit.many} of each class, with the number of its {unit.many}.{more}"
    parts: list[Text | Table | Figure] = [Figure(svg, caption, f"Contact sheet. {alt}.")]
    return Section(f"What the {unit.many} look like", lead, parts)


def _drawn(code: NDArray[Any], chosen: NDArray[Any], each: int, seed: int) -> NDArray[np.intp]:
    """Samples rows of each class, ``(classes, each)``; -1 where a class has too few."""
    rng = np.random.default_rng(seed)
    found = np.full((len(chosen), each), -1, dtype=np.intp)
    for i, k in enumerate(chosen):
        rows = rng.permutation(np.flatnonzero(code == k))[:each]
        found[i, : len(rows)] = rows
    return found


def _blanked(shown: NDArray[np.uint8], empty: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Replaces missing images by light squares."""
    return np.where(empty[:, None, None, None], np.uint8(238), shown).astype(np.uint8)


CASES = 8  # of each
LISTED = 12


def best_and_worst(evidence: Evidence) -> Section | None:
    """Shows the largest and the smallest losses; None for classes, which have mistakes."""
    if evidence.classes is not None:
        return None
    losses = evidence.row_losses().numpy()
    order = np.argsort(-losses, kind="stable")
    order = order[np.isfinite(losses[order])]
    if not len(order):
        return None
    count = min(CASES, math.ceil(len(order) / 2))
    worst, best = order[:count], order[::-1][:count]
    what = evidence.loss_name
    lead = (
        f"The {what} ranges from {number(float(losses[order[-1]]), 3)} to "
        f"{number(float(losses[order[0]]), 3)}. Check the worst {evidence.unit.many} for errors in "
        "the data."
    )
    parts: list[Text | Table | Figure] = [
        _cases_figure(evidence, worst, "worst", what),
        _cases_figure(evidence, best, "best", what),
        _cases_table(evidence, losses, order[:LISTED], what),
    ]
    return Section("The best and the worst predictions", lead, parts)


def _cases_figure(evidence: Evidence, rows: NDArray[np.intp], which: str, what: str) -> Figure:
    shown = pictures(pictures_of(evidence.X[rows]), 64)
    captions = [
        f"true {outcome_words(evidence, int(k), 12)}\n"
        f"pred. {prediction_words(evidence, int(k), 12)}"
        for k in rows
    ]
    svg = strip(shown, captions, columns=max(len(rows), 6), lines=2)
    side = "largest" if which == "worst" else "smallest"
    return Figure(
        svg,
        f"The {which}: {evidence.unit.many} with the {side} {what}, with their outcome and "
        "prediction.",
        f"Pictures of the {which} predictions: {'; '.join(captions[:4])}.".replace("\n", ", "),
    )


def _cases_table(
    evidence: Evidence, losses: NDArray[np.float64], rows: NDArray[np.intp], what: str
) -> Table:
    names = names_of(evidence)
    cells: list[list[Cell]] = [
        [
            names[k],
            shown_outcome(evidence, int(k)),
            shown_prediction(evidence, int(k)),
            float(losses[k]),
        ]
        for k in rows
    ]
    return Table(
        ["example", "outcome", "prediction", what],
        cells,
        "The worst of them, by file name or number in the data.",
    )


MISTAKES = 24  # mistakes


def confident_mistakes(evidence: Evidence) -> Section | None:
    """Shows mistakes ordered by confidence; None where outcomes are not classes."""
    if evidence.classes is None or evidence.distribution is None:
        return None
    probs, code = class_probabilities(evidence)
    return mistakes_section(
        shown_late(evidence.X),
        code,
        probs,
        list(evidence.classes),
        names=names_of(evidence),
        unit=evidence.unit,
    )


def mistakes_section(
    images: NDArray[Any],
    truth: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    count: int = MISTAKES,
    names: Sequence[Any] | None = None,
    unit: ExampleNoun = IMAGE,
) -> Section | None:
    """Shows mistakes ordered by the predicted probability of the wrong class."""
    code, probs = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    if not len(code):
        return None
    top = probs.argmax(1)
    wrong = np.flatnonzero(top != code)
    order = wrong[np.argsort(-probs[wrong, top[wrong]], kind="stable")]
    title = "The most confident mistakes"
    if not len(order):
        return Section(title, f"None of {len(code)} test {unit.many} is misclassified.")
    first = order[:count]
    best = float(probs[first[0], top[first[0]]])
    verb = "is" if len(order) == 1 else "are"
    lead = (
        f"{len(order)} of {len(code)} test {unit.many} {verb} misclassified, the most confident "
        f"with probability {_share(best)}."
    )
    parts: list[Text | Table | Figure] = [
        _mistakes_figure(images, code, probs, top, first, classes, unit)
    ]
    parts.append(_mistakes_table(code, probs, top, first[:12], classes, names, unit))
    return Section(title, lead, parts)


def _mistakes_figure(
    images: NDArray[Any],
    code: NDArray[Any],
    probs: NDArray[np.float64],
    top: NDArray[Any],
    rows: NDArray[Any],
    classes: Sequence[Any],
    unit: ExampleNoun,
) -> Figure:
    captions = [
        f"{printable(classes[top[i]], 12)}: {_share(float(probs[i, top[i]]))}\n"
        f"true {printable(classes[code[i]], 12)}: {_share(float(probs[i, code[i]]))}"
        for i in rows
    ]
    longest = LETTER * max(len(line) for caption in captions for line in caption.splitlines())
    columns = next((n for n in (8, 6, 5) if n * longest <= WIDTH), 4)
    svg = strip(pictures(images[rows], 64), captions, columns=columns, lines=2)
    described = "; ".join(
        f"{printable(classes[code[i]], 30)} predicted as {printable(classes[top[i]], 30)}"
        for i in rows[:6]
    )
    return Figure(
        svg,
        "First line: predicted class and its probability. Second line: the label and its predicted "
        "probability. Some labels may be wrong.",
        f"Pictures of the most confident mistakes: {described}.",
    )


def _mistakes_table(
    code: NDArray[Any],
    probs: NDArray[np.float64],
    top: NDArray[Any],
    rows: NDArray[Any],
    classes: Sequence[Any],
    names: Sequence[Any] | None,
    unit: ExampleNoun,
) -> Table:
    cells = [
        [
            str(names[i]) if names is not None else int(i),
            str(classes[code[i]]),
            str(classes[top[i]]),
            _share(float(probs[i, top[i]])),
            _share(float(probs[i, code[i]])),
        ]
        for i in rows
    ]
    first = unit.one if names is not None else "test row"
    head = [first, "true", "predicted", "its probability", "of the true class"]
    counted = f"; rows are counted from 0 among the test {unit.many}" if names is None else ""
    return Table(head, cells, f"The first of them{counted}.")


def _share(value: float) -> str:
    """Formats a probability without rounding to 0 or 1."""
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    return percent(value) if value >= 0.0005 or value == 0 else "< 0.1 %"
