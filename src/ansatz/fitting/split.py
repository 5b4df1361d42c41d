"""The split of rows into training, validation and test."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import find_duplicates, fold_numbers, row_keys, split_rows
from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.job import take as take
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Task

Rows = NDArray[np.intp]


class Parts(NamedTuple):
    """Row numbers of a split."""

    learn: Rows  # rows that the model may see
    valid: Rows  # positions within learn that stop the training
    test: Rows

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of rows for training, validation and test."""
        valid = len(self.valid)
        return {"train": len(self.learn) - valid, "valid": valid, "test": len(self.test)}


class SplitJob(NamedTuple):
    """The rows of a fit, split; the test rows may be none."""

    learn: Job  # ``learn.valid`` stop the training
    test: Job
    counts: dict[str, int]
    parts: Parts | None = None  # the numbers of the rows, where the job holds all of them
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, job: Job, parts: Parts) -> "SplitJob":
        """The parts of a job that holds all rows."""
        learn = take(job, parts.learn)._replace(valid=parts.valid)
        return cls(learn, take(job, parts.test), parts.counts, parts)


def split(job: Job, task: Task, test: float, seed: int, *, given: bool = False) -> Parts:
    """Parts by the hash of the rows' content, their group or their time; or those given.

    Args:
        job: the rows.
        task: decides which share of them stops the training.
        test: share of the rows for the test.
        seed: of the hash.
        given: take the parts that the data come in (``job.part``).
    """
    parts = task.outcome.split(job, task, test)
    if parts is not None:
        return parts
    keys = row_keys(job.rows, task.outcome.content(job.y, task.settings), seed=seed)
    job = task.outcome.plain(job)  # shares are of rows, whatever their classes weigh
    if given:
        return _given(job, task, keys, seed)
    if job.part is not None and not (job.part == "test").any():
        return _validated(job, test, keys, seed)
    valid = holdout_share(job, task, test) * (1 - test)
    try:
        found = job.split(seed=seed, test=test, valid=valid, keys=keys)
    except DataError as error:
        raise DataError(f"{error}{_advice(job, task)}") from None
    learn = np.sort(np.concatenate([found.train, found.valid]))
    return Parts(learn, np.searchsorted(learn, np.sort(found.valid)), found.test)


def _given(job: Job, task: Task, keys: NDArray[Any], seed: int) -> Parts:
    """The data's own test; of the other rows those for validation, or a share, stop the fit."""
    assert job.part is not None
    test, learn = np.flatnonzero(job.part == "test"), np.flatnonzero(job.part != "test")
    valid = np.flatnonzero(job.part[learn] == "validation")
    if not len(valid):
        share = holdout_share(job, task, len(test) / len(job.part))
        valid = np.sort(take(job, learn).split(seed=seed, valid=share, keys=keys[learn]).valid)
    return Parts(learn, valid, test)


def _validated(job: Job, test: float, keys: NDArray[Any], seed: int) -> Parts:
    """A test of the rows that are not for validation; those that are stop the fit."""
    valid = np.flatnonzero(job.part == "validation")
    others = np.flatnonzero(job.part != "validation")
    found = take(job, others).split(seed=seed, test=test, valid=0.0, keys=keys[others])
    learn = np.sort(np.concatenate([others[found.train], valid]))
    return Parts(learn, np.searchsorted(learn, valid), others[found.test])


def holdout_share(job: Job, task: Task, test: float) -> float:
    """The share of the rows not tested that stops the training: none for a solved model."""
    if task.is_solved(job):
        return 0.0
    given = task.settings.get("holdout")
    if given is not None:
        return float(given)
    total = job.mass * (1 - test)
    return task.default_recipe(task.facts(job, total)).holdout


def folds_of(job: Job, task: Task, folds: int, seed: int) -> Rows:
    """The fold of each row; duplicates and groups stay in one."""
    job = task.outcome.plain(job)
    keys = job.keys(seed)
    try:
        return fold_numbers(keys, folds, seed=seed, group=job.group, weight=job.weight.numpy())
    except UsageError as error:
        raise UsageError(f"{error}{_advice(job, task)}") from None


def _advice(job: Job, task: Task) -> str:
    """Advises how to get more examples, where no column distinguishes them."""
    if job.group is not None or job.time is not None:
        return ""
    return task.structure.more_examples(job.target.axis)


def describe_late_rows(job: Job, parts: Parts) -> list[str]:
    """Reports the rows that a split by group and time leaves out."""
    count = len(job.y) - len(parts.learn) - len(parts.test)
    if job.group is None or job.time is None or not len(parts.test):
        return []
    return [
        "split by group and time: the test holds the groups that began last; "
        f"{count} rows of earlier groups, from the begin of the test or the validation on, were "
        "left out."
    ]


Keys = NDArray[np.uint64]


def describe_duplicates(keys: Keys) -> list[str]:
    """Reports the number of duplicate rows, if there are any."""
    count = len(keys) - len(np.unique(keys))
    if count == 0:
        return []
    what = "is a duplicate" if count == 1 else "are duplicates"
    return [
        f"{count} of {len(keys)} rows {what} of another; they stay on one side of every split by "
        "content."
    ]


def are_duplicates(learned: Keys, evaluated: Keys) -> NDArray[np.bool_]:
    """Finds the evaluated rows that are duplicates of training rows."""
    found: NDArray[np.bool_] = find_duplicates(learned, evaluated)
    return found


def warn_of_duplicates(
    mask: NDArray[np.bool_], honest: dict[str, float | None] | None
) -> list[str]:
    """Warns of duplicates among the evaluated rows, with the metrics without them."""
    count = int(mask.sum())
    if count == 0:
        return []
    known = [f"{name} {value:.4g}" for name, value in (honest or {}).items() if value is not None]
    without = ", ".join(known) or "no row is left"
    share = f"{count} of {len(mask)} evaluated rows ({count / len(mask):.0%})".replace("%", " %")
    return [f"{share} are duplicates of training rows; without them: {without}."]


def warn_of_training_rows(count: int, total: int, many: str = "rows") -> list[str]:
    """Warns where a model is evaluated on rows that it was trained on."""
    if count == 0:
        return []
    return [
        f"the model was trained on {count:,} of these {total:,} {many}: their scores do not show "
        f"how well new {many} are predicted."
    ]


def stopping_rows(job: Job, recipe: Recipe, seed: int) -> NDArray[np.intp]:
    """Rows held out by the hash of their content, so that duplicates fall on one side."""
    if recipe.holdout == 0 or len(job.y) < 2:
        return np.empty(0, dtype=np.intp)
    return job.split(seed=seed, valid=recipe.holdout).valid


def stopping_folds(job: Job, recipe: Recipe, seed: int) -> Tensor | None:
    """The fold of each training row, duplicates in one, where folds stop the training."""
    if not recipe.folds:
        return None
    keys, group = job.keys(seed), job.group
    if len(np.unique(keys)) < 2 * recipe.folds:
        return None
    if job.time is not None:  # forward only: the latest rows evaluate, the others never do
        share = 1 / recipe.folds
        try:
            latest = split_rows(keys, seed=seed, test=share, valid=0.0, time=job.time, group=group)
        except DataError:  # all groups begin at once
            return None
        folds = np.full(len(keys), -1)
        folds[latest.test] = 0
        return torch.from_numpy(folds)
    count = recipe.folds if group is None else min(recipe.folds, len(np.unique(group.astype(str))))
    if count < 2:
        return None
    weight = job.weight.numpy()
    return torch.from_numpy(fold_numbers(keys, count, seed=seed, group=group, weight=weight))
