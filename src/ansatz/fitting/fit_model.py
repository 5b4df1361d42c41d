"""Fits a task to its rows."""

import copy
from typing import get_args

import numpy as np
import torch

from ansatz import inference
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Fitted, OutOfFoldPredictions
from ansatz.fitting.intervals import conformal_scores
from ansatz.fitting.job import Job, take, thinned
from ansatz.fitting.model import Model
from ansatz.fitting.options import declared
from ansatz.fitting.options.commands import TrainingOptions
from ansatz.fitting.options.vector import Errors
from ansatz.fitting.recipe import STREAM
from ansatz.fitting.recipe_choice import compare_recipes
from ansatz.fitting.saved import load_model
from ansatz.fitting.task import Task
from ansatz.fitting.teacher import Teacher
from ansatz.fitting.training import known_outcomes
from ansatz.likelihoods import Likelihood
from ansatz.linear import Estimates
from ansatz.seeds import derive

FINISHING = 20_000  # rows of a sample, from which refits estimate what a fit leaves open


def fit_model(task: Task, job: Job, *, previous: Model | None = None, finish: bool = True) -> Model:
    """Fits a task to the rows of a job, from the weights of a previous model if there is one.

    ``finish`` lets the outcome estimate what the fit leaves open (a temperature, a baseline
    hazard); refits that serve such an estimate do without.
    """
    task = task.settle(job)._replace(outcome=copy.copy(task.outcome))
    likelihood = task.suited(task.likelihood(job.target, job.mass), job)
    likelihood.check(known_outcomes(job))
    if job.precision is not None and not task.settings.is_linear:
        raise UsageError("precision is for network='linear'; a network takes sample_weight.")
    for name in ("errors", "impute", "link"):
        if task.settings.get(name) and not task.settings.is_linear:
            raise UsageError(
                f"'{name}' is about the coefficients of a linear model: it goes with "
                "network='linear'."
            )
    task.outcome.begin(likelihood, job)
    learn, aside = job, None
    if task.settings.get("calibration"):
        learn, aside = _hold_out(task, job, likelihood)
    model = (
        _solve(task, learn, likelihood)
        if task.is_solved(learn)
        else _infer(task, learn, likelihood, previous)
    )
    if aside is not None:
        served = model.predictive(aside.rows, aside.offset, notes=[])
        model.conformal_scores = conformal_scores(*served, aside.y)
    if finish:
        task.outcome.finish(model, job if job.total is None else thinned(job, FINISHING))
    return model


def _hold_out(task: Task, job: Job, likelihood: Likelihood) -> tuple[Job, Job]:
    """Training rows, and rows that nothing but conformal intervals will see."""
    share, seed = task.settings.get("calibration"), task.settings.seed
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"calibration must be a share of the rows in (0, 1), got {share!r}.")
    if likelihood.event_ndim or job.target.classes:
        raise UsageError(f"{likelihood.name} has no intervals of numbers to calibrate.")
    parts = job.split(seed=derive(seed, "calibration"), test=float(share), keys=job.keys(seed))
    rest = np.setdiff1d(np.arange(len(job.y)), parts.test)
    return take(job, rest)._replace(valid=None), take(job, parts.test)


def _solve(task: Task, job: Job, likelihood: Likelihood) -> Model:
    """The exact linear model, or the constant one where there are no features."""
    if not job.rows.has_features and not isinstance(task.settings.network, str):
        raise DataError("X has no columns that a network could use.")
    task.refuse("linear")
    if task.settings.is_linear and "priors" in task.inference.settings:
        kinds = {name: inference.registry.get(name) for name in inference.registry.names()}
        able = [name for name, kind in kinds.items() if kind.infers_linear]
        raise UsageError(
            f"inference {task.inference.name} is for networks; a linear model takes "
            f"{', '.join(able)} or none."
        )
    odd = [name for name in declared(TrainingOptions) if task.settings.get(name) is not None]
    odd = [name for name in odd if name != "penalty"]
    if task.settings.is_linear and odd:
        raise UsageError(f"'{odd[0]}' is for the training of networks; network='linear' is solved.")
    errors = task.settings.get("errors", "classical" if job.group is None else "cluster")
    if errors not in get_args(Errors):
        raise UsageError(f"errors must be one of {', '.join(get_args(Errors))}, got {errors!r}.")
    own = job._replace(errors=errors, link=task.settings.get("link"))
    if task.settings.get("impute"):
        own = own._replace(impute=(int(task.settings.get("impute")), task.settings.seed))
    found = task.outcome.solve(task.structure, likelihood, own, task.settings.penalty)
    steps = max((fit.iterations for fit in found.fits), default=1)
    return Model(
        task,
        found.posterior,
        job.rows.describe(),
        has_offset=job.offset is not None,
        linear=found.fits,
        estimates=[Estimates.of(fit) for fit in found.fits],
        iterations=steps,
    )


