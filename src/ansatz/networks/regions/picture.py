"""A picture of the regions on which a network of two inputs is affine."""

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.errors import UsageError
from ansatz.networks.regions.corners import Polygons
from ansatz.networks.regions.region import LinearRegions, linear_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shade = Literal["output", "slope", "none"]
LEVELS = 18  # of the shade


def draw_regions(
    network: Any,
    box: ArrayLike,
    axes: "Axes",
    *,
    shade: Shade = "output",
    output: int = 0,
) -> LinearRegions:
    r"""Draws every region of a network of two inputs, and the kinks between them.

    The lines of a layer have one colour: those of the first are straight, those of a later one
    bend where they cross an earlier one. Nothing is sampled on a grid: the network is affine
    between the lines, so the contours of its value are straight there.

    Args:
        network: as for :func:`ansatz.networks.linear_regions`, with two inputs.
        box: (low, high) of both inputs, or a pair for each.
        axes: where to draw, of matplotlib.
        shade: ``"output"``, the value of the network; ``"slope"``, the length of its gradient, one
            tint per region; ``"none"``.
        output: which output of several is shown.

    Returns:
        The regions that were drawn.

    Example:
        >>> import torch
        >>> from ansatz.networks import MLP
        >>> from ansatz.networks import draw_regions
        >>> from ansatz.figures.style import figure
        >>> network = MLP(2, 1, widths=(4,), activation="relu")
        >>> with figure() as paper:
        ...     regions = draw_regions(network, (-1, 1), paper.subplots())
        >>> len(regions) > 1
        True
    """
    if shade not in get_args(Shade):
        raise UsageError(f"shade of draw_regions must be output, slope or none, got {shade!r}.")
    regions = linear_regions(network, box, method="cut")
    if len(regions.box) != 2:
        raise UsageError(f"draw_regions needs a network of 2 inputs, got {len(regions.box)}.")
    outputs = regions.biases.shape[1]
    if not 0 <= output < outputs:
        raise UsageError(f"output of draw_regions must be in 0 to {outputs - 1}, got {output}.")
    corners = [region.vertices for region in regions]
    if shade != "none":
        _shade(axes, regions, corners, shade, output)
    _lines(axes, regions, corners)
    axes.set(xlim=tuple(regions.box[0]), ylim=tuple(regions.box[1]))
    return regions


def _shade(
    axes: "Axes", regions: LinearRegions, corners: list[Any], shade: Shade, output: int
) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.tri import Triangulation

    if shade == "slope":
        steep = np.linalg.norm(regions.weights[:, output], axis=-1)
        cells = PolyCollection(corners, array=steep, cmap="Blues", edgecolors="none", alpha=0.7)
        cells.set_clim(0, max(float(steep.max()), 1e-300) * 1.3)
        axes.add_collection(cells)
        axes.figure.colorbar(cells, ax=axes, label="length of the gradient")
        return
    # A fan of triangles in each cell; contours between corners are straight, as the network is.
    points = np.concatenate(corners)
    _, first, place = np.unique(
        (points / np.ptp(regions.box, axis=1)).round(9),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    sizes = np.array([len(each) for each in corners])
    start = np.cumsum(sizes) - sizes
    fans = [
        [[s, s + k, s + k + 1] for k in range(1, n - 1)] for s, n in zip(start, sizes, strict=True)
    ]
    cell = np.repeat(np.arange(len(corners)), sizes)
    value = (points * regions.weights[cell, output]).sum(1) + regions.biases[cell, output]
    fill = axes.tricontourf(
        Triangulation(points[first, 0], points[first, 1], place.ravel()[np.concatenate(fans)]),
        value[first],
        levels=_levels(value),
        cmap="RdYlBu_r",
        alpha=0.75,
    )
    axes.figure.colorbar(fill, ax=axes, label="output of the network")


def _levels(value: NDArray[np.float64]) -> NDArray[np.float64]:
    from matplotlib.ticker import MaxNLocator

    low, high = float(value.min()), float(value.max())
    pad = 0.0 if high > low else 1.0  # a constant network has one colour
    return np.asarray(MaxNLocator(LEVELS).tick_values(low - pad, high + pad))


def _lines(axes: "Axes", regions: LinearRegions, corners: list[Any]) -> None:
    from matplotlib.collections import LineCollection

    from ansatz.figures.style import INK, PALETTE

    layer_of = np.repeat(
        np.arange(len(regions.layers) - 1),
        [int((layer.slope != 1).sum()) for layer in regions.layers[:-1]],
    )
    ends: dict[int, list[Any]] = {}
    drawn: set[tuple[float, ...]] = set()  # the cells on both sides have the same edge
    assert isinstance(regions.cells, Polygons)
    for each, labels in zip(corners, regions.cells.edges, strict=True):
        for i in np.flatnonzero(labels[: len(each)] >= 0):
            edge = each[[i, (i + 1) % len(each)]]
            middle = tuple((edge.mean(0) / np.ptp(regions.box, axis=1)).round(8).tolist())
            if middle not in drawn:
                drawn.add(middle)
                ends.setdefault(int(layer_of[labels[i]]), []).append(edge)
    for layer, found in sorted(ends.items()):
        colour = (INK, *PALETTE[1:], PALETTE[0])[layer % 7]
        lines = LineCollection(found, colors=colour, linewidths=0.7, label=f"layer {layer + 1}")
        axes.add_collection(lines)
