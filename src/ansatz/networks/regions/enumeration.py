"""The regions on which a network of rectified units is affine, found one and all."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.errors import UsageError
from ansatz.networks.regions.cells import (
    Method,
    affine_maps,
    cut_by_layers,
    join_cells,
    on_cube,
    whole_box,
)
from ansatz.networks.regions.piecewise import piecewise_affine
from ansatz.networks.regions.region import LinearRegions

LIMIT = 1_000_000  # cells


def linear_regions(
    network: Any,
    box: ArrayLike,
    *,
    method: Method = "auto",
    tolerance: float = 1e-9,
    limit: int = LIMIT,
) -> LinearRegions:
    r"""All regions of a box on which a network of rectified units is affine.

    Layer by layer, each cell of the layers before is cut by the hyperplanes on which the units of
    the next layer vanish: there they are affine functions of x. Nothing is sampled.

    A *cell* is where one activation pattern holds; cells that share a facet and have the same
    affine map form one *maximal affine region* (a dead unit bends nothing, but has a pattern).
    Both are found: ``len(regions)`` cells and ``regions.num_pieces`` maximal regions.

    Args:
        network: Linear, ReLU, LeakyReLU and PReLU layers in a row: a ``torch.nn.Sequential``, a
            plain ``MLP``, or a fitted estimator with such a network (whose inputs are the
            standardised columns).
        box: (low, high) of all inputs, or such a pair for each, ``(D, 2)``.
        method: ``"cut"``: breakpoints of an interval, polygons, polytopes by their corners.
            ``"lp"``: linear programs on activation patterns, for many inputs. ``"auto"`` cuts up
            to 7 inputs.
        tolerance: a point that is closer to a hyperplane lies on it, so a cell that is not
            twice as wide may go unseen; in half-widths of the box. ``"lp"`` uses at least 1e-7,
            the accuracy of its solver.
        limit: more cells than this are refused.

    Returns:
        The cells with their patterns, maps and corners.

    Example:
        >>> import torch
        >>> from ansatz.networks import linear_regions
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> _ = network[0].weight.data.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 1]]))
        >>> _ = network[0].bias.data.copy_(torch.tensor([0, 0, 0.5]))
        >>> regions = linear_regions(network, (-1, 1))
        >>> len(regions), round(sum(region.volume for region in regions), 6)
        (7, 4.0)

    References:
        Montúfar, Pascanu, Cho & Bengio (2014), On the number of linear regions of deep neural
        networks. https://arxiv.org/abs/1402.1869
        Hanin & Rolnick (2019), Deep ReLU networks have surprisingly few activation patterns.
        https://arxiv.org/abs/1906.00904
    """
    layers = piecewise_affine(network)
    sides = _check_box(box, layers[0].weight.shape[1])
    if not 0 < tolerance < 1e-2:
        raise UsageError(f"tolerance of linear regions must be in (0, 0.01), got {tolerance}.")
    low, high = sides.T
    scaled = [on_cube(layers[0], low, high), *layers[1:]]
    cells, patterns = cut_by_layers(scaled, whole_box(method, len(sides), tolerance), limit)
    pieces = join_cells(cells, scaled, patterns)
    weights, biases = affine_maps(layers, patterns)
    centers = (low + high) / 2 + (high - low) / 2 * cells.centers()
    return LinearRegions(patterns, weights, biases, centers, pieces, layers, sides, cells)


def count_linear_regions(
    network: Any,
    box: ArrayLike,
    *,
    by: Literal["map", "pattern"] = "map",
    method: Method = "auto",
    tolerance: float = 1e-9,
    limit: int = LIMIT,
) -> int:
    r"""The exact number of regions of a box on which a network of rectified units is affine.

    One layer of m units in general position has at most Zaslavsky's number of them,

    .. math:: \sum_{i=0}^{\min(m, D)} \binom{m}{i},

    and a box that holds all crossings has exactly as many.

    Args:
        network: as for :func:`linear_regions`.
        box: (low, high) of all inputs, or such a pair for each, ``(D, 2)``.
        by: ``"map"`` counts maximal affine regions: connected sets with one affine map.
            ``"pattern"`` counts activation patterns, which are as many or more.
        method: as for :func:`linear_regions`.
        tolerance: as for :func:`linear_regions`.
        limit: as for :func:`linear_regions`.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.networks import count_linear_regions
        >>> tent = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> _ = tent[0].weight.data.fill_(1.0), tent[0].bias.data.copy_(torch.tensor([0, -0.5]))
        >>> count_linear_regions(tent, (0, 1)), count_linear_regions(tent, (-1, 1))
        (2, 3)

    References:
        Zaslavsky (1975), Facing up to arrangements. Memoirs of the AMS 154.
    """
    if by not in ("map", "pattern"):
        raise UsageError(f"linear regions are counted by 'map' or 'pattern', got {by!r}.")
    found = linear_regions(network, box, method=method, tolerance=tolerance, limit=limit)
    return found.num_pieces if by == "map" else len(found)


def _check_box(box: ArrayLike, inputs: int) -> NDArray[np.float64]:
    try:
        sides = np.asarray(box, dtype=np.float64)
    except (TypeError, ValueError):
        sides = np.empty(0)
    if sides.shape == (2,):
        sides = np.tile(sides, (inputs, 1))
    if sides.shape != (inputs, 2) or not np.isfinite(sides).all():
        raise UsageError(
            f"the box of linear regions must be (low, high), or {inputs} such pairs of numbers, "
            f"one per input of the network; got {box!r}."
        )
    for i, (low, high) in enumerate(sides):
        if not low < high:
            raise UsageError(f"side {i} of the box must have low < high, got ({low}, {high}).")
    return sides
