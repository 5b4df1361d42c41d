"""Compares predicted with observed risks by a horizon under censoring."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz.metrics import aalen_johansen, kaplan_meier
from ansatz.report.discrimination import bootstrap_counts

Numbers = NDArray[np.float64]


class Risk(NamedTuple):
    """Predicted and observed risk of some rows by a horizon."""

    predicted: float  # the mean probability of an event by then
    observed: float  # 1 - Kaplan-Meier, or Aalen-Johansen with several causes
    low: float  # of the 95 % interval of ``observed``
    high: float
    rows: float  # number of rows, by weight


def observed_risk(
    time: ArrayLike,
    event: ArrayLike,
    horizon: float,
    *,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> tuple[float, float, float]:
    r"""Estimates the risk of an event by the horizon, with its 95 % interval.

    1 - Kaplan-Meier, with Greenwood's variance on the scale of log(-log S), which keeps the
    interval within 0 and 1.

    References:
        Kalbfleisch and Prentice (2002), The Statistical Analysis of Failure Time Data, section 1.4.
    """
    t, d = np.asarray(time, dtype=np.float64), np.asarray(event) > 0
    w = np.ones(len(t)) if weight is None else np.asarray(weight, dtype=np.float64)
    start = np.full(len(t), -np.inf) if entry is None else np.asarray(entry, dtype=np.float64)
    survival, greenwood = 1.0, 0.0
    for at in np.unique(t[d & (t <= horizon) & (w > 0)]):
        died = float(w[d & (t == at)].sum())
        risk = float(w[(t >= at) & (start < at)].sum())
        survival *= 1 - died / risk
        greenwood += died / (risk * (risk - died)) if risk > died else math.inf
    if survival >= 1:  # no event: the upper limit is 3 / n (95 %)
        total = float(w.sum())
        return 0.0, 0.0, min(1.0, 3.0 / total) if total > 0 else math.nan
    if survival <= 0 or not math.isfinite(greenwood):
        return 1 - survival, math.nan, 1.0
    reach = 1.96 * math.sqrt(greenwood) / abs(math.log(survival))
    low, high = survival ** math.exp(reach), survival ** math.exp(-reach)
    return 1 - survival, 1 - high, 1 - low


def incidence_risk(
    time: ArrayLike,
    event: ArrayLike,
    horizon: float,
    cause: int,
    *,
    weight: ArrayLike | None = None,
    resamples: int = 60,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Estimates the risk of one cause by the horizon, by Aalen-Johansen and bootstrap."""
    t = torch.from_numpy(np.asarray(time, dtype=np.float64))
    d = torch.from_numpy(np.asarray(event).astype(np.int64))
    w = np.ones(len(t)) if weight is None else np.asarray(weight, dtype=np.float64)
    end = torch.tensor([horizon], dtype=torch.float64)

    def share(rows: Numbers) -> float:
        return float(aalen_johansen(t, d, cause, torch.from_numpy(rows)).at(end)[0])

    found = [share(w * counts) for counts in bootstrap_counts(len(t), resamples, seed)]
    low, high = np.quantile(found, [0.025, 0.975])
    return share(w), float(low), float(high)


def choose_horizons(time: ArrayLike, event: ArrayLike, count: int = 3) -> list[float]:
    """Chooses times by which a quarter, a half and three quarters of the events occurred."""
    seen = np.asarray(time, dtype=np.float64)[np.asarray(event) > 0]
    if not len(seen):
        return []
    levels = (np.arange(count) + 1) / (count + 1)
    return sorted({float(t) for t in np.quantile(seen, levels, method="inverted_cdf")})


def calibrate(
    risk: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    horizon: float,
    *,
    cause: int | None = None,
    weight: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    bins: int | None = None,
) -> list[Risk]:
    """Compares observed with predicted risk in bins of equal size, by predicted risk."""
    p, t, d = (np.asarray(part, dtype=np.float64) for part in (risk, time, event))
    w = np.ones(len(t)) if weight is None else np.asarray(weight, dtype=np.float64)
    start = None if entry is None else np.asarray(entry, dtype=np.float64)
    count = bins or int(np.clip(len(t) // 80, 1, 10))
    found = []
    for rows in np.array_split(np.argsort(p, kind="stable"), count):
        if not w[rows].sum() > 0:
            continue
        if cause is None:
            late = None if start is None else start[rows]
            seen = observed_risk(t[rows], d[rows], horizon, weight=w[rows], entry=late)
        else:
            seen = incidence_risk(t[rows], d[rows], horizon, cause, weight=w[rows])
        mean = float(np.average(p[rows], weights=w[rows]))
        found.append(Risk(mean, *seen, float(w[rows].sum())))
    return found


def reference_curve(
    time: ArrayLike, event: ArrayLike, times: Sequence[float], weight: ArrayLike | None = None
) -> Numbers:
    """Computes the Kaplan-Meier curve of training rows at some times, without features."""
    t = torch.from_numpy(np.asarray(time, dtype=np.float64))
    d = torch.from_numpy((np.asarray(event) > 0).astype(np.int64))
    w = None if weight is None else torch.from_numpy(np.asarray(weight, dtype=np.float64))
    at = torch.tensor(list(times), dtype=torch.float64)
    return kaplan_meier(t, d, w).at(at).numpy()
