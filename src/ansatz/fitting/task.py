"""What is to be fitted: one choice on each axis, with its settings."""

import copy
import math
from typing import Any, NamedTuple

from pydantic import ValidationError
from torch import nn

from ansatz import inference, networks, structures
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Inference
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.options.tables import refuse_foreign
from ansatz.fitting.plan import Plan
from ansatz.fitting.recipe import Recipe, one_line
from ansatz.fitting.recipe_options import RecipeOptions
from ansatz.fitting.settings import Settings
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec, TargetSpec
from ansatz.training import choose_device


class Task(NamedTuple):
    """A structure, an outcome and an inference; the outcome knows what it has read."""

    structure: Structure
    outcome: Outcome
    inference: Inference
    settings: Settings

    @classmethod
    def of(cls, structure: str, outcome: Outcome, settings: Settings) -> "Task":
        """The task of a structure and an inference by name."""
        return cls(
            structures.create(structure), outcome, inference.create(settings.inference), settings
        )

    def change(self, **settings: Any) -> "Task":
        """The same task with other settings."""
        return self._replace(settings=self.settings.change(**settings))

    # The law.

    def law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        """The likelihood of such outcomes, which knows the number of classes.

        Few rows cannot distinguish a dispersion that varies with x from one that does not: below a
        number that the inference tells, a law given by name has a constant dispersion, and so has
        a linear model, as in glm.
        """
        few = rows < self.inference.few or self.settings.is_linear
        law = copy.deepcopy(self.outcome.law(self.settings, target, few=few))
        law.outputs(target)
        return law

    # The network and its recipe.

    def network(self, target: TargetSpec) -> str | nn.Module:
        """The network asked for, or the default of the structure."""
        if self.settings.network == "auto":
            return self.structure.network(target.axis)
        if self.settings.is_linear:
            return self.structure.linear_network(target.axis)
        return self.settings.network

    def is_solved(self, job: Job) -> bool:
        """Whether the model is the structure's exact linear model: asked for, or without x."""
        if not job.rows.has_features:
            return True
        return self.settings.is_linear and self.structure.solves

    def facts(self, job: Job, rows: float | None = None) -> Facts:
        """What the default recipe depends on."""
        total = job.mass if rows is None else rows
        law = self.law(job.target, total)
        return Facts(total, job.rows.spec, job.target, not law.additive, self.inference.averages)

    def default_recipe(self, facts: Facts) -> Recipe:
        """The recipe when nothing was set."""
        base = self.structure.recipe(facts)
        return self.inference.recipe(base, facts, self.settings.options)

    def recipe(self, job: Job, base: Recipe | None = None) -> Recipe:
        """The default recipe with what was set in its place."""
        settings = self.settings
        if base is None:
            base = self.default_recipe(self.facts(job))
            network = self.network(job.target)
            base = self.structure.settle(base, job, network, settings.network_options)
            own = job.part is not None and "validation" in job.part
            if own and job.valid is not None and base.members == 1:
                # The data's own stop the fit: passes are over the others.
                base = base.model_copy(update={"holdout": len(job.valid) / len(job.y)})
        given = {name: settings.options.get(name) for name in RecipeOptions._fields}
        try:
            changed = RecipeOptions(**given).change(base, job.y)
        except ValidationError as error:
            raise UsageError(one_line(error)) from None
        return self.structure.limit(changed, job, settings.options)

    def plan(self, recipe: Recipe, job: Job, network_options: dict[str, Any] | None = None) -> Plan:
        """How a network is fitted; the options of its factory follow from the recipe."""
        network = self.network(job.target)
        self.refuse(network)
        own = network_options
        if own is None:
            own = self.structure.network_options(network, recipe, job.rows.spec)
            own = {**own, **self.settings.network_options}
        return Plan(
            self.structure,
            network,
            own,
            recipe,
            self.settings.seed,
            self.settings.options,
            self.settings.trainer_options,
        )

    def refuse(self, network: str | nn.Module) -> None:
        """Refuses options that would do nothing to such rows, or to such a network."""
        options = self.settings.options.items()
        given = [name for name, value in options if value is not None and value is not False]
        refuse_foreign(given, self.structure.name, settings=True)
        odd = [name for name in given if name in self.structure.leaves_to(network)]
        if odd:
            raise UsageError(
                f"'{odd[0]}' is an option of mlp; those of another network go into "
                "network_options (--set NAME=VALUE)."
            )

    def rehearse(self, job: Job) -> None:
        """Raises what a fit would raise about its settings, before any work is done."""
        choose_device(self.settings.device)
        recipe = self.recipe(job)
        plan = self.plan(recipe, job)
        if isinstance(plan.network, str) and not self.is_solved(job):
            inputs = job.rows.spec or InputSpec.of(1)
            networks.create(plan.network, inputs=inputs, outputs=1, **plan.network_options)