def _infer(task: Task, job: Job, likelihood: Likelihood, previous: Model | None) -> Model:
    recipe, choice = task.recipe(job), None
    if previous is None:
        recipe, choice = compare_recipes(task, recipe, job, likelihood)
    plan = task.plan(recipe, job)
    teacher = Teacher.of(plan.options, load_model)
    if teacher is not None:
        teacher.check_labels(task.outcome.labels)
        plan = plan._replace(options={**plan.options, "teacher": teacher})
    before = None if previous is None else previous.posterior
    fitted = task.outcome.infer(task.inference, plan, job, likelihood, before)
    by_itself = task.settings.is_linear and getattr(task.inference, "infers_linear", False)
    notes = [] if choice is None or not choice.changed else [str(choice)]
    notes += [*fitted.notes, *([] if teacher is None else [teacher.note])]
    return Model(
        task,
        fitted.posterior,
        job.rows.describe(),
        recipe=plan.recipe if fitted.posterior.networks and not by_itself else None,
        history=fitted.history,
        has_offset=job.offset is not None,
        iterations=0 if fitted.history is None else fitted.history.steps,
        out_of_fold=fitted.out_of_fold,
        recalibration=fitted.recalibration,
        conformal_scores=_out_of_fold_scores(fitted, job, likelihood),
        evidence={} if choice is None else {"recipe_choice": choice._asdict()},
        notes=tuple(notes),
    )


def _out_of_fold_scores(fitted: Fitted, job: Job, likelihood: Likelihood) -> torch.Tensor | None:
    """Conformal scores of rows by networks that left them out, where there are such networks."""
    found: OutOfFoldPredictions | None = fitted.out_of_fold
    if found is None or likelihood.event_ndim or job.target.classes:
        return None
    scores = [conformal_scores(mixed, raw, job.y[rows]) for rows, mixed, raw in found.served()]
    return torch.cat(scores) if scores else None


def update_model(task: Task, job: Job, previous: Model | None) -> Model:
    """Goes on with a network for one pass over the rows of a job, at a constant rate."""
    unit = task.structure.unit[1]
    if not task.structure.solves:
        raise UsageError(f"partial_fit is for tables; {unit} go on from a fit by warm_start.")
    if task.settings.is_linear:
        raise UsageError("network='linear' is solved exactly and has no partial_fit: use fit.")
    if task.settings.get("teacher") is not None:
        raise UsageError("partial_fit has no teacher: use fit.")
    recipe, likelihood = task.recipe(job, STREAM), task.suited(task.likelihood(job.target), job)
    options, steps = None, 0
    if previous is None:
        task.outcome.begin(likelihood, job)
    else:
        assert previous.recipe is not None
        recipe = recipe.model_copy(update={"dtype": previous.recipe.dtype})
        options, steps = previous.posterior.networks[0].options or {}, previous.iterations
    plan = task.plan(recipe, job, options)
    plan = plan._replace(seed=derive(plan.seed, "partial", steps))
    before = None if previous is None else previous.posterior
    state = None if previous is None else previous.optimizer_state
    done = task.inference.update(plan, job, likelihood, before, state)
    assert done.history is not None and done.step is not None
    return Model(
        task,
        done.posterior,
        job.rows.describe(),
        recipe=recipe,
        history=done.history,
        has_offset=job.offset is not None,
        iterations=steps + done.history.steps,
        optimizer_state=done.step.state_dict(),
    )
