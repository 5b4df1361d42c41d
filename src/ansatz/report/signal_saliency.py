"""What predictions of signals rest on: curves over bands of colour, a band for each method."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.report.image_montage import BLUE, SMALL, VERMILION, WIDTH, strengths
from ansatz.report.style import FOURTH, INK, THIRD, figure, to_svg

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
    height = len(signals) * each - APART + FOOT
    bands = {name: _tinted(np.asarray(heat)) for name, heat in maps.items()}
    low, high = _limits(signals)
    with figure(WIDTH, height) as paper:
        for i, signal in enumerate(signals):
            top = i * each
            curve = _panel(paper, height, top, CURVE)
            _curves(curve, signal, low, high)
            _label(curve, labels[i], SMALL + 0.5)
            top += CURVE
            for name, band in bands.items():
                panel = _panel(paper, height, top + GAP, BAND)
                _band(panel, band[i], signals.shape[-1])
                _label(panel, name, SMALL)
                top += GAP + BAND
        panel.tick_params(bottom=True, labelbottom=True, labelsize=SMALL, length=2, pad=2)
        panel.set_xlabel("cell", fontsize=SMALL, labelpad=1)
        return to_svg(paper)


def _panel(paper: "Figure", height: float, top: float, tall: float) -> "Axes":
    place = (MARGIN / WIDTH, 1 - (top + tall) / height, 1 - (MARGIN + EDGE) / WIDTH, tall / height)
    axes = paper.add_axes(place)
    axes.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    return axes


def _curves(axes: "Axes", signal: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    for channel, tint in zip(range(len(signal)), TINTS, strict=False):
        places, values = _thinned(np.nan_to_num(signal[channel].astype(np.float64)))
        span = max(float(high[channel] - low[channel]), 1e-30)
        axes.plot(places, (values - low[channel]) / span, color=tint, linewidth=0.9)
    axes.set(xlim=(0, signal.shape[-1]), ylim=(-0.04, 1.04))


def _thinned(line: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places and values; of a long curve the extremes of pieces, so that no peak is lost."""
    if len(line) <= 2 * POINTS:
        return np.arange(len(line)) + 0.5, line
    pieces = np.array_split(line, POINTS)
    values = np.array([[piece.min(), piece.max()] for piece in pieces])
    ends = np.cumsum([len(piece) for piece in pieces])
    middles = (ends - np.diff(ends, prepend=0) / 2).astype(np.float64)
    return middles.repeat(2), values.ravel()


def _band(axes: "Axes", band: NDArray[np.uint8], cells: int) -> None:
    axes.imshow(band[None], interpolation="none", extent=(0, cells, 0, 1), aspect="auto")
    axes.set(xlim=(0, cells), ylim=(0, 1))
    axes.spines["bottom"].set(visible=True, alpha=0.5)


def _label(axes: "Axes", text: str, size: float) -> None:
    axes.text(-0.012, 0.5, text, ha="right", va="center", fontsize=size, transform=axes.transAxes)


def _tinted(heat: NDArray[Any]) -> NDArray[np.uint8]:
    """Blue above zero and vermilion below, ``(N, L, 4)``."""
    found = np.empty((*heat.shape, 4), np.uint8)
    found[..., :3] = np.where((heat < 0)[..., None], np.array(VERMILION), np.array(BLUE))
    found[..., 3] = (255 * strengths(heat)).round()
    return found


def _limits(signals: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    values = np.nan_to_num(signals.astype(np.float64))
    return values.min((0, 2)), values.max((0, 2))
