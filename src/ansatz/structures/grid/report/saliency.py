"""What predictions rest on, on some test signals, images or volumes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.number import number, percent
from ansatz.figures.printable import printable
from ansatz.figures.section import Figure, Section, Text
from ansatz.report.class_questions import class_probabilities
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_words import outcome_words, prediction_words
from ansatz.structures.grid.report.attributions import PARTS, STEPS, Attributions, attributions
from ansatz.structures.grid.report.explained import Explained, explained
from ansatz.structures.grid.report.network import inputs_of
from ansatz.structures.grid.report.pictures import pictures_of
from ansatz.structures.grid.report.saliency_drawings import (
    SHOWN,
    draw_images,
    draw_signals,
    sliced,
    strongest_slices,
)
from ansatz.structures.grid.report.sample import affordable
from ansatz.structures.grid.report.units import IMAGE, SIGNAL

WORK = 1e11  # multiply-adds of all attributions


class Chosen(NamedTuple):
    """Examples that are shown.

    Args:
        rows: their numbers among the test rows, from 0.
        labels: prediction and outcome of each.
        words: how they were chosen.
    """

    rows: NDArray[np.intp]
    labels: list[str]
    words: str


def section(evidence: Evidence) -> Section | None:
    """Attributions of some good and some bad predictions, of classes and numbers alike."""
    count, overlap = _count(evidence)
    choose = _numbers if evidence.classes is None else _classes
    chosen = choose(evidence, count)
    if chosen is None:
        return None
    x = inputs_of(evidence, chosen.rows)
    what = explained(evidence, chosen.rows, x)
    points = affordable(evidence, WORK, least=STEPS, most=256, times=6 * len(x))
    found = attributions(what.network, x, what.target, most=points, overlap=overlap)
    svg, shown = _drawn(evidence, chosen, found.maps)
    caption = _caption(evidence, what, found)
    said = "; ".join(label.replace("\n", ", ") for label in chosen.labels)
    alt = f"Attributions ({', '.join(found.maps)}) of {evidence.unit.many}: {said}."
    lead = (
        f"Cells that {what.subject} rests on, by methods that err in different ways: where they "
        "agree, the network looks there. They explain the network, not the world."
    )
    notes = [chosen.words, *shown, *_caveats(evidence)]
    figure = Figure(svg, caption, alt)
    return Section("What predictions rest on", lead, [figure, Text(" ".join(notes), "note")])


def _count(evidence: Evidence) -> tuple[int, bool]:
    """How many examples, and whether windows overlap: not where that would cost too much."""
    axes = len(evidence.X.shape) - 1
    windows = {True: 2 * PARTS[axes] - 1, False: PARTS[axes]}
    costs = {overlap: 3 * STEPS + count**axes for overlap, count in windows.items()}
    counts = {
        overlap: affordable(evidence, WORK, least=1, most=SHOWN[axes], times=times)
        for overlap, times in costs.items()
    }
    overlap = counts[True] > 1
    return max(counts[overlap], 2), overlap


def _classes(evidence: Evidence, count: int) -> Chosen | None:
    """Right answers at random, and as many of the most confident mistakes."""
    if evidence.distribution is None or evidence.value.ndim > 1:
        return None
    assert evidence.classes is not None
    probs, code = class_probabilities(evidence)
    top = probs.argmax(1)
    wrong = np.flatnonzero(top != code)
    wrong = wrong[np.argsort(-probs[wrong, top[wrong]], kind="stable")]
    right = np.random.default_rng(evidence.seed).permutation(np.flatnonzero(top == code))
    mistakes = wrong[: max(count // 2, count - len(right))]
    rows = np.concatenate([right[: count - len(mistakes)], mistakes])
    labels = [
        f"{printable(evidence.classes[top[k]], 14)}: {percent(float(probs[k, top[k]]))}\n"
        + ("right" if top[k] == code[k] else f"is {printable(evidence.classes[code[k]], 14)}")
        for k in rows
    ]
    right_ones, wrong_ones = len(rows) - len(mistakes), len(mistakes)
    said = f"{right_ones} right answer{'s' * (right_ones != 1)} drawn at random"
    if wrong_ones:
        many = (
            f"{wrong_ones} most confident mistakes" if wrong_ones > 1 else "most confident mistake"
        )
        said += f", then the {many}"
    return Chosen(rows, labels, f"{said}.")


def _numbers(evidence: Evidence, count: int) -> Chosen | None:
    """Examples at random, and as many of those with the largest loss."""
    losses = evidence.row_losses().numpy()
    order = np.argsort(-losses, kind="stable")
    order = order[np.isfinite(losses[order])]
    if not len(order):
        return None
    worst = order[: min(count, len(order)) // 2]
    others = np.random.default_rng(evidence.seed).permutation(order[len(worst) :])
    rows = np.concatenate([others[: count - len(worst)], worst])
    labels = [
        f"said {prediction_words(evidence, int(k))}\nis {outcome_words(evidence, int(k))}"
        for k in rows
    ]
    drawn = len(rows) - len(worst)
    said = f"{drawn} {evidence.unit.many if drawn > 1 else evidence.unit.one} drawn at random"
    if len(worst):
        what = "nll" if evidence.likelihood.has_distribution else "loss"
        many = str(len(worst)) if len(worst) > 1 else "one"
        said += f", then the {many} with the largest {what}"
    return Chosen(rows, labels, f"{said}.")


def _drawn(
    evidence: Evidence, chosen: Chosen, maps: Mapping[str, NDArray[Any]]
) -> tuple[str, list[str]]:
    """The drawing, and what is to be said about what it leaves out."""
    grids = evidence.X[chosen.rows]
    if evidence.unit == IMAGE:
        return draw_images(pictures_of(grids), maps, chosen.labels), []
    cells = grids.load().numpy()  # (N, C, *size)
    if evidence.unit == SIGNAL:
        return draw_signals(cells, maps, chosen.labels), _channels(cells.shape[1])
    at = strongest_slices(maps)
    images = sliced(np.moveaxis(cells, 1, -1), at)
    heats = {name: sliced(heat, at) for name, heat in maps.items()}
    depth = cells.shape[2]
    labels = [
        f"{label}\nslice {place + 1} of {depth}"
        for label, place in zip(chosen.labels, at, strict=True)
    ]
    said = "Of each volume the slice along its first axis with the most attribution is shown."
    return draw_images(images, heats, labels, name="slice"), [said]


def _channels(count: int) -> list[str]:
    if count == 1:
        return []
    shown = " and ".join(
        ["the first channel grey, the second green", "the third purple"][: count - 1]
    )
    few = f" Of {count} channels these are drawn." if count > 3 else ""
    return [f"Curves, each channel on its own scale: {shown}.{few}"]


def _caption(evidence: Evidence, what: Explained, found: Attributions) -> str:
    there = f", where it is {number(found.start[0], 3)}," if what.is_number else ""
    parts = [
        f"{what.signs}, each on its own scale. Integrated gradients share out the difference to "
        f"{_baseline(evidence)}{there} among the cells: {found.completeness()}.",
        f"Occlusion is what {what.subject} loses when a window is covered by the same.",
    ]
    if "Grad-CAM" in found.maps:
        parts.append(
            "Grad-CAM, coarse and never negative, weighs the maps of the last convolution."
        )
    return " ".join(parts)


def _baseline(evidence: Evidence) -> str:
    if evidence.unit == SIGNAL:
        return "a flat signal at the mean of each channel"
    grey = evidence.X.shape[0] == 1
    return f"a {'uniformly grey' if grey else 'uniform, averagely coloured'} {evidence.unit.one}"


def _caveats(evidence: Evidence) -> list[str]:
    found = []
    if len(evidence.model.posterior.networks) > 1:
        found.append("Of an ensemble its first network is explained.")
    if evidence.job.offset is not None:
        found.append("Offsets are left out of what is explained.")
    return found
