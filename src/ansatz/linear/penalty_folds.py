"""Folds that choose the strength of a penalty."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]  # rows to train on, rows to evaluate


def weighted_folds(
    folds: Folds, weight: Tensor | None, precision: Tensor | None, count: int
) -> Folds:
    """Folds in the numbers of the rows that have a weight."""
    counts = torch.ones(count, dtype=torch.bool)
    for part in (weight, precision):
        if part is not None:
            counts &= part > 0
    place, there = (counts.long().cumsum(0) - 1).numpy(), counts.numpy()
    found = [tuple(place[index[there[index]]] for index in fold) for fold in folds]
    return [(learn, test) for learn, test in found if len(learn) and len(test)]


def mean_over_folds(
    means: Sequence[Tensor], masses: Sequence[float], strengths: Tensor
) -> tuple[Tensor, Tensor]:
    """The mean out-of-fold loss at each strength, and its standard error over the folds.

    Args:
        means: ``(L,)`` of each fold, the mean loss of the rows that it leaves out.
        masses: the sum of their weights.
        strengths: ``(L,)``.
    """
    if not len(means):
        unknown = torch.full_like(strengths, torch.nan)
        return unknown, unknown
    table, weights = torch.stack(list(means)), torch.tensor(masses, dtype=torch.float64)  # (K, L)
    mean = (weights @ table) / weights.sum()
    spread = (weights @ (table - mean) ** 2) / weights.sum()
    return mean, (spread / max(len(table) - 1, 1)).sqrt()
