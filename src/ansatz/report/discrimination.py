"""Computes ROC and precision-recall curves."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ansatz.metrics import auc_estimate, influence_error

Numbers = NDArray[np.float64]


class ThresholdCurve(NamedTuple):
    """A curve over all thresholds, and its area."""

    x: Numbers  # ``(M,)``: the false positive rate, or recall
    y: Numbers  # ``(M,)``: the true positive rate, or precision
    area: float  # under it
    low: float  # of the 95 % interval of the area
    high: float


def roc_curve(
    event: ArrayLike,
    score: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> ThresholdCurve:
    """Computes the ROC curve, with DeLong's interval of the area on the logit scale.

    References:
        DeLong, DeLong and Clarke-Pearson (1988). https://doi.org/10.2307/2531595
    """
    hits, false = _cumulated(event, score, weight)
    y = torch.from_numpy(np.asarray(event, dtype=np.float64))
    s = torch.from_numpy(np.asarray(score, dtype=np.float64))
    w = None if weight is None else torch.from_numpy(np.asarray(weight, dtype=np.float64))
    found = auc_estimate(y, s, w)
    codes = None
    if group is not None:
        codes = torch.from_numpy(np.unique(np.asarray(group).astype(str), return_inverse=True)[1])
    error = influence_error(found.influence, w, group=codes)
    low, high = logit_interval(found.value, error)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ThresholdCurve(false / false[-1], hits / hits[-1], found.value, low, high)


def precision_recall_curve(
    event: ArrayLike,
    score: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> ThresholdCurve:
    r"""Computes the precision-recall curve; its area is the average precision.

    .. math:: AP = \sum_k (R_k - R_{k-1}) P_k

    Its interval is the percentile bootstrap over rows, or groups.

    References:
        Boyd, Eng and Page (2013), Area under the precision-recall curve.
        https://doi.org/10.1007/978-3-642-40994-3_29
    """
    y, s = np.asarray(event, dtype=np.float64), np.asarray(score, dtype=np.float64)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    _, place = np.unique(-s, return_inverse=True)
    recall, precision = _precision_recall(y, place, w)
    area = _average_precision(recall, precision)
    samples = [
        _average_precision(*_precision_recall(y, place, w * times))
        for times in bootstrap_counts(len(y), resamples, seed, group)
    ]
    known = [value for value in samples if math.isfinite(value)]
    low, high = np.quantile(known, [0.025, 0.975]) if known else (math.nan, math.nan)
    return ThresholdCurve(recall, precision, area, float(low), float(high))


def bootstrap_counts(
    rows: int, resamples: int, seed: int = 0, group: ArrayLike | None = None
) -> Iterator[Numbers]:
    """Yields how often each row is drawn in bootstrap samples of rows, or groups."""
    generator = np.random.default_rng(seed)
    place = np.arange(rows)
    if group is not None:
        _, place = np.unique(np.asarray(group).astype(str), return_inverse=True)
    units = int(place.max()) + 1
    for _ in range(resamples):
        yield np.bincount(generator.integers(units, size=units), minlength=units)[place].astype(
            np.float64
        )


def _precision_recall(y: Numbers, place: NDArray[np.intp], w: Numbers) -> tuple[Numbers, Numbers]:
    hits = np.concatenate([[0.0], np.bincount(place, w * y).cumsum()])
    taken = np.concatenate([[0.0], np.bincount(place, w).cumsum()])
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = hits / hits[-1]
        precision = np.where(taken > 0, hits / np.where(taken > 0, taken, 1.0), 0.0)
    precision[0] = precision[1]
    return recall, precision


def _average_precision(recall: Numbers, precision: Numbers) -> float:
    return float((np.diff(recall) * precision[1:]).sum())


def logit_interval(share: float, error: float, level: float = 0.95) -> tuple[float, float]:
    """Computes the normal interval on the logit scale, which stays within (0, 1)."""
    if not 0 < share < 1 or not error > 0:
        return share, share
    z = float(stats.norm.ppf((1 + level) / 2))
    middle, reach = math.log(share / (1 - share)), z * error / (share * (1 - share))
    return 1 / (1 + math.exp(reach - middle)), 1 / (1 + math.exp(-reach - middle))


def _cumulated(
    event: ArrayLike, score: ArrayLike, weight: ArrayLike | None
) -> tuple[Numbers, Numbers]:
    """Counts events and others at or above each distinct score."""
    y, s = np.asarray(event, dtype=np.float64), np.asarray(score, dtype=np.float64)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    _, place = np.unique(-s, return_inverse=True)
    hits, others = np.bincount(place, w * y), np.bincount(place, w * (1 - y))
    return np.concatenate([[0.0], hits.cumsum()]), np.concatenate([[0.0], others.cumsum()])


def confusion(
    y: ArrayLike, predicted: ArrayLike, classes: int, weight: ArrayLike | None = None
) -> Numbers:
    """Counts rows by class (first axis) and predicted class (second)."""
    code = np.asarray(y, dtype=np.intp) * classes + np.asarray(predicted, dtype=np.intp)
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    counts = np.bincount(code, w, classes**2).astype(np.float64)
    return counts.reshape(classes, classes)
