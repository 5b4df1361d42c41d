"""The options of a recipe that the user set, and the recipe with them in their place."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ansatz import optim
from ansatz.data.augmentation.registry import Parts, to_records
from ansatz.errors import UsageError
from ansatz.fitting.recipe import Recipe, needs_double
from ansatz.training.penalties import Penalty

HOLDOUT = 0.2  # of few rows, where options ask for rows that are held out
Augment = bool | Parts | Sequence[Parts]  # yes, no, or how


class RecipeOptions(NamedTuple):
    """The options of a recipe that the user set; None leaves the default in its place."""

    widths: Sequence[int] | None = None
    activation: str | None = None
    dropout: float | None = None
    epochs: float | None = None
    steps: int | None = None
    batch_size: int | None = None
    optimizer: str | None = None
    optimizer_options: Mapping[str, Any] | None = None
    learning_rate: float | None = None
    schedule: str | None = None
    schedule_options: Mapping[str, Any] | None = None
    weight_decay: float | None = None
    penalty: str | None = None
    clip: float | None = None
    average: str | None = None
    holdout: float | None = None
    folds: int | None = None
    evaluations: int | None = None
    patience: int | None = None
    min_improvement: float | None = None
    dtype: str | None = None
    bins: int | None = None
    augment: Augment | None = None
    symmetry: str | None = None

    def change(self, recipe: Recipe, y: Tensor) -> Recipe:
        """The recipe with what the user set in its place.

        Args:
            recipe: the default.
            y: ``(N, ...)``, whose values may need float64.
        """
        changes = {name: value for name, value in self._asdict().items() if value is not None}
        changes.pop("epochs", None)
        if self.widths is not None:
            changes["widths"] = _whole_numbers("widths", self.widths)
        if self.penalty is not None:
            changes["penalty"] = str(Penalty.read(self.penalty))
        if self.augment is not None:
            changes["augment"] = plain_augment(self.augment)
        for name in ("symmetry", "average"):
            if changes.get(name) == "none":
                changes[name] = None
        if self.symmetry is None and self.augment not in (None, True):
            changes["symmetry"] = None  # perhaps not trained on rotated examples
        if self.dtype is None and needs_double(y):
            changes["dtype"] = "float64"
        begins = self._of_optimizer(recipe)
        changes = {**begins, **changes}
        if self.optimizer_options is not None:
            changes["optimizer_options"] = {
                **begins.get("optimizer_options", {}),
                **self.optimizer_options,
            }
        if self._evaluates(changes) and not recipe.holdout and recipe.members == 1:
            changes = {"holdout": HOLDOUT, "folds": 0, **changes}
        if self.folds and changes.get("batch_size", recipe.batch_size):
            raise UsageError("folds count steps that see all rows: they go with batch_size=0.")
        if changes.get("batch_size"):
            changes["folds"] = 0
        if self.epochs is not None:
            changes["steps"] = self._steps(recipe, changes, len(y))
        changed = Recipe.model_validate({**recipe.model_dump(), **changes})
        changed.make_schedule()  # an unknown name or option is refused before any work
        return changed

    def _evaluates(self, changes: Mapping[str, Any]) -> bool:
        """Tests whether something asks for evaluations of held-out rows."""
        schedule = changes.get("schedule")
        listens = schedule is not None and hasattr(optim.schedules.get(schedule), "observe")
        return self.patience is not None or self.min_improvement is not None or listens

    def _of_optimizer(self, recipe: Recipe) -> dict[str, Any]:
        """What another optimiser than that of the recipe begins with."""
        name = self.optimizer
        if name is None or name == recipe.optimizer:
            return {}
        begins = optim.default_settings(name)
        if self.weight_decay and not optim.takes_option(name, "weight_decay"):
            raise UsageError(f"{name} has no weight_decay: take penalty='l2={self.weight_decay}'.")
        found: dict[str, Any] = {"weight_decay": 0.0, "optimizer_options": dict(begins.options)}
        if begins.learning_rate is not None:
            found["learning_rate"] = begins.learning_rate
        if begins.all_rows:
            found |= {"batch_size": 0, "dropout": 0.0, "average": None, "schedule": "constant"}
        if begins.steps is not None:
            found["steps"] = min(recipe.steps, begins.steps)
        return found

    def _steps(self, recipe: Recipe, changes: Mapping[str, Any], count: int) -> int:
        """The budget of a number of passes over the rows."""
        if self.steps is not None:
            raise UsageError("epochs and steps are two budgets of one training: give one of them.")
        if not isinstance(self.epochs, int | float | np.number) or not 1 <= self.epochs <= 1e12:
            raise UsageError(f"epochs must be a number from 1, got {self.epochs!r}.")
        size = changes.get("batch_size", recipe.batch_size)
        rows = round(count * (1 - changes.get("holdout", recipe.holdout)))
        return max(1, round(self.epochs * (math.ceil(rows / size) if size else 1)))


def plain_augment(given: Augment | None) -> bool | list[dict[str, Any]] | None:
    """The option ``augment`` as JSON can hold it: a Boolean, or records of augmentations."""
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
