"""From examples on grids to a trained network, by a plan."""

import copy
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ansatz import optim
from ansatz.data import Batch
from ansatz.data.augmentation import Compose, OnBatches, default_augmentation, from_record
from ansatz.data.grids import GridPreprocessor, Grids, GridSource
from ansatz.data.prefetch import Prefetch, Transformed
from ansatz.data.source import Source
from ansatz.data.unlabelled import UNLABELLED
from ansatz.errors import UsageError
from ansatz.fitting.training import Fitted, build_network, build_objective, build_step
from ansatz.structures.grid.model import CELLS, GridModel
from ansatz.fitting.inner_split import stopping_rows
from ansatz.fitting.job import Job, has_masks, take
from ansatz.fitting.plan import Plan
from ansatz.fitting.rehearsal import answer_of
from ansatz.fitting.transfer import begin_transfer
from ansatz.likelihoods import Likelihood
from ansatz.networks.layout import channels_last
from ansatz.seeds import derive
from ansatz.training import Callback, Supervised, Trainer


def fit_grid_model(
    plan: Plan,
    job: Job,
    law: Likelihood,
    previous: GridModel | None = None,
    *,
    preprocessor: GridPreprocessor | None = None,
) -> tuple[GridModel, Fitted]:
    """Trains a network on the examples that do not stop it.

    Args:
        plan: of the fit.
        job: the examples.
        law: of the outcomes.
        previous: begins at its weights.
        preprocessor: of the channels; None learns it from the examples.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.fitting import fit_grid_model
        >>> list(inspect.signature(fit_grid_model).parameters)
        ['plan', 'job', 'law', 'previous', 'preprocessor']
    """
    valid = stopping_rows(job, plan.recipe, plan.seed) if job.valid is None else job.valid
    learn = take(job, np.setdiff1d(np.arange(len(job.y)), valid))
    stop = take(job, valid) if len(valid) else None
    if previous is not None:
        preprocessor = previous.preprocessor
    elif preprocessor is None:
        preprocessor = GridPreprocessor.fit(learn.rows, learn.weight.numpy())
    network, objective = _begin(plan, learn, law, preprocessor, previous)
    transfer = begin_transfer(network, plan if previous is None else plan._replace(pretrained=None))
    schedule = optim.create_schedule(plan.recipe.schedule, steps=plan.recipe.steps, warmup=0.05)
    step = build_step(
        network,
        objective,
        plan.recipe,
        seed=plan.seed,
        schedule=schedule,
        groups=transfer.groups,
    )
    try:
        history = _trainer(plan, job, stop is not None, transfer.callbacks).fit(
            step,
            _source(plan, learn, preprocessor, training=True),
            None if stop is None else _source(plan, stop, preprocessor, training=False),
        )
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise UsageError(
            f"{plan.network_name} leaves one cell of an example, and a batch of one example has "
            "nothing to normalise it by. Take a batch_size of 2 or more, or a smaller depth."
        ) from None
    preprocessor.notes += transfer.notes
    fitted = Fitted(network, objective, step, history)
    return plan.grid_model(preprocessor, fitted), fitted


def grid_objective(law: Likelihood, job: Job) -> Supervised:
    """The objective of examples: outcomes checked, started at the constant model.

    Labels of cells share one constant: every cell is an outcome of its own.

    Example:
        >>> import inspect
        >>> from ansatz.structures.grid.fitting import grid_objective
        >>> list(inspect.signature(grid_objective).parameters)
        ['law', 'job']
    """
    rows = Batch(
        (torch.empty(len(job.y), 0),), job.y, job.weight.float(), _single(job.offset), job.index
    )
    if not has_masks(job):
        return build_objective(law, rows._replace(target=_single(rows.target)))
    rows = _labelled(rows)
    if not law.event_ndim:
        seen = rows.weight > 0
        rows = Batch.of(torch.empty(int(seen.sum()), 0), rows.target[seen], rows.weight[seen])
    objective = build_objective(law, rows)
    objective.axis = 1
    return objective


