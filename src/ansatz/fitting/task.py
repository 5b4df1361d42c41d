"""The task of a fit: one choice on each axis, with its settings."""

import copy
import difflib
import inspect
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError
from torch import nn

from ansatz import inference, likelihoods, networks, outcomes, structures
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Inference
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.contracts.structure import Beginning, Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.options import declared
from ansatz.fitting.options.commands import InferenceSettings
from ansatz.fitting.recipe import Recipe, one_line
from ansatz.fitting.recipe_options import RecipeOptions
from ansatz.fitting.request import (
    Request,
    fit_settings,
    refuse_foreign,
    settings_of,
    settings_with,
)
from ansatz.fitting.unknown_settings import refuse_unknown
from ansatz.inference.registry import AUTO, DEFAULT, choose
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.registry import current_dispersion
from ansatz.spec import InputSpec, TargetSpec
from ansatz.training import Penalty, choose_device

if TYPE_CHECKING:
    from ansatz.fitting.problem import Problem


class TrainingPlan(NamedTuple):
    """The plan of a network and its training.

    Args:
        structure: what x looks like.
        network: by name, or a module.
        network_options: of the network's factory.
        recipe: of the training.
        seed: of everything random.
        options: other options of the fit, by name; each belongs to who asks for it.
        trainer_options: of :class:`~ansatz.training.Trainer`.
        labels: of classes, in the order of their codes.
    """

    structure: Structure
    network: str | nn.Module
    network_options: dict[str, Any]
    recipe: Recipe
    seed: int
    options: Mapping[str, Any] = {}  # never changed
    trainer_options: Mapping[str, Any] = {}  # never changed
    labels: tuple[str, ...] = ()  # of classes

    @property
    def network_name(self) -> str:
        """The name in the registry, or the class of a network of the user's own."""
        return str(self.network) if isinstance(self.network, str) else type(self.network).__name__

    @property
    def saved_options(self) -> dict[str, Any] | None:
        """The options that make the network anew; None for one of the user's own."""
        return self.network_options if isinstance(self.network, str) else None


_FIELDS = {  # arguments of an estimator that are fields of their own
    *("likelihood", "likelihood_options", "network", "network_options"),
    *("inference", "inference_options"),
    *("random_state", "n_jobs", "device", "time_limit", "verbose"),
}
_OWN_ARGUMENTS = {"members", "priors", "random"}  # of inferences, which estimators have
ARGUMENTS = _FIELDS | {"x"}  # of estimators that no owner of options declares


