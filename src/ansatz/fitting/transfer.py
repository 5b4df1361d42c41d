"""Weights that a network begins with, and what of it stays as it began."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import nn

from ansatz.fitting.task import TrainingPlan
from ansatz.networks import discriminative_groups, freeze, load_weights
from ansatz.networks.transfer import freeze_but_adapters
from ansatz.training import Callback, Unfreezing


class Transfer(NamedTuple):
    """The groups, callbacks and notes of a network that begins with given weights."""

    groups: list[dict[str, Any]] | None = None
    callbacks: tuple[Callback, ...] = ()
    notes: tuple[str, ...] = ()
    last_map: bool = False  # is trained alone, on states that are computed once


def begin_transfer(network: nn.Module, plan: TrainingPlan, file: Any, frozen_part: Any) -> Transfer:
    """Loads weights from a file and freezes layers of a fresh network, in place."""
    notes: list[str] = []
    begin = plan.structure.beginning(plan.options)
    if file is not None:
        loaded: object = (
            load_weights(network, file, channels="repeat") if begin is None else begin.load(network)
        )
        notes.append(f"{loaded}.")
    callbacks: tuple[Callback, ...] = ()
    if isinstance(frozen_part, Sequence) and not isinstance(frozen_part, str):
        callbacks = (Unfreezing(network, list(frozen_part)),)
        notes.append(
            f"layers wake group by group at the epochs {', '.join(map(str, frozen_part))}."
        )
    elif frozen_part is not None:
        frozen = freeze(network, frozen_part)
        if frozen and file is None and isinstance(plan.network, str):
            warnings.warn(
                f"{frozen} groups of layers stay at random weights: freeze= without pretrained= "
                "(--freeze without --pretrained).",
                stacklevel=2,
            )
        notes.append(f"groups of layers that stay as they began: {frozen}.")
    adapters = freeze_but_adapters(network)
    if adapters:
        notes.append(f"low-rank changes of {adapters} maps and the last maps are trained.")
    factor = 2.6 if begin is None else 1.0 if adapters else begin.rate_factor
    groups = discriminative_groups(network, plan.recipe.learning_rate, factor=factor)
    return Transfer(groups, callbacks, tuple(notes), begin is not None and begin.last_map)