def _begin(
    plan: Plan,
    job: Job,
    law: Likelihood,
    preprocessor: GridPreprocessor,
    previous: GridModel | None,
) -> tuple[nn.Module, Supervised]:
    dtype = getattr(torch, plan.recipe.dtype)
    if previous is not None:
        objective = copy.deepcopy(previous.objective).to(dtype).requires_grad_()
        objective.likelihood.check(job.y.clamp(min=0) if has_masks(job) else job.y)
        return channels_last(copy.deepcopy(previous.network).to(dtype).train()), objective
    objective = grid_objective(law, job).to(dtype)
    objective.likelihood.loosen()
    assert objective.shift is not None
    network = build_network(
        plan.network,
        plan.options,
        inputs=preprocessor.spec,
        outputs=objective.shift.numel(),
        dtype=dtype,
        seed=plan.seed,
    )
    _require_outputs(network, preprocessor, job, objective)
    return channels_last(network), objective


def _require_outputs(
    network: nn.Module, preprocessor: GridPreprocessor, job: Job, objective: Supervised
) -> None:
    """What the network answers to one example must be what the likelihood takes."""
    assert objective.shift is not None
    first = job.rows[np.arange(1)]
    (x,) = preprocessor.transform(first)
    got = answer_of(network, (x.to(next(network.parameters()).dtype),))
    dense = objective.axis == 1
    wanted = (1, objective.shift.numel(), *(job.target.shape if dense else ()))
    if tuple(got.shape) != wanted:
        raise UsageError(
            f"the network answers {tuple(got.shape[1:])} to one example, the outcome needs "
            f"{wanted[1:]}: small_resnet has one answer per example, unet one for every cell (of a "
            "Segmenter)."
        )


def _source(plan: Plan, job: Job, preprocessor: GridPreprocessor, *, training: bool) -> Source:
    masks = has_masks(job)
    rows = Batch(
        (),
        job.y if masks else _single(job.y),
        job.weight.float(),
        _single(job.offset),
        job.index,
    )
    size = plan.recipe.batch_size or len(job.y)
    seed = derive(plan.seed, "rows")
    source = GridSource(
        job.rows,
        rows,
        size if training else _judged(size, job.rows, masks),
        smallest=2 if training else 1,  # a network that normalises within a batch needs two
        seed=seed,
        shuffle=training,
    )
    augment = _augmentation(plan, job, preprocessor) if training else None
    prepare = OnBatches(augment, masks=masks, mean=preprocessor.mean, scale=preprocessor.spread)
    transformed = Transformed(source, prepare, seed=derive(plan.seed, "augmentation"))
    return Prefetch(transformed) if training and _has_spare_core() else transformed


def _augmentation(plan: Plan, job: Job, preprocessor: GridPreprocessor) -> Compose | None:
    """What the user asks for, or what the shapes and counts allow."""
    asked = plan.recipe.augment
    if not isinstance(asked, bool):
        return Compose([from_record(each) for each in asked])
    if not asked:
        return None
    return default_augmentation(
        preprocessor.spec,
        masks=has_masks(job),
        numbers=job.target.classes == 0,
        examples=len(job.y),
    )


def _has_spare_core() -> bool:
    """Whether a thread beside the step's own would not take a core from them.

    On two cores that both work, preparing batches in the background makes an epoch of LeNet-5 take
    1.6 times as long.
    """
    return (os.cpu_count() or 1) > torch.get_num_threads()


def _judged(batch_size: int, grids: Grids, masks: bool) -> int:
    """Without gradients more examples fit at once, unless they are large."""
    return batch_size if masks else max(batch_size, min(256, CELLS // math.prod(grids.shape)))


def _trainer(plan: Plan, job: Job, stops: bool, callbacks: Sequence[Callback]) -> Trainer:
    recipe = plan.recipe
    return Trainer(
        callbacks=callbacks,
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if stops else None,
        patience=recipe.patience if stops else None,
        average=recipe.average,
        seed=plan.seed,
        **{**plan.trainer_options, **job.trainer_options},
    )


def _labelled(batch: Batch) -> Batch:
    """Weights for cells: those of their example, 0 where the label is not known."""
    known = batch.target != UNLABELLED
    weight = batch.weight.reshape(-1, *(1,) * (batch.target.ndim - 1)) * known
    return batch._replace(target=batch.target.clamp(min=0), weight=weight)


def _single(values: Tensor | None) -> Any:
    """Numbers in float32, codes as they are."""
    if values is None or not values.is_floating_point():
        return values
    return values.float()
