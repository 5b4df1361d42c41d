"""What predictions rest on, on some test signals, images or volumes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ansatz.figures.montage import (
    BLUE,
    SMALL,
    VERMILION,
    WIDTH,
    blended,
    pictures,
    strengths,
    strip,
)
from ansatz.figures.number import number, percent
from ansatz.figures.printable import printable
from ansatz.figures.section import Figure, Section, Text
from ansatz.figures.style import FOURTH, INK, THIRD, figure, to_svg
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import outcome_words, prediction_words
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.attributions import (
    PARTS,
    STEPS,
    Attributions,
    Explained,
    attributions,
    explained,
)
from ansatz.structures.grid.report.network import inputs_of
from ansatz.structures.grid.report.pictures import IMAGE, SIGNAL, affordable, pictures_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHOWN = {1: 4, 2: 6, 3: 6}  # examples, by their axes
SIDE = 96  # cells of a picture
TINTS = (INK, THIRD, FOURTH)  # of the first channels: blue and vermilion are attributions
MARGIN, EDGE = 1.3, 0.15  # inches on the left and on the right
CURVE, BAND, GAP, APART, FOOT = 0.66, 0.13, 0.035, 0.2, 0.36  # inches, from the top down
POINTS = 250  # of a curve: a longer one is drawn from the least to the largest of each piece


def draw_images(
    images: NDArray[Any],
    maps: Mapping[str, NDArray[Any]],
    labels: Sequence[str],
    *,
    name: str = "image",
) -> str:
    """Some images, a row for each, beside what their predictions rest on.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - maps: ``(N, H, W)`` each.

    Returns:
        The ``<svg>`` element.
    """
    ground = pictures(images, SIDE)
    columns = [ground, *(_heat(ground, np.asarray(heat)) for heat in maps.values())]
    shown = np.stack(columns, 1).reshape(-1, *ground.shape[1:])
    names = [name, *maps]
    return strip(shown, [], columns=len(names), lines=0, side=1.15, labels=labels, heads=names)


def draw_signals(
    signals: NDArray[Any], maps: Mapping[str, NDArray[Any]], labels: Sequence[str]
) -> str:
    """Signals below each other, under each a band per method.

    The first three channels are drawn, each on its own scale. A band is as opaque as the
    attribution is large, each on its own scale.

    Shapes:
        - signals: ``(N, C, L)``; maps: ``(N, L)`` each.

    Returns:
        The ``<svg>`` element.
    """
    each = CURVE + len(maps) * (GAP + BAND) + APART
    tall = len(signals) * each - APART
    bands = {name: _tinted(np.asarray(heat)) for name, heat in maps.items()}
    scaled = _scaled(signals)
    with figure(WIDTH, tall + FOOT) as paper:
        axes = _page(paper, tall, signals.shape[-1])
        for i, signal in enumerate(scaled):
            top = i * each
            _curves(axes, signal, top)
            _label(axes, labels[i], top + CURVE / 2, SMALL + 0.5)
            top += CURVE + GAP
            for name, band in bands.items():
                _band(axes, band[i], top)
                _label(axes, name, top + BAND / 2, SMALL)
                top += BAND + GAP
        return to_svg(paper)


def _page(paper: "Figure", tall: float, cells: int) -> "Axes":
    """Cells to the right, inches downwards."""
    height = tall + FOOT
    wide = 1 - (MARGIN + EDGE) / WIDTH
    axes = paper.add_axes((MARGIN / WIDTH, FOOT / height, wide, tall / height))
    axes.set(xlim=(0, cells), ylim=(tall, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(left=False, labelleft=False, labelsize=SMALL, length=2, pad=2)
    axes.set_xlabel("cell", fontsize=SMALL, labelpad=1)
    return axes


def _curves(axes: "Axes", signal: NDArray[np.float64], top: float) -> None:
    for line, tint in zip(signal, TINTS, strict=False):
        places, values = _thinned(line)
        axes.plot(places, top + CURVE * (1 - values), color=tint, linewidth=0.9)


def _thinned(line: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and values; of a long curve the extremes of pieces, so that no peak is lost."""
    if len(line) <= 2 * POINTS:
        return np.linspace(0.5, len(line) - 0.5, len(line)), line
    pieces = np.array_split(line, POINTS)
    values = np.array([[piece.min(), piece.max()] for piece in pieces])
    ends = np.cumsum([len(piece) for piece in pieces])
    middles = ends - np.diff(ends, prepend=0) / 2
    return middles.repeat(2), values.ravel()


