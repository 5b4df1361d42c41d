"""What follows from the settings of an estimator: its law, its recipe, the plan of its fit."""

import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import ValidationError
from sklearn.utils import check_random_state
from torch import nn

from ansatz import likelihoods, networks, structures
from ansatz.errors import UsageError
from ansatz.estimators.grid_recipe import choose_grid_recipe, default_options
from ansatz.estimators.job import Job, has_masks
from ansatz.estimators.pieces import choose_pieces
from ansatz.estimators.plan import Plan
from ansatz.estimators.recipe import (
    FEW,
    SMALL,
    Recipe,
    choose_ensemble_recipe,
    choose_recipe,
    one_line,
)
from ansatz.estimators.recipe_options import RecipeOptions, require_members
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec, TargetSpec
from ansatz.training import choose_device

INFERENCES = ("point", "ensemble")
GRID_MEMBERS = 5  # networks on grids are dear
OF_GRIDS = ("augment", "pretrained", "freeze")  # options that would do nothing to tables
OF_TABLES = ("bins", "quantile")  # and those that would do nothing to grids
OF_MLP = ("widths", "activation", "dropout")  # options of an mlp; other networks have their own


class Settings:
    """The arguments of an estimator, read: they are checked when a fit needs them, not before.

    Example:
        >>> from ansatz import Regressor
        >>> settings = Regressor("poisson", random_state=7)
        >>> settings._law_name(), settings._seed()
        ('poisson', 7)
    """

    likelihood: str | Likelihood
    likelihood_options: Mapping[str, Any] | None
    network: str | nn.Module
    network_options: Mapping[str, Any] | None
    inference: str
    members: int | None
    quantile: bool | Sequence[str]
    pretrained: str | Path | None
    freeze: str | int | Sequence[int] | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    device: str
    time_limit: float | None
    verbose: int
    symmetry: str | None = None  # of masks alone
    labels_cells: ClassVar[bool] = False  # whether an outcome is a class for every cell of x

    # The law.

    def _law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        """The likelihood of such outcomes.

        Few rows cannot tell a spread that varies with x from one that does not: below 500, for an
        ensemble below 100, a law given by name has a constant dispersion, and so has a linear
        model, as in glm.
        """
        if isinstance(self.likelihood, Likelihood):
            if self.likelihood_options:
                raise UsageError("likelihood_options go with a likelihood by name, not a made one.")
            return self.likelihood
        given = self.likelihood_options or {}
        if not isinstance(given, Mapping):
            raise UsageError(f"likelihood_options must map names to values, got {given!r}.")
        options = dict(given)
        kind = likelihoods.registry.get(self.likelihood)
        few = rows < self._too_few() or self.network == "linear"
        if few and "dispersion" in inspect.signature(kind).parameters:
            options = {"dispersion": "constant", **options}
        law: Likelihood = likelihoods.create(self.likelihood, **options)
        return law

    def _too_few(self) -> float:
        """Rows below which a predicted spread costs more than it tells; members average theirs."""
        return SMALL if self.inference == "ensemble" else FEW

    def _law_name(self) -> str:
        return self.likelihood if isinstance(self.likelihood, str) else self.likelihood.name

    def _event_axes(self) -> int:
        """How many axes of y make up one outcome."""
        given = self.likelihood
        kind = likelihoods.registry.get(given) if isinstance(given, str) else given
        found: int = kind.event_ndim
        return found

    def _law_of(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        """A copy of the law that knows the number of classes, which some rows may not show."""
        law = copy.deepcopy(self._law(target, rows))
        law.outputs(target)
        return law

    # The recipe.

    def _recipe(self, job: Job, recipe: Recipe | None = None) -> Recipe:
        """The default recipe with what the user set in its place."""
        if recipe is None:
            total = float(job.weight.sum())
            recipe = self._default_recipe(total, job.target, job.grid)
            if recipe.bins:
                pieces = choose_pieces(job, recipe.bins, self._network_for(), self.network_options)
                recipe = recipe.model_copy(update={"bins": pieces})
            own = job.part is not None and "validation" in job.part
            if own and job.valid is not None and recipe.members == 1:
                # The data's own stop the fit: passes are over the others.
                recipe = recipe.model_copy(update={"holdout": len(job.valid) / len(job.y)})
        given = {name: getattr(self, name) for name in RecipeOptions._fields}
        try:
            return RecipeOptions(**given).change(recipe, job.y)
        except ValidationError as error:
            raise UsageError(f"{type(self).__name__}: {one_line(error)}") from None

    def _default_recipe(
        self, rows: float, target: TargetSpec, grid: InputSpec | None = None
    ) -> Recipe:
        if grid is not None:
            masks = self.labels_cells
            coupled = not masks and not self._law(target, rows).additive
            recipe = choose_grid_recipe(rows, grid, masks=masks, coupled=coupled)
            if self.inference != "ensemble":
                return recipe
            require_members(self.members)
            # Folds stop the members; what the user holds out in their place is shared by all.
            # Members are several answers already.
            change = {"members": self.members or GRID_MEMBERS, "holdout": 0.0, "symmetry": None}
            return recipe.model_copy(update=change)
        coupled = not self._law(target, rows).additive
        classes = target.classes > 0
        if self.inference == "ensemble":
            require_members(self.members)
            return choose_ensemble_recipe(
                rows, classes=classes, coupled=coupled, members=self.members
            )
        return choose_recipe(rows, classes=classes, coupled=coupled)

    # The plan of a fit.

    def _plan(
        self,
        recipe: Recipe,
        seed: int,
        options: dict[str, Any] | None = None,
        *,
        grid: InputSpec | None = None,
        masks: bool = False,
    ) -> Plan:
        """How a network is fitted; the options of its factory follow from the recipe."""
        network = self._network_for(grid, masks=masks)
        if grid is None:
            self._refuse_of_grids()
        else:
            self._refuse_of_tables(network)
        return Plan(
            network,
            self._options(network, recipe, grid) if options is None else options,
            recipe,
            seed,
            self._trainer_options(),
            self.quantile,
            self.pretrained,
            self.freeze,
        )

    def _refuse_of_grids(self) -> None:
        """Options that would do nothing to tables."""
        for name in OF_GRIDS:
            if getattr(self, name) is not None:
                raise UsageError(f"{name} is an option of networks on images; X is a table.")

    def _refuse_of_tables(self, network: str | nn.Module) -> None:
        """Options that would do nothing to grids."""
        for name in OF_TABLES if network == "mlp" else (*OF_TABLES, *OF_MLP):
            if getattr(self, name) not in (None, False):
                raise UsageError(
                    f"{name} is an option of tables; options of a network on grids go into "
                    "network_options (--set NAME=VALUE)."
                )

    def _network_for(
        self, grid: InputSpec | None = None, *, masks: bool = False
    ) -> str | nn.Module:
        """The network asked for, or the default of what x looks like."""
        if not isinstance(self.network, str | nn.Module):
            raise UsageError(
                "network is a name (ansatz list networks) or a torch.nn.Module, got a "
                f"{type(self.network).__name__}."
            )
        if self.network not in ("auto", "linear"):
            return self.network
        if grid is None:
            return structures.Vector.network if self.network == "auto" else "linear"
        structure = structures.Grid(masks=masks)
        return structure.network if self.network == "auto" else structure.linear_network

    def _options(
        self, network: str | nn.Module, recipe: Recipe, grid: InputSpec | None
    ) -> dict[str, Any]:
        """The options of the network's factory; explicit ones win over the recipe."""
        options: dict[str, Any] = {}
        if network == "mlp":
            options = {
                "widths": list(recipe.widths),
                "activation": recipe.activation,
                "dropout": recipe.dropout,
            }
        else:
            options = dict(default_options(network, grid))
        given = self.network_options or {}
        if not isinstance(given, Mapping):
            raise UsageError(f"network_options must map names to values, got {given!r}.")
        return {**options, **given}

    def _trainer_options(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "time_limit": self.time_limit,
            "progress": self.verbose,
            "threads": self.n_jobs or "auto",
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError:
            raise UsageError(
                f"random_state must be a whole number, a RandomState or None, "
                f"got {self.random_state!r}."
            ) from None

    def _rehearse(self, job: Job) -> None:
        """Raises what a fit would raise about the estimator's own options."""
        self._require_inference()
        choose_device(self.device)
        self._seed()
        recipe = self._recipe(job)
        network = self._network_for(job.grid, masks=has_masks(job))
        if isinstance(network, str) and network != "linear":
            inputs = job.grid or InputSpec.of(1)
            options = self._options(network, recipe, job.grid)
            networks.create(network, inputs=inputs, outputs=1, **options)

    def _require_inference(self) -> None:
        if self.inference not in INFERENCES:
            known = ", ".join(INFERENCES)
            raise UsageError(f"unknown inference {self.inference!r}. Known: {known}.")
