"""The options of an estimator that change its recipe."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ansatz.data.augmentation.records import Parts, to_records
from ansatz.errors import UsageError
from ansatz.fitting.precision import needs_double
from ansatz.fitting.recipe import Recipe

Augment = bool | Parts | Sequence[Parts]  # yes, no, or how


class RecipeOptions(NamedTuple):
    """What the user set of a recipe; None leaves the default in its place.

    Args:
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        epochs: passes over the rows, in place of the budget of steps.
        batch_size: rows per step; 0 takes all rows at once.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the rows that decide when to stop.
        bins: pieces into which the range of each number is cut.
        augment: whether grids vary while they are learned from, or how: augmentations.
        symmetry: the group that predicted masks are averaged over, ``"none"`` for none.
    """

    widths: Sequence[int] | None = None
    activation: str | None = None
    dropout: float | None = None
    epochs: float | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    holdout: float | None = None
    bins: int | None = None
    augment: Augment | None = None
    symmetry: str | None = None

    def change(self, recipe: Recipe, y: Tensor) -> Recipe:
        """The recipe with what the user set in its place.

        Args:
            recipe: the default.
            y: ``(N, ...)``, whose values may need float64.
        """
        given: dict[str, Any] = {
            "widths": None if self.widths is None else _whole_numbers("widths", self.widths),
            "activation": self.activation,
            "dropout": self.dropout,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "holdout": self.holdout,
            "bins": self.bins,
            "augment": plain_augment(self.augment),
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if self.symmetry is not None:
            changes["symmetry"] = None if self.symmetry == "none" else self.symmetry
        elif self.augment not in (None, True):  # not learned from turned examples, perhaps
            changes["symmetry"] = None
        if needs_double(y):
            changes["dtype"] = "float64"
        if changes.get("batch_size"):
            changes["folds"] = 0  # folds count steps that see all rows
        if self.epochs is not None:
            if not isinstance(self.epochs, int | float | np.number) or not self.epochs >= 1:
                raise UsageError(f"epochs must be a number from 1, got {self.epochs!r}.")
            size = changes.get("batch_size", recipe.batch_size)
            share = 1 - changes.get("holdout", recipe.holdout)
            rows = round(len(y) * share)
            changes["steps"] = max(1, round(self.epochs * (math.ceil(rows / size) if size else 1)))
        return Recipe.model_validate({**recipe.model_dump(), **changes})


def plain_augment(given: Augment | None) -> bool | list[dict[str, Any]] | None:
    """The option ``augment`` as JSON can hold it: what it says, or records of augmentations."""
    return given if given is None or isinstance(given, bool) else to_records(given)


def require_members(members: Any) -> None:
    """Refuses a number of members that folds cannot be divided among; None is the default.

    got 11.
    """
    if members is None:
        return
    whole = isinstance(members, int | np.integer) and not isinstance(members, bool)
    if not whole or members < 2 or (members > 10 and members % 10):
        raise UsageError(
            f"members must be a whole number from 2 to 10 or a multiple of 10, got {members!r}."
        )


def _whole_numbers(option: str, given: Any) -> tuple[int, ...]:
    try:
        if not isinstance(given, str):
            return tuple(int(number) for number in given)
    except (TypeError, ValueError):
        pass
    raise UsageError(f"{option} must be a list of whole numbers like [64, 64], got {given!r}.")
