"""Reports attributions of predictions on some test signals, images or volumes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from ansatz.figures.number_format import number, percent, printable
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
from ansatz.structures.grid.report.pictures import IMAGE, SIGNAL, affordable, averaged, pictures_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Paper


SHOWN = {1: 4, 2: 6, 3: 6}  # examples, by their axes
SIDE = 96  # pixels of a picture
TINTS = (INK, THIRD, FOURTH)  # of the first channels: blue and vermilion are attributions
MARGIN, EDGE = 1.3, 0.15  # inches on the left and on the right
CURVE, BAND, GAP, APART, FOOT = 0.66, 0.13, 0.035, 0.2, 0.36  # inches, from the top down
POINTS = 250  # of a curve: a longer one is drawn by the extremes of its segments


def draw_images(
    images: NDArray[Any],
    maps: Mapping[str, NDArray[Any]],
    labels: Sequence[str],
    *,
    name: str = "image",
) -> str:
    """Draws images beside their attribution maps, a row for each."""
    ground = pictures(images, SIDE)
    columns = [ground, *(_heat(ground, np.asarray(heat)) for heat in maps.values())]
    shown = np.stack(columns, 1).reshape(-1, *ground.shape[1:])
    names = [name, *maps]
    return strip(shown, [], columns=len(names), lines=0, side=1.15, labels=labels, heads=names)


def draw_signals(
    signals: NDArray[Any], maps: Mapping[str, NDArray[Any]], labels: Sequence[str]
) -> str:
    """Draws signals with a band of attributions per method under each.

    The first three channels are drawn, each on its own scale; the opacity of a band shows the
    size of the attribution.
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


