"""The most confident mistakes, as pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.montage import LETTER, WIDTH, pictures, strip
from ansatz.figures.number import percent
from ansatz.figures.printable import printable
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.report.class_questions import class_probabilities
from ansatz.report.contribution import Unit
from ansatz.report.evidence import Evidence
from ansatz.structures.grid.report.network import names_of
from ansatz.structures.grid.report.pictures import shown_late
from ansatz.structures.grid.report.units import IMAGE

SHOWN = 24  # mistakes


def section(evidence: Evidence) -> Section | None:
    """Mistakes in the order of their confidence; None where outcomes are no classes."""
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
    count: int = SHOWN,
    names: Sequence[Any] | None = None,
    unit: Unit = IMAGE,
) -> Section | None:
    """Mistakes in the order of the probability that was given to the wrong class.

    Args:
        images: of the test rows.
        truth: codes of their classes.
        probabilities: predicted.
        classes: names by code.
        count: pictures to show.
        names: of the images, files or row numbers, for the table; by default their positions.
        unit: what an example is called.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - truth: ``(N,)``; probabilities: ``(N, K)``.
    """
    code, probs = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    if not len(code):
        return None
    top = probs.argmax(1)
    wrong = np.flatnonzero(top != code)
    order = wrong[np.argsort(-probs[wrong, top[wrong]], kind="stable")]
    title = "The most confident mistakes"
    if not len(order):
        return Section(title, f"None of {len(code)} test {unit.many} is taken for another class.")
    first = order[:count]
    best = float(probs[first[0], top[first[0]]])
    verb = "is" if len(order) == 1 else "are"
    lead = (
        f"{len(order)} of {len(code)} test {unit.many} {verb} taken for another class, the most "
        f"confident one with {_share(best)}."
    )
    parts: list[Text | Table | Figure] = [_figure(images, code, probs, top, first, classes, unit)]
    parts.append(_table(code, probs, top, first[:12], classes, names, unit))
    return Section(title, lead, parts)


def _figure(
    images: NDArray[Any],
    code: NDArray[Any],
    probs: NDArray[np.float64],
    top: NDArray[Any],
    rows: NDArray[Any],
    classes: Sequence[Any],
    unit: Unit,
) -> Figure:
    captions = [
        f"{printable(classes[top[i]], 12)}: {_share(float(probs[i, top[i]]))}\n"
        f"is {printable(classes[code[i]], 12)}: {_share(float(probs[i, code[i]]))}"
        for i in rows
    ]
    longest = LETTER * max(len(line) for caption in captions for line in caption.splitlines())
    columns = next((n for n in (8, 6, 5) if n * longest <= WIDTH), 4)
    svg = strip(pictures(images[rows], 64), captions, columns=columns, lines=2)
    said = "; ".join(
        f"{printable(classes[code[i]], 30)} taken for {printable(classes[top[i]], 30)}"
        for i in rows[:6]
    )
    return Figure(
        svg,
        "First line: the class that was predicted and its probability. Second line: the class that "
        f"the {unit.one} is labelled with, and the probability of that one. Some labels may be "
        "wrong.",
        f"Pictures of the most confident mistakes: {said}.",
    )


def _table(
    code: NDArray[Any],
    probs: NDArray[np.float64],
    top: NDArray[Any],
    rows: NDArray[Any],
    classes: Sequence[Any],
    names: Sequence[Any] | None,
    unit: Unit,
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
    head = [first, "is", "predicted", "its probability", "of the right class"]
    counted = f"; rows are counted from 0 among the test {unit.many}" if names is None else ""
    return Table(head, cells, f"The first of them{counted}.")


def _share(value: float) -> str:
    """A probability; what is nearly certain is not rounded to certainty."""
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    return percent(value) if value >= 0.0005 or value == 0 else "< 0.1 %"
