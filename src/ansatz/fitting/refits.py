"""The same task fitted again, to rows that leave some out."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.task import Task

FOLDS = 5


class Refit(NamedTuple):
    """What a model says that learned from the rows ``inside`` and not from those ``outside``."""

    inside: Tensor
    outside: Tensor
    raw: Tensor  # (N, P), of all rows


def out_of_fold(task: Task, job: Job, folds: int = FOLDS) -> list[Refit]:
    """Raw numbers of rows by models that were not trained on them.

    Args:
        task: what to fit; its outcome has read the rows.
        job: the rows.
        folds: how many models are fitted.

    Returns:
        One per fold; none where the rows cannot be split.
    """
    task = task.change(progress=0)
    found: list[Refit] = []
    for inside, outside in choose_folds(job, folds, task.settings.seed):
        if not len(inside) or not len(outside):
            continue
        part = take(job, inside)._replace(valid=None, trainer_options={})
        model = fit_model(task, part, finish=False)  # finishing asks for refits
        raw = model.posterior.predictive(job.rows, job.offset, notes=[]).raw
        found.append(Refit(torch.from_numpy(inside), torch.from_numpy(outside), raw))
    return found
