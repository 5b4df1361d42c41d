"""What predictions of signals rest on: curves over bands of colour, a band for each method."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.montage import BLUE, SMALL, VERMILION, WIDTH, strengths
from ansatz.figures.style import FOURTH, INK, THIRD, figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 4  # signals
TINTS = (INK, THIRD, FOURTH)  # of the first channels: blue and vermilion are attributions
MARGIN, EDGE = 1.3, 0.15  # inches on the left and on the right
CURVE, BAND, GAP, APART, FOOT = 0.66, 0.13, 0.035, 0.2, 0.36  # inches, from the top down
POINTS = 250  # of a curve: a longer one is drawn from the least to the largest of each piece


def draw(signals: NDArray[Any], maps: Mapping[str, NDArray[Any]], labels: Sequence[str]) -> str:
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

    Example:
        >>> import numpy as np
        >>> from ansatz.report.signal_saliency import draw
        >>> wave = np.sin(np.arange(50.0)).reshape(1, 1, 50)
        >>> draw(wave, {"occlusion": wave[:, 0]}, ["a wave"]).startswith("<svg")
        True
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
