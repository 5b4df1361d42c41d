"""The log score of a likelihood given x, each row evaluated by a model that never saw it."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import fold_numbers, split_rows
from ansatz.errors import NumericalError
from ansatz.fitting.job import Job
from ansatz.likelihoods import Likelihood

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # training rows, rows to evaluate
Folds = Sequence[Fold]


def choose_folds(job: Job, count: int, seed: int) -> Folds:
    """Folds by the hash of the rows' content or group; by time, each evaluated by its past."""
    keys = job.keys(seed)
    weight = job.weight.numpy()
    if job.time is not None:
        return [_apart(fold, job.group) for fold in _forward(keys, job.time, weight, count)]
    units = len(np.unique(keys)) if job.group is None else len(np.unique(job.group.astype(str)))
    if units < 2:
        return []
    number = fold_numbers(keys, min(count, units), seed=seed, group=job.group, weight=weight)
    folds = range(int(number.max()) + 1)
    return [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in folds]


def _forward(
    keys: NDArray[np.uint64], time: NDArray[np.generic], weight: NDArray[np.float64], count: int
) -> Folds:
    """Rows in count + 1 blocks of time: each but the first is evaluated by those before it."""
    if len(np.unique(time.astype(str))) <= count:
        return []
    block = np.full(len(keys), count)
    for k in range(1, count + 1):
        late = split_rows(keys, test=k / (count + 1), valid=0.0, time=time, weight=weight).test
        block[late] -= 1
    block = count - block  # 0 is the earliest
    return [(np.flatnonzero(block < k), np.flatnonzero(block == k)) for k in range(1, count + 1)]


def _apart(fold: Fold, group: NDArray[np.generic] | None) -> Fold:
    """Leaves rows of the groups that are evaluated out of the training rows."""
    inside, outside = fold
    if group is None:
        return fold
    names = group.astype(str)
    return inside[~np.isin(names[inside], names[outside])], outside


def log_scores(
    likelihood: Likelihood, raw: Tensor, y: Tensor, step: Tensor | float = 0.0
) -> Tensor:
    r"""The log density of each row, or the log probability of the step that it was rounded to.

    .. math:: \log p(y), \qquad \log P(y - \tfrac{s}{2} < Y \le y + \tfrac{s}{2})

    A probability and a density have no common measure; with a step s, a count's likelihood and a
    continuous one do.

    Args:
        likelihood: whose distribution raw describes.
        raw: ``(N, P)``, or ``(N, K, P)`` for K targets.
        y: the outcomes.
        step: s; 0 for densities.

    Returns:
        ``(N,)``, the mean over the targets of a row.
    """
    with torch.no_grad():
        if not torch.as_tensor(step).any():
            terms = -likelihood.loss(raw, y)
        else:
            d = likelihood.distribution(raw)
            if d.discrete:
                terms = d.log_prob(y)
            else:
                lower = y - step / 2
                lower = torch.where(lower <= d.lower, -torch.inf, lower)
                terms = d.log_interval(lower, y + step / 2)
    return terms.reshape(len(raw), -1).mean(1)


def require_finite(scores: Tensor, folds: Folds) -> Tensor:
    """Which rows are evaluated, ``(N,)``; a score of one of them that is not finite is an error."""
    seen = torch.zeros(len(scores), dtype=torch.bool)
    for _, evaluated in folds:
        seen[evaluated] = True
    bad = seen & ~scores.isfinite()
    if bad.any():
        raise NumericalError(f"the log score of {int(bad.sum())} rows is {float(scores[bad][0])}.")
    return seen
