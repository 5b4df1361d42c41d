"""A model fitted again to each part of its rows, for predictions of rows it has not seen."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.recipe_choice import RecipeChoice

FOLDS = 5


class Refit(NamedTuple):
    """Predictions of a model trained on the rows ``inside`` and not on those ``outside``."""

    inside: Tensor
    outside: Tensor
    raw: Tensor  # (N, P), of all rows


def out_of_fold(model: Model, job: Job, folds: int = FOLDS) -> list[Refit]:
    """Raw numbers of rows by models with the recipe of a model, which did not see them.

    Returns:
        One per fold; none where the rows cannot be split.
    """
    task = model.task.change(progress=0)
    choice = RecipeChoice.of(model)
    if choice is not None:  # what all rows chose is not chosen again
        task = task.change(options={**task.settings.options, **choice.taken})
    found: list[Refit] = []
    for inside, outside in choose_folds(job, folds, task.settings.seed):
        if not len(inside) or not len(outside):
            continue
        part = take(job, inside)._replace(valid=None, trainer_options={})
        refit = fit_model(task, part, finish=False)  # finishing asks for refits
        raw = refit.posterior.predictive(job.rows, job.offset, notes=[]).raw
        found.append(Refit(torch.from_numpy(inside), torch.from_numpy(outside), raw))
    return found