def _page(paper: "Paper", tall: float, cells: int) -> "Axes":
    """Makes axes with samples to the right and inches downwards."""
    height = tall + FOOT
    wide = 1 - (MARGIN + EDGE) / WIDTH
    axes = paper.add_axes((MARGIN / WIDTH, FOOT / height, wide, tall / height))
    axes.set(xlim=(0, cells), ylim=(tall, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(left=False, labelleft=False, labelsize=SMALL, length=2, pad=2)
    axes.set_xlabel("sample", fontsize=SMALL, labelpad=1)
    return axes


def _curves(axes: "Axes", signal: NDArray[np.float64], top: float) -> None:
    for line, tint in zip(signal, TINTS, strict=False):
        places, values = _thinned(line)
        axes.plot(places, top + CURVE * (1 - values), color=tint, linewidth=0.9)


def _thinned(line: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Thins a long curve to the extremes of its segments, so that no peak is lost."""
    if len(line) <= 2 * POINTS:
        return np.linspace(0.5, len(line) - 0.5, len(line)), line
    segments = np.array_split(line, POINTS)
    values = np.array([[segment.min(), segment.max()] for segment in segments])
    ends = np.cumsum([len(segment) for segment in segments])
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
    """Colours positive numbers blue, negative ones vermilion, ``(N, L, 4)``."""
    found = np.empty((*heat.shape, 4), np.uint8)
    found[..., :3] = np.where((heat < 0)[..., None], np.array(VERMILION), np.array(BLUE))
    found[..., 3] = (255 * strengths(heat)).round()
    return found


def _scaled(signals: NDArray[Any]) -> NDArray[np.float64]:
    """Scales each channel to [0, 1] over all signals."""
    values = np.nan_to_num(signals.astype(np.float64))
    low, high = (values.min((0, 2), keepdims=True), values.max((0, 2), keepdims=True))
    found: NDArray[np.float64] = (values - low) / np.maximum(high - low, 1e-30)
    return found


def _heat(ground: NDArray[np.uint8], heat: NDArray[Any]) -> NDArray[np.uint8]:
    if heat.shape[1:] != ground.shape[1:3]:
        heat = averaged(heat, ground.shape[1:3])
    return blended(ground, heat)


def strongest_slices(maps: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Chooses the slice of each volume along its first axis with the most attribution.

    Each method is normalised to sum 1 over a volume. Without any attribution it is the middle
    slice.
    """
    each = [np.abs(np.nan_to_num(heat)).sum((2, 3)) for heat in maps.values()]  # (N, D)
    totals = [part.sum(1, keepdims=True) for part in each]
    share = sum(
        part / np.where(total > 0, total, 1) for part, total in zip(each, totals, strict=True)
    )
    found = np.asarray(share)
    middle = np.full(len(found), found.shape[1] // 2)
    return np.where(found.max(1) > 0, found.argmax(1), middle).astype(np.intp)


def sliced(voxels: NDArray[Any], at: NDArray[np.intp]) -> NDArray[Any]:
    """Takes one slice of each volume ``(N, D, ...)`` along its first axis."""
    found: NDArray[Any] = voxels[np.arange(len(at)), at]
    return found


WORK = 1e11  # multiply-adds of all attributions


class Chosen(NamedTuple):
    """The examples that are shown."""

    rows: NDArray[np.intp]  # their numbers among the test rows, from 0
    labels: list[str]  # prediction and outcome of each
    words: str  # how they were chosen


def section(evidence: Evidence) -> Section | None:
    """Reports attributions of some good and some bad predictions."""
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
    labels = "; ".join(label.replace("\n", ", ") for label in chosen.labels)
    alt = f"Attributions ({', '.join(found.maps)}) of {evidence.unit.many}: {labels}."
    lead = (
        f"Attributions of {what.subject} by methods with different errors: look where they agree. "
        "They explain the network, not the data."
    )
    notes = [chosen.words, *shown, *_caveats(evidence)]
    figure = Figure(svg, caption, alt)
    return Section("Attributions", lead, [figure, Text(" ".join(notes), "note")])


def _count(evidence: Evidence) -> tuple[int, bool]:
    """Chooses the number of examples, and whether windows overlap, by their cost."""
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
    """Chooses correct predictions at random, and as many of the most confident mistakes."""
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
        + ("correct" if top[k] == code[k] else f"true {printable(evidence.classes[code[k]], 14)}")
        for k in rows
    ]
    count = len(rows) - len(mistakes)
    words = f"{count} random correct prediction{'s' * (count != 1)}"
    if len(mistakes):
        many = f"{len(mistakes)} most confident mistakes"
        words += f", then the {many if len(mistakes) > 1 else 'most confident mistake'}"
    return Chosen(rows, labels, f"{words}.")


def _numbers(evidence: Evidence, count: int) -> Chosen | None:
    """Chooses examples at random, and as many of those with the largest loss."""
    losses = evidence.row_losses().numpy()
    order = np.argsort(-losses, kind="stable")
    order = order[np.isfinite(losses[order])]
    if not len(order):
        return None
    worst = order[: min(count, len(order)) // 2]
    others = np.random.default_rng(evidence.seed).permutation(order[len(worst) :])
    rows = np.concatenate([others[: count - len(worst)], worst])
    labels = [
        f"pred. {prediction_words(evidence, int(k))}\ntrue {outcome_words(evidence, int(k))}"
        for k in rows
    ]
    drawn = len(rows) - len(worst)
    words = f"{drawn} random {evidence.unit.many if drawn > 1 else evidence.unit.one}"
    if len(worst):
        many = str(len(worst)) if len(worst) > 1 else "one"
        words += f", then the {many} with the largest {evidence.loss_name}"
    return Chosen(rows, labels, f"{words}.")


def _drawn(
    evidence: Evidence, chosen: Chosen, maps: Mapping[str, NDArray[Any]]
) -> tuple[str, list[str]]:
    """Draws the examples, with notes on what is left out."""
    grids = evidence.X[chosen.rows]
    if evidence.unit == IMAGE:
        return draw_images(pictures_of(grids), maps, chosen.labels), []
    values = grids.load().numpy()  # (N, C, *size)
    if evidence.unit == SIGNAL:
        return draw_signals(values, maps, chosen.labels), _channels(values.shape[1])
    at = strongest_slices(maps)
    images = sliced(np.moveaxis(values, 1, -1), at)
    heats = {name: sliced(heat, at) for name, heat in maps.items()}
    depth = values.shape[2]
    labels = [
        f"{label}\nslice {place + 1} of {depth}"
        for label, place in zip(chosen.labels, at, strict=True)
    ]
    note = "Of each volume the slice along its first axis with the most attribution is shown."
    return draw_images(images, heats, labels, name="slice"), [note]


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
        f"{what.signs}, each map on its own scale. Integrated gradients add up to the difference "
        f"from {_baseline(evidence)}{there}: {found.completeness()}.",
        f"Occlusion: the decrease of {what.subject} when a window is replaced by the same.",
    ]
    if "Grad-CAM" in found.maps:
        parts.append("Grad-CAM, coarse and never negative, weights the last feature maps.")
    return " ".join(parts)


def _baseline(evidence: Evidence) -> str:
    if evidence.unit == SIGNAL:
        return "a flat signal at the mean of each channel"
    grey = evidence.X.shape[0] == 1
    return f"a {'uniformly grey' if grey else 'uniform, mean-coloured'} {evidence.unit.one}"


def _caveats(evidence: Evidence) -> list[str]:
    found = []
    if len(evidence.model.posterior.networks) > 1:
        found.append("The first network of the ensemble is explained.")
    if evidence.job.offset is not None:
        found.append("Offsets are not included.")
    return found