def _band(axes: "Axes", band: NDArray[np.uint8], top: float) -> None:
    bottom, cells = top + BAND, len(band)
    where = (0, cells, bottom, top)
    axes.imshow(band[None], interpolation="none", extent=where, aspect="auto")
    axes.plot([0, cells], [bottom, bottom], color=INK, linewidth=0.5, alpha=0.5)


def _label(axes: "Axes", text: str, middle: float, size: float) -> None:
    place = axes.get_yaxis_transform()  # a share of the width, inches
    axes.text(-0.012, middle, text, ha="right", va="center", fontsize=size, transform=place)


def _tinted(heat: NDArray[Any]) -> NDArray[np.uint8]:
    """Blue above zero and vermilion below, ``(N, L, 4)``."""
    found = np.empty((*heat.shape, 4), np.uint8)
    found[..., :3] = np.where((heat < 0)[..., None], np.array(VERMILION), np.array(BLUE))
    found[..., 3] = (255 * strengths(heat)).round()
    return found


def _scaled(signals: NDArray[Any]) -> NDArray[np.float64]:
    """Each channel from 0, its least, to 1, its largest number in all signals."""
    values = np.nan_to_num(signals.astype(np.float64))
    low, high = (values.min((0, 2), keepdims=True), values.max((0, 2), keepdims=True))
    found: NDArray[np.float64] = (values - low) / np.maximum(high - low, 1e-30)
    return found


def _heat(ground: NDArray[np.uint8], heat: NDArray[Any]) -> NDArray[np.uint8]:
    if heat.shape[1:] != ground.shape[1:3]:
        heat = _averaged(heat, ground.shape[1:3])
    return blended(ground, heat)


def _averaged(heat: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    values = torch.as_tensor(np.ascontiguousarray(heat))[:, None]
    return functional.interpolate(values, list(size), mode="area")[:, 0].numpy()


def strongest_slices(maps: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """For each volume the slice along its first axis with the most attribution, all methods alike.

    The magnitudes of a method add up to one over a volume; of their sums in each slice the largest
    over all methods together is taken. Without any attribution it is the middle slice.

    Shapes:
        - maps: ``(N, D, H, W)`` each.
        - returns: ``(N,)``, counted from 0.
    """
    each = [np.abs(np.nan_to_num(heat)).sum((2, 3)) for heat in maps.values()]  # (N, D)
    totals = [part.sum(1, keepdims=True) for part in each]
    share = sum(
        part / np.where(total > 0, total, 1) for part, total in zip(each, totals, strict=True)
    )
    found = np.asarray(share)
    middle = np.full(len(found), found.shape[1] // 2)
    return np.where(found.max(1) > 0, found.argmax(1), middle).astype(np.intp)


def sliced(cells: NDArray[Any], at: NDArray[np.intp]) -> NDArray[Any]:
    """One slice of each volume along its first axis.

    Shapes:
        - cells: ``(N, D, ...)``; at: ``(N,)``; returns ``(N, ...)``.
    """
    found: NDArray[Any] = cells[np.arange(len(at)), at]
    return found


WORK = 1e11  # multiply-adds of all attributions


class Chosen(NamedTuple):
    """Examples that are shown."""

    rows: NDArray[np.intp]  # their numbers among the test rows, from 0
    labels: list[str]  # prediction and outcome of each
    words: str  # how they were chosen


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
