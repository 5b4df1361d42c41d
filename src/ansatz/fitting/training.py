"""Trains a network on typed rows by a plan: once for every structure and inference."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ansatz import networks, optim
from ansatz.data import Batch
from ansatz.data.batch import UNLABELLED, map_tensors, take_rows
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Feed, Structure
from ansatz.fitting.frozen_body import LastMap, StateSource
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Trained
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.split import stopping_folds, stopping_rows
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.teacher import Teacher
from ansatz.fitting.transfer import Transfer, begin_transfer
from ansatz.likelihoods import Likelihood
from ansatz.networks.transfer import rests
from ansatz.seeds import derive, generator
from ansatz.spec import InputSpec
from ansatz.training import (
    AnalyticStep,
    GradientStep,
    History,
    NewtonStep,
    Penalty,
    Step,
    Supervised,
    Trainer,
)
from ansatz.training.distillation import TeacherObjective
from ansatz.training.machine import own_randomness

Start = tuple[nn.Module, Supervised]


class Training(NamedTuple):
    """A trained network, the step that can go on, and how the training went."""

    encoder: Encoder
    trained: Trained
    step: Step
    history: History
    notes: tuple[str, ...] = ()


def train(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    *,
    encoder: Encoder | None = None,
    start: Start | None = None,
) -> Training:
    """Trains a network on the rows of a job, stopping by those held out if there are any.

    Args:
        plan: of the fit.
        job: the rows; ``job.held_out`` or ``job.valid`` stop the training, or the recipe's share.
        likelihood: of the outcomes.
        encoder: learned before; None learns it from the training rows.
        start: a network and an objective to begin with, copied.
    """
    recipe, seed = plan.recipe, plan.seed
    learn, stop = _halves(job, recipe, seed)
    if encoder is None:
        encoder = plan.structure.encoder(learn.rows, learn.weight.numpy(), recipe, plan.options)
    made: Encoder = encoder
    teacher: Teacher | None = plan.options.get("teacher")
    if teacher is not None:
        teacher.check(plan, job)

    def begin(part: Job) -> Step:
        own = plan._replace(recipe=recipe)
        return _begin(own, part, likelihood, made, start, teacher=teacher)[0]

    folds = None
    if stop is None:
        folds = stopping_folds(job, recipe, seed)
    if folds is not None:
        recipe = recipe.model_copy(update={"steps": _best_steps(plan, begin, learn, made, folds)})
    own = plan._replace(recipe=recipe)
    step, transfer = _begin(own, learn, likelihood, made, start, teacher=teacher)
    feed = _feed(step, recipe, seed)
    source = _source(plan, learn, made, feed, step)
    held_out = None
    if stop is not None:
        held_out = _source(plan, stop, made, feed._replace(training=False), step)
    if held_out is None:
        _refuse_without_evaluation(plan)
    trainer = Trainer(
        callbacks=(*transfer.callbacks, *(plan.options.get("callbacks") or ())),
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if held_out else None,
        patience=recipe.patience if held_out else None,
        min_improvement=recipe.min_improvement if held_out else 0.0,
        average=recipe.average,
        seed=seed,
        **{**plan.trainer_options, **job.trainer_options},
    )
    with _one_row_has_no_spread(plan):
        history = trainer.fit(step, source, held_out)
    return Training(made, finish(plan, made, step), step, history, transfer.notes)


def _source(plan: TrainingPlan, job: Job, encoder: Encoder, feed: Feed, step: Step) -> Source:
    """Batches of the rows; of the states of a frozen body where only its last map is trained."""
    source = plan.structure.source(job, encoder, feed, plan.options)
    if not isinstance(step.network, LastMap):
        return source
    every = feed._replace(training=False)
    plain = plan.structure.source(job, encoder, every, plan.options)
    return StateSource(source, step.network, plain)


def _refuse_without_evaluation(plan: TrainingPlan) -> None:
    """Refuses options about held-out rows where there are none."""
    listens = hasattr(optim.schedules.get(plan.recipe.schedule), "observe")
    asked = [name for name in ("patience", "min_improvement") if plan.options.get(name) is not None]
    asked += ["schedule=" + plan.recipe.schedule] if listens else []
    if asked:
        raise UsageError(f"{asked[0]} needs rows that are held out: holdout=0.2.")


def _halves(job: Job, recipe: Recipe, seed: int) -> tuple[Job, Job | None]:
    """The rows that train, and those that stop the training if there are any."""
    if job.held_out is not None:
        return job, job.held_out
    valid = stopping_rows(job, recipe, seed) if job.valid is None else job.valid
    if not len(valid):
        return job, None
    return take(job, np.setdiff1d(np.arange(len(job.y)), valid)), take(job, valid)


def update(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    *,
    encoder: Encoder | None = None,
    start: Start | None = None,
    state: dict[str, Any] | None = None,
) -> Training:
    """Makes one pass over the rows at a constant rate, from ``start`` and the step's ``state``."""
    recipe = plan.recipe
    if encoder is None:
        encoder = plan.structure.encoder(job.rows, job.weight.numpy(), recipe, plan.options)
    step, _ = _begin(plan, job, likelihood, encoder, start, schedule=False)
    if state is not None:
        step.load_state_dict(state)
    size = recipe.batch_size or len(job.y)
    source = plan.structure.source(job, encoder, _feed(step, recipe, plan.seed), plan.options)
    trainer = Trainer(
        steps=-(-len(job.y) // size), average=recipe.average, seed=plan.seed, **plan.trainer_options
    )
    history = trainer.fit(step, source, None)
    return Training(encoder, finish(plan, encoder, step), step, history)


def finish(plan: TrainingPlan, encoder: Encoder, step: Step) -> Trained:
    """The network and the objective of a step, ready to predict."""
    objective: Any = step.objective
    if isinstance(objective, TeacherObjective):
        objective = objective.plain()
    network = step.network
    whole: nn.Module = network.whole if isinstance(network, LastMap) else network  # type: ignore[assignment]
    return finish_pair(plan, encoder, whole, objective)


def finish_pair(
    plan: TrainingPlan, encoder: Encoder, network: nn.Module, objective: Supervised
) -> Trained:
    """A network and its objective, ready to predict."""
    found = Trained(network, objective, plan.network_name, plan.saved_options, encoder.dtype)
    return ready(plan.structure, encoder, found, plan.recipe)


def ready(
    structure: Structure, encoder: Encoder, trained: Trained, recipe: Recipe | None
) -> Trained:
    """A trained network that answers as its structure has it: averaged, in its memory layout."""
    trained.network, trained.answering = structure.answering(trained.network, encoder, recipe)
    return trained


def _feed(step: Step, recipe: Recipe, seed: int) -> Feed:
    objective = step.objective
    additive = not isinstance(objective, Supervised) or objective.likelihood.additive
    return Feed(recipe, seed, True, additive, _normalizes_by_batch(step.network))


@contextmanager
def _one_row_has_no_spread(plan: TrainingPlan) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise UsageError(
            f"{plan.network_name} leaves one number per channel, and a batch of one example has "
            "nothing to normalise it by. Take a batch_size of 2 or more, or a smaller depth."
        ) from None


def _begin(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    encoder: Encoder,
    start: Start | None,
    *,
    schedule: bool = True,
    teacher: Teacher | None = None,
) -> tuple[Step, Any]:
    """The first step of a training, and what it takes from elsewhere."""
    recipe = plan.recipe
    module, objective = build_modules(plan, job, likelihood, encoder, start)
    if teacher is not None:
        objective = teacher.objective(objective, job)
    # Weights of a file are for the beginning: a fit that goes on does not load them again.
    file = plan.options.get("pretrained") if start is None else None
    frozen = plan.options.get("freeze")
    asked = file is not None or frozen is not None or plan.options.get("adapter") is not None
    transfer = begin_transfer(module, plan, file, frozen) if asked else Transfer()
    step = build_step(
        LastMap(module) if transfer.last_map and job.target.axis == "row" else module,
        objective,
        recipe,
        seed=plan.seed,
        schedule=recipe.make_schedule() if schedule else None,
        groups=transfer.groups,
        recompute=bool(plan.options.get("recompute")),
    )
    return step, transfer


def build_modules(
    plan: TrainingPlan, job: Job, likelihood: Likelihood, encoder: Encoder, start: Start | None
) -> tuple[nn.Module, Supervised]:
    """The network and the objective that a training begins with, copied from ``start`` if given."""
    dtype = getattr(torch, plan.recipe.dtype)
    if start is not None:
        objective = copy.deepcopy(start[1]).to(dtype).requires_grad_()
        objective.likelihood.check(known_outcomes(job))
        module = copy.deepcopy(start[0]).to(dtype).train()
        return plan.structure.answering(module, encoder, None)[0], objective
    objective = start_objective(likelihood, job, dtype)
    objective.likelihood.relax_shapes()
    assert objective.shift is not None
    module = build_network(
        plan.network,
        plan.network_options,
        inputs=encoder.spec,
        outputs=objective.shift.numel(),
        dtype=dtype,
        seed=plan.seed,
    )
    return plan.structure.adapt(module, encoder, job, objective), objective


def known_outcomes(job: Job) -> Tensor:
    """The outcomes with a harmless code where an element has no label."""
    return job.y if job.target.axis == "row" else job.y.clamp(min=0)


def start_objective(
    likelihood: Likelihood, job: Job, dtype: torch.dtype = torch.float32
) -> Supervised:
    """The objective of a job's outcomes, started at the constant model.

    Outcomes on the elements of an example share one constant: every element is an outcome of its
    own, and one without a label has weight 0.
    """
    rows = typed(
        Batch((torch.empty(len(job.y), 0),), job.y, job.weight, job.offset, job.index), dtype
    )
    if job.target.axis == "row":
        return build_objective(likelihood, rows)
    known = rows.target != UNLABELLED
    weight = rows.weight.reshape(-1, *(1,) * (rows.target.ndim - 1)) * known
    rows = rows._replace(target=rows.target.clamp(min=0), weight=weight)
    if not likelihood.event_ndim:
        seen = rows.weight > 0
        rows = Batch.of(torch.empty(int(seen.sum()), 0), rows.target[seen], rows.weight[seen])
    objective = build_objective(likelihood, rows)
    objective.axis = 1
    return objective


def build_objective(likelihood: Likelihood, rows: Batch) -> Supervised:
    """The objective of ``rows``: outcomes checked, unit and floor observed, started at the MLE."""
    likelihood = copy.deepcopy(likelihood).to(rows.weight.dtype)
    likelihood.check(rows.target)
    likelihood.observe(rows.target, rows.weight)
    shift, scale = likelihood.start(rows.target, rows.weight)
    if rows.offset is not None:
        shift = _shift_beside_offset(likelihood, shift, rows)
    return Supervised(likelihood, shift, scale)


def build_network(
    network: str | nn.Module,
    options: dict[str, Any],
    *,
    inputs: InputSpec,
    outputs: int,
    dtype: torch.dtype,
    seed: int,
) -> nn.Module:
    """A network by name, or a copy of the user's own, in ``dtype``."""
    if isinstance(network, nn.Module):
        if next(network.parameters(), None) is None:
            raise UsageError(f"the network {type(network).__name__} has no parameters to train.")
        return copy.deepcopy(network).to(dtype)
    with _single_precision():
        built: nn.Module = networks.create(
            network, inputs=inputs, outputs=outputs, generator=generator(seed, "init"), **options
        )
    return built.to(dtype)


@contextmanager
def _single_precision() -> Iterator[None]:
    """One seed gives one network, whatever torch's default dtype is."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def build_step(
    network: nn.Module,
    objective: Supervised,
    recipe: Recipe,
    *,
    seed: int,
    schedule: optim.Schedule | None = None,
    groups: list[dict[str, Any]] | None = None,
    recompute: bool = False,
) -> Step:
    """The fastest step that trains ``network`` with the settings of the recipe."""
    clip = recipe.clip or None
    if recipe.is_plain and not recompute and AnalyticStep.supports(network, objective):
        return AnalyticStep(
            network,
            objective,
            learning_rate=recipe.learning_rate,
            betas=(0.9, 0.99),
            weight_decay=recipe.weight_decay,
            schedule=schedule,
            clip=clip,
            generator=generator(seed, "dropout"),
        )
    penalty = None if recipe.penalty is None else Penalty.read(recipe.penalty).create()
    optimizer = build_optimizer(network, objective, recipe, groups)
    if getattr(optimizer, "needs_graph", False):
        return NewtonStep(network, objective, optimizer=optimizer, penalty=penalty)
    return GradientStep(
        network,
        objective,
        optimizer,
        schedule=schedule,
        clip=clip,
        penalty=penalty,
        recompute=recompute,
    )


def build_optimizer(
    network: nn.Module,
    objective: Supervised,
    recipe: Recipe,
    groups: list[dict[str, Any]] | None,
) -> torch.optim.Optimizer:
    """The optimizer of a recipe over the weights, those of the objective among them."""
    name, rate, options = recipe.optimizer, recipe.learning_rate, recipe.optimizer_options
    if name == "adamw":
        options = {"betas": (0.9, 0.99), **options}
    elif optim.takes_option(name, "decoupled_weight_decay"):
        options = {"decoupled_weight_decay": True, **options}
    rates = groups or [{"params": list(network.parameters()), "lr": rate}]
    rates = [*rates, {"params": list(objective.parameters()), "lr": rate}]
    if optim.default_settings(name).all_rows and not optim.takes_option(name, "weight_decay"):
        learned = [p for group in rates for p in group["params"] if p.requires_grad or rests(p)]
        return optim.create(name, learned, lr=rate, **options)  # one group for all
    parts = [part for group in rates for part in _by_decay(group, recipe.weight_decay)]
    return optim.create(name, parts, lr=rate, **options)


def _by_decay(group: dict[str, Any], decay: float) -> list[dict[str, Any]]:
    """Decay shrinks matrices; biases, scales and learned shapes are left alone."""
    learned = [p for p in group["params"] if p.requires_grad or rests(p)]
    matrices, others = [p for p in learned if p.ndim >= 2], [p for p in learned if p.ndim < 2]
    parts = ((matrices, decay), (others, 0.0))
    return [{**group, "params": some, "weight_decay": much} for some, much in parts if some]


def typed(rows: Batch, dtype: torch.dtype) -> Batch:
    """The rows in a floating-point type; codes stay whole numbers."""
    found: Batch = map_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t, rows)
    return found


def _normalizes_by_batch(network: nn.Module) -> bool:
    """Tests whether a row alone has nothing to be normalised by."""
    return any(isinstance(part, nn.BatchNorm1d) for part in network.modules())


def _best_steps(
    plan: TrainingPlan, begin: Callable[[Job], Step], learn: Job, encoder: Encoder, folds: Tensor
) -> int:
    rows = plan.structure.batch(learn, encoder, plan.recipe)
    if rows is None:
        raise UsageError(f"{plan.structure.unit[1]} are not held as one batch: folds do not do.")
    with own_randomness(derive(plan.seed, "folds"), torch.device("cpu")):  # dropout draws from it
        return choose_steps(begin, learn, rows, folds, plan.recipe)


def choose_steps(
    begin: Callable[[Job], Step], learn: Job, rows: Batch, folds: Tensor, recipe: Recipe
) -> int:
    """The number of full-batch steps with the least out-of-fold loss.

    Each fold is predicted along the path of a network that is trained on the other folds. A
    network that has seen every row can only be stopped by rows it has not seen; with few rows,
    folds use all of them for that.
    """
    every = max(1, recipe.steps // recipe.evaluations)
    totals = torch.zeros(recipe.steps // every, dtype=torch.float64)
    for fold in folds[folds >= 0].unique():
        inside = (folds != fold).nonzero().squeeze(1)
        step, part = begin(take(learn, inside.numpy())), take_rows(rows, inside)
        outside = take_rows(rows, (folds == fold).nonzero().squeeze(1))
        for place in range(len(totals)):
            for _ in range(every):
                step.step(part)
            totals[place] += step.evaluate(outside).total.double()
    return every * (int(totals.argmin()) + 1)


def _shift_beside_offset(likelihood: Likelihood, shift: Tensor, rows: Batch) -> Tensor:
    """The constant model's raw numbers when part of the linear predictor is given.

    The first raw number of each outcome is moved by a few Newton steps on the mean loss;
    likelihoods whose predictor is an identity or a logarithm need one or two.
    """
    assert rows.offset is not None
    move = torch.zeros(shift.shape[:-1], dtype=torch.float64, requires_grad=True)
    offset = rows.offset.double().reshape(-1, *([1] * (shift.ndim - 1)))
    weight = rows.weight.double()
    base = copy.deepcopy(likelihood).double()
    target = rows.target.double() if rows.target.is_floating_point() else rows.target
    for _ in range(25):
        first = shift[..., 0].double() + move + offset
        raw = torch.cat([first.unsqueeze(-1), shift[..., 1:].double().expand(*first.shape, -1)], -1)
        terms = base.loss(raw, target)
        loss = (terms * weight.reshape(-1, *([1] * (terms.ndim - 1)))).sum()
        (gradient,) = torch.autograd.grad(loss, move, create_graph=True)
        (curvature,) = torch.autograd.grad(gradient.sum(), move)
        update = (gradient / curvature.clamp(min=1e-12)).detach().clamp(-2, 2)
        move = (move - update).detach().requires_grad_()
        if update.abs().max() < 1e-10:
            break
    moved = shift[..., :1] + move.detach().to(shift.dtype).unsqueeze(-1)
    return torch.cat([moved, shift[..., 1:]], -1)


def begin_with_rows(network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> None:
    """Shows the training rows, and the slopes of their losses, to a network that asks for them."""
    begin: Any = getattr(network, "begin", None)
    if begin is None:
        return
    dtype = next(network.parameters()).dtype
    slopes = _slopes(objective, job).to(dtype)
    inputs = encoder.inputs(job.rows, notes=[])
    begin(*(t.to(dtype) if t.is_floating_point() else t for t in inputs), slopes=slopes)


def _slopes(objective: Supervised, job: Job) -> Tensor:
    """The slope of each row's loss in the network's outputs at the constant model, ``(N, P)``."""
    assert objective.shift is not None
    dtype = objective.shift.dtype
    zero = torch.zeros(len(job.y), objective.shift.numel(), dtype=dtype, requires_grad=True)
    offset = None if job.offset is None else job.offset.to(dtype)
    y = job.y.to(dtype) if job.y.is_floating_point() else job.y
    raw = objective.attach(zero, offset)
    loss = objective.likelihood.joint_loss(raw, y, job.weight.to(dtype)).sum()
    (slopes,) = torch.autograd.grad(loss, zero)
    return slopes
