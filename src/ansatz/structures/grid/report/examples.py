"""What the examples of each class look like, and what the fit noted about the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.montage import pictures, strip
from ansatz.figures.printable import printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.report.contribution import Unit
from ansatz.report.evidence import Evidence
from ansatz.structures.grid.report.pictures import shown_late
from ansatz.structures.grid.report.units import IMAGE

MOST = 12  # classes that are shown
EACH = 8  # images of a class


def section(evidence: Evidence) -> Section | None:
    """Some examples of each class, and the notes of the fit."""
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
    learned = 0 if evidence.learn is None else len(evidence.learn.weight)
    many = f"{len(evidence.weight)} test {evidence.unit.many} that the model never saw"
    if learned:
        many = f"{learned} {evidence.unit.many} to learn from and {many}"
    what = f"{' × '.join(map(str, size))} cells and {channels} channel{'s' * (channels > 1)} each"
    return f"{many}, {what}."


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
    unit: Unit = IMAGE,
) -> Section | None:
    """Some images of every class, drawn at random, a row for each.

    Args:
        images: of the rows.
        truth: codes of their classes.
        classes: names by code.
        each: images of a class.
        seed: of the draw.
        name: which rows they are.
        unit: what an example is called.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - truth: ``(N,)``.
    """
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
        f"{len(code)} {name} {unit.many} of {height} × {width} cells and {channels} "
        f"{'channel' if channels == 1 else 'channels'}, in {int((counts > 0).sum())} "
        f"{'class' if int((counts > 0).sum()) == 1 else 'classes'}."
    )
    alt = "; ".join(f"{printable(classes[k], 30)}: {counts[k]} {unit.many}" for k in chosen)
    drawn = "of each class, drawn at random; the number is how many there are."
    caption = f"{unit.many.capitalize()} {drawn}{more}"
    parts: list[Text | Table | Figure] = [Figure(svg, caption, f"Contact sheet. {alt}.")]
    return Section(f"What the {unit.many} look like", lead, parts)


def _drawn(code: NDArray[Any], chosen: NDArray[Any], each: int, seed: int) -> NDArray[np.intp]:
    """Rows of each class, ``(classes, each)``; -1 where a class has too few."""
    rng = np.random.default_rng(seed)
    found = np.full((len(chosen), each), -1, dtype=np.intp)
    for i, k in enumerate(chosen):
        rows = rng.permutation(np.flatnonzero(code == k))[:each]
        found[i, : len(rows)] = rows
    return found


def _blanked(shown: NDArray[np.uint8], empty: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A class with few images leaves light squares."""
    return np.where(empty[:, None, None, None], np.uint8(238), shown).astype(np.uint8)
