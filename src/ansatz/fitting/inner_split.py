"""Rows of one fit that do not train: they stop it, count its steps, or calibrate it."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import fold_numbers, split_rows
from ansatz.fitting.job import Job, take
from ansatz.fitting.recipe import Recipe


def stopping_rows(job: Job, recipe: Recipe, seed: int) -> NDArray[np.intp]:
    """Rows held out by the hash of their content, so that copies fall on one side.

    Args:
        job: all rows of the fit.
        recipe: tells which share of them decides when to stop.
        seed: of the hash.
    """
    if recipe.holdout == 0 or len(job.y) < 2:
        return np.empty(0, dtype=np.intp)
    return split_rows(
        job.keys(seed),
        seed=seed,
        test=0.0,
        valid=recipe.holdout,
        group=job.group,
        time=job.time,
        weight=job.weight.numpy(),
    ).valid


def stopping_folds(job: Job, train: NDArray[np.intp], recipe: Recipe, seed: int) -> Tensor | None:
    """The fold of each training row, copies in one, where folds stop the training.

    Args:
        job: all rows of the fit.
        train: the numbers of those that train.
        recipe: tells how many folds; 0 for none.
        seed: of the folds.
    """
    if not recipe.folds:
        return None
    keys = job.keys(seed)[train]
    group = None if job.group is None else job.group[train]
    if len(np.unique(keys)) < 2 * recipe.folds:
        return None
    if job.time is not None:  # forward only: the latest rows evaluate, the others never do
        latest = split_rows(keys, seed=seed, test=1 / recipe.folds, valid=0.0, time=job.time[train])
        folds = np.full(len(train), -1)
        folds[latest.test] = 0
        return torch.from_numpy(folds)
    count = recipe.folds if group is None else min(recipe.folds, len(np.unique(group.astype(str))))
    if count < 2:
        return None
    weight = job.weight.numpy()[train]
    return torch.from_numpy(fold_numbers(keys, count, seed=seed, group=group, weight=weight))


def hold_out(job: Job, share: float, keys: NDArray[np.uint64], seed: int) -> tuple[Job, Job]:
    """Rows to learn from, and rows that nothing but conformal intervals will see.

    Args:
        job: all rows.
        share: of them that is held out.
        keys: ``(N,)`` hashes of their content, the same for copies.
        seed: of the split.
    """
    parts = split_rows(
        keys,
        seed=seed,
        test=share,
        valid=0.0,
        group=job.group,
        time=job.time,
        weight=job.weight.numpy(),
    )
    rest = np.setdiff1d(np.arange(len(job.y)), parts.test)
    return take(job, rest)._replace(valid=None), take(job, parts.test)