def _counts(value: Any) -> bool:
    """Whether a value is a whole number of 1 or more."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _of_inference(given: Any) -> dict[str, Any]:
    """Options of the inference from their mapping; unknown ones are refused."""
    if not isinstance(given or {}, Mapping):
        raise UsageError(f"inference_options must map names to values, got {given!r}.")
    known = settings_of("inference") - _OWN_ARGUMENTS
    odd = [name for name in given or {} if name not in known]
    if odd:
        near = difflib.get_close_matches(str(odd[0]), known, n=1)
        hint = f"Did you mean '{near[0]}'? " if near else ""
        listed = ", ".join(sorted(known))
        raise UsageError(f"'{odd[0]}' is not an option of an inference. {hint}Known: {listed}.")
    return dict(given or {})


_REGISTRIES = {
    "likelihood": likelihoods.registry,
    "network": networks.registry,
    "inference": inference.registry,
}


@dataclass(frozen=True)
class Settings:
    """The answers and options of one fit; they are checked when a fit needs them, not before.

    Args:
        likelihood: by name, or made.
        network: by name, a module, or ``"auto"`` for the structure's default.
        inference: by name.
        likelihood_options: of a likelihood given by name.
        network_options: of the network's factory.
        options: everything else, by name: of the training, the structure, the outcome or the
            inference; each is read by whom it belongs to.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds of training.
        threads: None chooses by the network's size.
        progress: 0 silent, 1 a progress bar, 2 one line per evaluation, or ``"auto"``.
    """

    likelihood: str | Likelihood = "normal"
    network: str | nn.Module = "auto"
    inference: str = DEFAULT
    likelihood_options: Mapping[str, Any] = field(default_factory=dict)
    network_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    time_limit: float | None = None
    threads: int | None = None
    progress: int | str = 0

    def __post_init__(self) -> None:
        for name, registry in _REGISTRIES.items():  # in any spelling
            object.__setattr__(self, name, registry.canonical(getattr(self, name)))
        for name in ("likelihood_options", "network_options"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise UsageError(f"{name} must map names to values, got {given!r}.")
        if not isinstance(self.network, str | nn.Module):
            raise UsageError(
                "network is a name (ansatz list networks) or a torch.nn.Module, got a "
                f"{type(self.network).__name__}."
            )
        if isinstance(self.likelihood, Likelihood) and self.likelihood_options:
            raise UsageError("likelihood_options go with a likelihood by name, not a made one.")

    @classmethod
    def of_arguments(cls, given: Mapping[str, Any]) -> "Settings":
        """Settings from the arguments of an estimator, by their names there."""
        return cls(
            given["likelihood"],
            given["network"],
            given["inference"],
            given.get("likelihood_options") or {},
            given.get("network_options") or {},
            {
                **{name: value for name, value in given.items() if name not in _FIELDS},
                **_of_inference(given.get("inference_options")),
            },
            given["random_state"],
            given["device"],
            given["time_limit"],
            given["n_jobs"],
            given["verbose"],
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings as arguments of an estimator."""
        apart = settings_of("inference") - _OWN_ARGUMENTS
        mine = {name: value for name, value in self.options.items() if name in apart}
        return {
            **{name: value for name, value in self.options.items() if name not in apart},
            "inference_options": mine or None,
            "likelihood": self.likelihood,
            "likelihood_options": dict(self.likelihood_options) or None,
            "network": self.network,
            "network_options": dict(self.network_options) or None,
            "inference": self.inference,
            "random_state": self.seed,
            "device": self.device,
            "time_limit": self.time_limit,
            "n_jobs": self.threads,
            "verbose": self.progress,
        }

    def get(self, name: str, default: Any = None) -> Any:
        """An option by name, ``default`` where it was not set."""
        found = self.options.get(name)
        return default if found is None else found

    def change(self, **changes: Any) -> "Settings":
        """Returns the settings with other values."""
        return replace(self, **changes)

    def make_likelihood(self, *, few: bool) -> Likelihood:
        """Makes the likelihood; one by name has a constant dispersion where rows are few."""
        if isinstance(self.likelihood, Likelihood):
            return self.likelihood
        options = dict(self.likelihood_options)
        kind = likelihoods.registry.get(self.likelihood)
        if few and "dispersion" in inspect.signature(kind).parameters:
            options = {"dispersion": "constant", **options}
        likelihood: Likelihood = likelihoods.create(self.likelihood, **options)
        return likelihood

    @property
    def likelihood_name(self) -> str:
        """The likelihood as the registry spells it."""
        return self.likelihood if isinstance(self.likelihood, str) else self.likelihood.name

    @property
    def is_linear(self) -> bool:
        """Whether the linear model of the structure is asked for."""
        return self.network == "linear"

    @property
    def steers(self) -> bool:
        """Whether options of a network or its training were set, but for the bins of numbers."""
        given = [name for name in STEERING if self.options.get(name) not in (None, False)]
        return bool(given or self.network_options)

    @property
    def penalty(self) -> Penalty | None:
        """The penalty that was asked for."""
        given = self.get("penalty")
        return None if given is None else Penalty.read(given)

    @property
    def trainer_options(self) -> dict[str, Any]:
        """The options of :class:`~ansatz.training.Trainer`."""
        return {
            "device": self.device,
            "time_limit": self.time_limit,
            "progress": self.progress,
            "threads": self.threads or "auto",
        }


