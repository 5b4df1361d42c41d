"""Several networks on grids, each stopped by examples that the others learn from."""

import torch

from ansatz.data.grids import GridPreprocessor
from ansatz.estimators.ensemble import (
    Ensembled,
    OutOfFold,
    Piece,
    combine,
    left_out,
    plan_members,
)
from ansatz.estimators.grid_fitting import fit_grid_model
from ansatz.estimators.grid_model import GridModel
from ansatz.estimators.job import Job, has_masks
from ansatz.estimators.mask_out_of_fold import judge_cells
from ansatz.estimators.plan import Plan
from ansatz.inference.training import Rows, member_folder
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive


def fit_grid_ensemble(plan: Plan, job: Job, law: Likelihood) -> Ensembled:
    """Trains members one after another and mixes them by what they say of examples left out.

    Masks are mixed cell by cell, and judged by a sample of their labelled cells.

    Args:
        plan: of every member; ``plan.recipe.members`` of them.
        job: the examples.
        law: of the outcomes.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.grid_ensemble import fit_grid_ensemble
        >>> list(inspect.signature(fit_grid_ensemble).parameters)
        ['plan', 'job', 'law']
    """
    members = plan_members(job, plan.recipe, plan.seed)
    preprocessor = GridPreprocessor.fit(job.rows, job.weight.numpy())
    models, histories = [], []
    for number, member in enumerate(members):
        options = member_folder(dict(job.trainer_options), number)
        part = job._replace(valid=member.valid.numpy(), trainer_options=options)
        own = plan._replace(seed=derive(plan.seed, "member", number))
        model, fitted = fit_grid_model(own, part, law, preprocessor=preprocessor)
        models.append(model)
        histories.append(fitted.history)
    history = max(histories, key=lambda each: each.steps)
    if has_masks(job):
        job, judged = judge_cells(job, members, models, plan.seed)
    else:
        judged = _out_of_fold(job, members, models)
    return combine(job, list(models), members, None, judged, history, plan.seed)


def _out_of_fold(job: Job, members: list[Rows], models: list[GridModel]) -> OutOfFold:
    """Every example, with what those members say that left it out."""
    who = left_out(members, len(job.y))  # (N, G)
    pieces = []
    for group in who[(who >= 0).all(1)].unique(dim=0):
        index = (who == group).all(1).nonzero().squeeze(1)
        chosen = [models[member] for member in group.tolist()]
        rows, offset = job.rows[index.numpy()], None if job.offset is None else job.offset[index]
        laws = [model.objective.likelihood for model in chosen]
        pieces.append(Piece(index, laws, [model.raw(rows, offset) for model in chosen]))
    groups = who.shape[1]
    return OutOfFold(who, pieces, torch.full((groups,), 1 / groups, dtype=torch.float64))
