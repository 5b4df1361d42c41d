"""Trains the networks of a generator on encoded examples, by the trainer of every fit."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ansatz import optim
from ansatz.data import Batch, TensorSource
from ansatz.data.batch import take_rows
from ansatz.generative.contract import Examples
from ansatz.seeds import derive
from ansatz.training import GradientStep, History, Step, Trainer

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan

EVALUATED = 2_000  # held-out rows that stop a training
_FIRST, _SECOND, _THIRD = (
    -7046029254386353131,
    -4658895280553007687,
    -7723592293110705685,
)  # splitmix64


def train(
    network: nn.Module,
    objective: nn.Module,
    examples: Examples | Batch,
    held_out: Examples | Batch | None,
    plan: "TrainingPlan",
    *,
    step: Step | None = None,
) -> History:
    """Trains ``network`` in place with the recipe of the plan; resumes where it left off.

    Batches are ``Batch(inputs=(codes,), ...)``, or ``(codes, condition)`` where columns are given.

    Args:
        network: the weights that are trained, saved and averaged.
        objective: ``objective(network, batch) -> Loss``, its own parameters trained as well.
        examples: that train, or a batch of all of them that was made of them.
        held_out: that stop the training; at most 2,000 of them are evaluated.
        plan: recipe, seed, options of the trainer.
        step: in place of a gradient step by the recipe's optimizer.
    """
    recipe = plan.recipe
    if step is None:
        step = gradient_step(network, objective, plan)
    rows = batch_of(examples)
    size = recipe.batch_size or len(rows.index)
    source = TensorSource(rows, size, smallest=2, seed=derive(plan.seed, "rows"), shuffle=True)
    stop = None
    if held_out is not None:
        few = take_rows(batch_of(held_out), slice(0, EVALUATED))
        stop = TensorSource(few, max(size, 512), shuffle=False) if len(few.index) else None
    trainer = Trainer(
        callbacks=tuple(plan.options.get("callbacks") or ()),
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if stop else None,
        patience=recipe.patience if stop else None,
        min_improvement=recipe.min_improvement if stop else 0.0,
        average=recipe.average,
        seed=plan.seed,
        **plan.trainer_options,
    )
    return trainer.fit(step, source, stop)


def gradient_step(network: nn.Module, objective: nn.Module, plan: "TrainingPlan") -> GradientStep:
    """The step of a recipe: its optimizer, schedule and clipping."""
    recipe = plan.recipe
    groups = [*network.parameters(), *objective.parameters()]
    options = dict(recipe.optimizer_options)
    optimizer = optim.create(
        recipe.optimizer, groups, lr=recipe.learning_rate, weight_decay=0.0, **options
    )
    return GradientStep(
        network, objective, optimizer, schedule=recipe.make_schedule(), clip=recipe.clip or None
    )


def batch_of(examples: Examples | Batch) -> Batch:
    """All examples as one batch of codes."""
    if isinstance(examples, Batch):
        return examples
    condition = examples.condition
    inputs: tuple[Any, ...] = (examples.codes,)
    if condition is not None:
        inputs = (examples.codes, condition.float())
    weight = examples.weight.float()
    target = torch.zeros(len(weight))
    return Batch(inputs, target, weight, None, torch.arange(len(weight)))


def row_noise(index: Tensor, size: int, seed: int) -> Tensor:
    """Standard normal numbers ``(B, size)`` that are a function of (seed, row) alone.

    Validation losses with this noise differ by the weights, not by the draws.
    """
    found: Tensor = torch.special.ndtri(row_uniform(index, size, seed)).float()
    return found


def row_uniform(index: Tensor, size: int, seed: int) -> Tensor:
    """Numbers in (0, 1), ``(B, size)``, that are a function of (seed, row) alone."""
    place = index.long().unsqueeze(1) * size + torch.arange(size)
    state = (place + derive(seed, "noise") % 2**40) * _FIRST
    state = (state ^ _shifted(state, 30)) * _SECOND
    state = (state ^ _shifted(state, 27)) * _THIRD
    state = state ^ _shifted(state, 31)
    found: Tensor = (_shifted(state, 11).double() + 0.5) / 2**53
    return found


def _shifted(state: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros, of signed 64-bit numbers."""
    found: Tensor = (state >> places) & ((1 << (64 - places)) - 1)
    return found
