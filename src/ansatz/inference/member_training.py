"""The members of an ensemble in training: together where that is fast, else one by one."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.source import MemberSource
from ansatz.fitting.recipe import Recipe
from ansatz.inference.member_step import MemberStep
from ansatz.inference.members import MemberObjective, Members
from ansatz.networks import MLP
from ansatz.seeds import derive
from ansatz.training import History, Supervised, Trainer


class MemberRows(NamedTuple):
    """The rows that a member trains on and stops by."""

    train: Tensor
    valid: Tensor
    dropout: float = 0.0


def train_together(
    rows: Batch,
    members: Sequence[MemberRows],
    networks: Sequence[MLP],
    objective: Supervised,
    recipe: Recipe,
    *,
    seed: int,
    trainer_options: dict[str, Any],
) -> tuple[list[tuple[nn.Module, Supervised]], History]:
    """Trains plain networks side by side; each keeps the weights that its own rows like best."""
    step = MemberStep(
        Members(networks),
        MemberObjective(objective, len(networks)),
        dropout=[member.dropout for member in members],
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        schedule=recipe.make_schedule(),
        clip=recipe.clip or None,
        drop_finished=recipe.average is None,  # an average of weights is taken after every step
        seed=seed,
    )
    learn = MemberSource(
        rows, [m.train for m in members], recipe.batch_size, seed=derive(seed, "rows")
    )
    held_out = all(len(member.valid) for member in members)
    trainer = Trainer(
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if held_out else None,
        patience=recipe.patience if held_out else None,
        min_improvement=recipe.min_improvement if held_out else 0.0,
        average=recipe.average,
        seed=seed,
        **trainer_options,
    )
    stop = MemberSource(rows, [m.valid for m in members], 0) if held_out else None
    history = trainer.fit(step, learn, stop)
    step.restore_best()
    return [_unstack(step, k, networks[k], objective) for k in range(len(networks))], history


def _unstack(
    step: MemberStep, number: int, like: MLP, objective: Supervised
) -> tuple[nn.Module, Supervised]:
    own = copy.deepcopy(objective)
    learned = step.losses.of_member(number)
    parameters = dict(own.likelihood.named_parameters())
    with torch.no_grad():
        for name, value in learned.items():
            parameters[name].copy_(value)
    return step.members.member(number, like), own


def member_folder(options: dict[str, Any], number: int) -> dict[str, Any]:
    """The trainer's options with a checkpoint folder of the member's own."""
    if options.get("checkpoint") is None:
        return options
    return {**options, "checkpoint": Path(options["checkpoint"]) / f"member-{number}"}
