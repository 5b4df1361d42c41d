"""Drawings of what predictions rest on: images beside heats, signals over bands of colour."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from ansatz.figures.style import FOURTH, INK, THIRD, figure, to_svg

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

    Args:
        images: a few.
        maps: for each method a number per cell, see
            :func:`ansatz.structures.grid.report.attributions.attributions`.
        labels: of the images, on their left.
        name: what an image is called.

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

    Args:
        signals: a few.
        maps: for each method a number per cell.
        labels: of the signals, on their left.

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

    Args:
        maps: for each method a number per cell.

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