# Options that steer the training of one network, besides those of its encoder.
STEERING = {*RecipeOptions._fields, "warm_start", "pretrained", "freeze", "adapter"} - {"bins"}
STEERING |= {"teacher", "teacher_temperature", "teacher_weight", "callbacks", "recompute"}


def inference_of(name: str) -> Inference:
    """The inference by name; before rows have chosen one, the plain one."""
    found: Inference = inference.create(DEFAULT if name == AUTO else name)
    return found


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
            structures.create(structure), outcome, inference_of(settings.inference), settings
        )

    def settle(self, job: Job, rows: float | None = None) -> "Task":
        """Chooses the inference by the training rows, where none was asked for.

        Args:
            job: the rows.
            rows: the sum of the weights of those that are trained on; None for all.
        """
        settings = self.settings
        if settings.inference != AUTO:
            return self
        target, likelihood = job.target, self.likelihood(job.target)
        default = self.structure.solves and target.axis == "row" and job.rows.has_features
        same = settings.network in ("auto", self.outcome.network(self.structure))
        name = choose(
            job.mass if rows is None else rows,
            networks=default and same and likelihood.additive and likelihood.has_distribution,
            steered=settings.steers,
            members=settings.options.get("members") is not None,
        )
        return self._replace(
            inference=inference.create(name), settings=settings.change(inference=name)
        )

    def change(self, **settings: Any) -> "Task":
        """Returns the task with other settings."""
        return self._replace(settings=self.settings.change(**settings))

    # The likelihood.

    def likelihood(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        """The likelihood of such outcomes, which knows the number of classes.

        Few rows cannot distinguish a dispersion that varies with x from one that does not: below a
        number that the inference sets, a likelihood given by name has a constant dispersion, and
        so has a linear model, as in glm.
        """
        few = rows < self.inference.few or self.settings.is_linear
        likelihood = copy.deepcopy(self.outcome.likelihood(self.settings, target, few=few))
        likelihood.outputs(target)
        return likelihood

    def suited(self, likelihood: Likelihood, job: Job) -> Likelihood:
        """The likelihood that a network given as a module has outputs for.

        A module decides what it predicts: as many raw numbers per outcome as it gives.
        """
        network = self.network(job.target)
        if isinstance(network, str) or not job.rows.has_features:
            return likelihood
        if next(network.parameters(), None) is None:  # refused where it is built
            return likelihood
        variants = self.outcome.variants(likelihood, self.settings)
        if len(variants) == 1:
            return likelihood
        found = self.structure.count_outputs(network, job, self.recipe(job), self.settings.options)
        counts = [each.outputs(job.target) * math.prod(job.target.shape) for each in variants]
        if found in counts:
            return variants[counts.index(found)]
        named = [
            f"{count} ({each.name}, dispersion {d})"
            if (d := current_dispersion(each))
            else f"{count} ({each.name})"
            for count, each in zip(counts, variants, strict=True)
        ]
        raise UsageError(
            f"the network {type(network).__name__} gives {found} numbers per row; the outcome "
            f"takes {' or '.join(named)}. Build it with one of these numbers of outputs."
        )

    # The network and its recipe.

    def network(self, target: TargetSpec) -> str | nn.Module:
        """The network asked for, or that of given weights, or the default of the structure."""
        begin = self.structure.beginning(self.settings.options)
        if begin is not None:
            return _given_network(begin, self.settings.network)
        if self.settings.network == "auto":
            return self.outcome.network(self.structure)
        if self.settings.is_linear:
            return self.structure.linear_network(target.axis)
        return self.settings.network

    def is_solved(self, job: Job) -> bool:
        """Tests whether the model is the exact linear model: asked for, or without x."""
        if not job.rows.has_features:
            return True
        if isinstance(self.settings.network, str) and self.settings.network in self.outcome.solved:
            return True
        by_itself = getattr(self.inference, "infers_linear", False)
        return self.settings.is_linear and self.structure.solves and not by_itself

    def facts(self, job: Job, rows: float | None = None) -> Facts:
        """Collects what the default recipe depends on."""
        total = job.mass if rows is None else rows
        likelihood = self.likelihood(job.target, total)
        return Facts(
            total, job.rows.spec, job.target, not likelihood.additive, self.inference.averages
        )

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
            begin = self.structure.beginning(settings.options)
            base = base if begin is None else begin.recipe(base, job.mass)
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

    def alternative(self, recipe: Recipe, job: Job) -> Recipe | None:
        """Another recipe that rows may choose, where nothing of the training was set."""
        settings = self.settings
        if (
            settings.is_linear
            or settings.steers
            or settings.options.get("bins") is not None
            or job.total is not None
            or self.outcome.is_x
        ):
            return None
        if not self.likelihood(job.target).additive or job.target.axis != "row":
            return None
        network = self.network(job.target)
        return self.structure.alternative(recipe, job, network, settings.network_options)

    def plan(
        self, recipe: Recipe, job: Job, network_options: dict[str, Any] | None = None
    ) -> TrainingPlan:
        """Makes the plan of a network; the options of its factory follow from the recipe."""
        network = self.network(job.target)
        self.refuse(network)
        own = network_options
        if own is None:
            begin = self.structure.beginning(self.settings.options)
            own = self.structure.network_options(network, recipe, job.rows.spec)
            own = own if begin is None else {**own, **begin.options}
            own = {**own, **self.outcome.network_options(network), **self.settings.network_options}
        return TrainingPlan(
            self.structure,
            network,
            own,
            recipe,
            self.settings.seed,
            self.settings.options,
            self.settings.trainer_options,
            () if self.outcome.labels is None else tuple(map(str, self.outcome.labels)),
        )

    def refuse(self, network: str | nn.Module) -> None:
        """Refuses options that would do nothing to such rows, or to such a network."""
        options = self.settings.options.items()
        given = [name for name, value in options if value is not None and value is not False]
        refuse_foreign(given, self.structure.name, settings=True)
        self._refuse_of_other_inferences(given)
        odd = [name for name in given if name in self.structure.leaves_to(network)]
        if odd:
            raise UsageError(
                f"'{odd[0]}' is an option of mlp; those of another network go into "
                "network_options (--set NAME=VALUE)."
            )

    def _refuse_of_other_inferences(self, given: list[str]) -> None:
        """Refuses options of other inferences, and of networks where there are none."""
        own = getattr(self.inference, "settings", settings_of("inference"))
        foreign = settings_of("inference") - own
        if getattr(self.inference, "reads_network", False):
            foreign |= STEERING - {"widths", "activation"}
        elif not getattr(self.inference, "trains", True):
            foreign |= STEERING | {"widths", "activation", "dropout"}
            given = [*given, *self.settings.network_options]
            foreign |= set(self.settings.network_options)
            allowed = ["auto", self.outcome.network(self.structure)]
            allowed += ["linear"] if getattr(self.inference, "infers_linear", False) else []
            if self.settings.network not in allowed:
                raise UsageError(f"inference {self.inference.name} has no network; leave it out.")
        odd = [name for name in given if name in foreign]
        if odd:
            raise UsageError(f"'{odd[0]}' is not an option of inference {self.inference.name}.")
        for name, (kind, _) in declared(InferenceSettings).items():
            value = self.settings.options.get(name)
            if kind is int and value is not None and not _counts(value):
                raise UsageError(f"{name} must be a whole number of 1 or more, got {value!r}.")

    def check_settings(self, job: Job) -> None:
        """Raises what a fit would raise about its settings, before any work is done."""
        choose_device(self.settings.device)
        recipe = self.recipe(job)
        plan = self.plan(recipe, job)
        if recipe.penalty is not None and not self.is_solved(job):
            Penalty.read(recipe.penalty).create()
        if isinstance(plan.network, str) and not self.is_solved(job):
            inputs = job.rows.spec or InputSpec.of(1)
            networks.create(plan.network, inputs=inputs, outputs=1, **plan.network_options)


_LIKELIHOOD, _NETWORK = "likelihood.", "network."  # before keys of their options
_OF_LINEAR = {"class_weight", "classes", "errors", "formula", "impute", "layout", "link"}
_OF_LINEAR |= {"penalty", "prior", "unranked", *settings_of("inference") - {"members"}}


def task_of(request: Request, problem: "Problem") -> Task:
    """The task that a request asks for."""
    options = request.options
    others, _ = split_options(options["likelihood"], request.settings())
    structure: Structure = structures.create(problem.structure or str(options["x"]))
    network = network_of(request, problem)
    settings = settings_for(problem, network, others, structure).change(
        inference=options["inference"],
        seed=options["seed"],
        device=options["device"],
        time_limit=options["time_limit"],
    )
    return Task.of(structure.name, outcomes.create(problem.kind), settings)


def network_of(request: Request, problem: "Problem") -> str:
    """The network that a request names, or the default of its structure."""
    structure: Structure = structures.create(problem.structure or str(request.options["x"]))
    outcome = outcomes.registry.get(problem.kind)
    begin = structure.beginning(request.settings())
    if begin is not None:
        return str(_given_network(begin, request.options["network"] or "auto"))
    default = outcome.network(structure) if problem.rows.has_features else "linear"
    return request.options["network"] or str(default)


def _given_network(begin: Beginning, asked: str | nn.Module) -> str | nn.Module:
    """The network of given weights; another one is refused."""
    if asked in ("auto", begin.network):
        return begin.network
    raise UsageError(f"the pretrained weights are those of a {begin.network}: leave network out.")


def split_options(
    likelihood: str | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the fit and the network, and those of the likelihood."""
    named = {
        k.removeprefix(_LIKELIHOOD): v for k, v in options.items() if k.startswith(_LIKELIHOOD)
    }
    others = {k: v for k, v in options.items() if not k.startswith(_LIKELIHOOD)}
    if likelihood is None:
        if named:
            raise UsageError(
                f"--set {_LIKELIHOOD}{next(iter(named))}: name the likelihood as well."
            )
        return others, {}
    known = inspect.signature(likelihoods.registry.get(likelihood)).parameters
    odd = [name for name in named if name not in known]
    if odd:
        raise UsageError(f"--set {_LIKELIHOOD}{odd[0]}: not an option of {likelihood}.")
    mine = {k: v for k, v in others.items() if k in known and k not in fit_settings()}
    return {k: v for k, v in others.items() if k not in mine}, {**mine, **named}


def settings_for(
    problem: "Problem", network: str, options: Mapping[str, Any], structure: Structure
) -> Settings:
    """Sorts options into those of the network's factory and those of the fit."""
    takes = inspect.signature(networks.registry.get(network)).parameters
    outcome = outcomes.registry.get(problem.kind)
    known = fit_settings() - (structure.leaves_to(network) & set(takes))
    known -= settings_of("outcome") - outcome.settings
    mine = {name: value for name, value in options.items() if name in known}
    others = {
        name.removeprefix(_NETWORK): value for name, value in options.items() if name not in known
    }
    if network == "linear" and structure.solves:
        _refuse_of_networks([*others, *(name for name in mine if name not in _OF_LINEAR)], problem)
    refuse_unknown(others, takes, network, known & settings_with(structure.name))
    return Settings(
        problem.likelihood,
        network,
        likelihood_options=problem.likelihood_options,
        network_options=others,
        options={k: v for k, v in mine.items() if k not in ("n_jobs", "verbose")},
        threads=mine.get("n_jobs"),
        progress=mine.get("verbose", 0),
    )


def _refuse_of_networks(names: list[str], problem: "Problem") -> None:
    """Rejects options of networks, which would do nothing to a linear model."""
    if names:
        named = " or ".join(problem.candidates)
        raise UsageError(
            f"'{names[0]}' is not an option of a linear model with likelihood {named}. To see the "
            f"likelihood's: ansatz show {problem.candidates[0]}."
        )
