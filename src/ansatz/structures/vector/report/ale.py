"""Accumulated local effects: how a prediction changes with one column, others as they are."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Curve(NamedTuple):
    """A centred effect at places of a column."""

    at: Numbers  # (K,): edges of the bins, or codes of the levels
    effect: Numbers  # (K, R)


def bin_edges(values: Numbers, bins: int = 20) -> Numbers:
    """Edges between which lie about equally many values, each of them once."""
    known = values[np.isfinite(values)]
    if not len(known):
        return known
    return np.unique(np.quantile(known, np.linspace(0, 1, bins + 1), method="nearest"))


def accumulate(
    predict: Callable[[NDArray[np.intp], Numbers], Numbers], values: Numbers, edges: Numbers
) -> Curve:
    r"""The accumulated local effect of a number.

    .. math:: g(z_k) = \sum_{j \le k} \frac{1}{n_j} \sum_{i: x_i \in (z_{j-1}, z_j]}
              f(z_j, x_{i, -}) - f(z_{j-1}, x_{i, -})

    centred to mean zero over the rows. Each row is moved only to the ends of its own bin, so that
    columns which go together are never taken apart, as partial dependence does.

    Args:
        predict: (row numbers, values of the column there) to predictions ``(n, R)``.
        values: ``(N,)``, of the rows; missing ones take no part.
        edges: ``(K,)``, increasing.

    References:
        Apley and Zhu (2020), Visualizing the effects of predictor variables in black box
        supervised learning models, eq. 15-16. https://doi.org/10.1111/rssb.12377
    """
    rows = np.flatnonzero(np.isfinite(values))
    place = np.clip(np.searchsorted(edges, values[rows], side="left") - 1, 0, len(edges) - 2)
    change = predict(rows, edges[place + 1]) - predict(rows, edges[place])
    count = np.bincount(place, minlength=len(edges) - 1)
    mean = _means(change, place, count)
    effect = np.vstack([np.zeros((1, change.shape[1])), np.cumsum(mean, axis=0)])
    middle = (effect[1:] + effect[:-1]) / 2
    return Curve(edges, effect - (count @ middle) / max(len(rows), 1))


def accumulate_levels(
    predict: Callable[[NDArray[np.intp], NDArray[np.intp]], Numbers],
    codes: NDArray[np.intp],
    order: Sequence[int],
) -> Curve:
    """The same for levels in a given order: rows of a level are moved to its two neighbours.

    Args:
        predict: (row numbers, codes of the level there) to predictions ``(n, R)``.
        codes: ``(N,)``, of the rows; negative ones take no part.
        order: codes in the order in which effects are accumulated.
    """
    steps = []
    for below, above in pairwise(order):
        rows = np.flatnonzero((codes == below) | (codes == above))
        low, high = (np.full(len(rows), code, dtype=np.intp) for code in (below, above))
        steps.append((predict(rows, high) - predict(rows, low)).mean(axis=0))
    width = predict(np.zeros(1, dtype=np.intp), np.array([order[0]], dtype=np.intp)).shape[1]
    effect = np.vstack(
        [np.zeros((1, width)), np.cumsum(np.array(steps).reshape(-1, width), axis=0)]
    )
    count = np.array([(codes == code).sum() for code in order], dtype=np.float64)
    centred = effect - (count @ effect) / max(count.sum(), 1.0)
    return Curve(np.asarray(order, dtype=np.float64), centred)


def _means(change: Numbers, place: NDArray[np.intp], count: NDArray[np.intp]) -> Numbers:
    total = np.column_stack(
        [np.bincount(place, column, minlength=len(count)) for column in change.T]
    )
    found: Numbers = total / np.maximum(count, 1)[:, None]
    return found
