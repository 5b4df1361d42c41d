"""The names that a search may vary."""

import inspect
from collections.abc import Callable
from typing import Any

from ansatz import likelihoods, networks
from ansatz.fitting.job import Job
from ansatz.fitting.options.tables import settings_of, settings_with
from ansatz.fitting.task import Task
from ansatz.tuning.space import SHAPE

_NOT_SEARCHED = {"n_jobs", "verbose", "warm_start"}  # options that change no model


def known_options(task: Task, network: str, law: str) -> list[str]:
    """Options of the fit, the network and the law, by name.

    Args:
        task: of the fits.
        network: by name.
        law: by name.
    """
    names = settings_with(task.structure.name) - _NOT_SEARCHED
    names -= settings_of("outcome") - task.outcome.settings
    names = names | set(SHAPE) if network == "mlp" else names - settings_of("network")
    names |= _arguments(networks.registry.get(network))
    names |= _arguments(likelihoods.registry.get(law))
    return sorted(names - {"inputs", "outputs", "generator"})


def network_values(task: Task, learn: Job) -> dict[str, Any]:
    """The options of a network as a fit would make it, its own defaults among them.

    Args:
        task: with the network by name.
        learn: the training rows.
    """
    plan = task.plan(task.recipe(learn), learn)
    found = inspect.signature(networks.registry.get(plan.network_name)).parameters.values()
    own = {each.name: each.default for each in found if each.default is not inspect.Parameter.empty}
    own.pop("generator", None)
    return {**own, **plan.network_options}


def _arguments(function: Callable[..., Any]) -> set[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in found if parameter.kind not in kinds}
