"""The first steps of every fit: what x looks like, the problem, the task."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ansatz import likelihoods, networks, outcomes, structures
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.options.tables import fit_settings, settings_of
from ansatz.fitting.problem import Problem
from ansatz.fitting.recognition import structure_of
from ansatz.fitting.request import Request
from ansatz.fitting.settings import Settings
from ansatz.fitting.task import Task

_LAW, _NETWORK = "likelihood.", "network."  # before the keys of their options, where said
_OF_LINEAR = {"class_weight", "classes", "layout", "prior", "unranked"}


def with_structure(request: Request) -> Request:
    """Decides what x looks like, and refuses options of other structures."""
    x = structure_of(request.data, request.options["x"], request.given)
    request.check(x)
    return request.but(x=x)


def reading(request: Request) -> AbstractContextManager[Problem]:
    """Reads the data of a request and decides what is predicted; what is on disk stays inside."""
    structure: Structure = structures.create(str(request.options["x"]))
    found: AbstractContextManager[Problem] = structure.reading(request, how(request))
    return found


def how(request: Request) -> dict[str, Any]:
    """What a structure is told about reading the data of a request."""
    options = request.options
    return {
        "likelihood": options["likelihood"],
        "options": split_options(options["likelihood"], request.settings())[1],
        "roles": options["roles"],
        "drop": options["drop"],
        "reader": request.reader(),
        "memory": request.memory(),
    }


def task_of(request: Request, problem: Problem) -> Task:
    """The task that a request asks for."""
    options = request.options
    others, _ = split_options(options["likelihood"], request.settings())
    structure: Structure = structures.create(str(options["x"]))
    network = network_of(request, problem)
    settings = settings_for(problem, network, others, structure).change(
        inference=options["inference"],
        seed=options["seed"],
        device=options["device"],
        time_limit=options["time_limit"],
    )
    return Task.of(structure.name, outcomes.create(problem.kind), settings)


def network_of(request: Request, problem: Problem) -> str:
    """The network that a request names, or the default of its structure."""
    structure: Structure = structures.create(str(request.options["x"]))
    axis = outcomes.registry.get(problem.kind).axis
    default = structure.network(axis) if problem.rows.has_features else "linear"
    return request.options["network"] or str(default)


def split_options(
    likelihood: str | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the fit and the network, and those of the likelihood.

    Args:
        likelihood: by name; None where the values choose, and options are the others'.
        options: of all of them, by name; ``likelihood.key`` is the likelihood's.
    """
    named = {k.removeprefix(_LAW): v for k, v in options.items() if k.startswith(_LAW)}
    others = {k: v for k, v in options.items() if not k.startswith(_LAW)}
    if likelihood is None:
        if named:
            raise UsageError(f"--set {_LAW}{next(iter(named))}: name the likelihood as well.")
        return others, {}
    known = inspect.signature(likelihoods.registry.get(likelihood)).parameters
    odd = [name for name in named if name not in known]
    if odd:
        raise UsageError(f"--set {_LAW}{odd[0]}: not an option of {likelihood}.")
    mine = {k: v for k, v in others.items() if k in known and k not in fit_settings()}
    return {k: v for k, v in others.items() if k not in mine}, {**mine, **named}


def settings_for(
    problem: Problem, network: str, options: Mapping[str, Any], structure: Structure
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
    return Settings(
        problem.likelihood,
        network,
        likelihood_options=problem.law_options,
        network_options=others,
        options={k: v for k, v in mine.items() if k not in ("n_jobs", "verbose")},
        threads=mine.get("n_jobs"),
        progress=mine.get("verbose", 0),
    )


def _refuse_of_networks(names: list[str], problem: Problem) -> None:
    """A linear model has options of its law and its outcomes alone: others would do nothing."""
    if names:
        laws = " or ".join(problem.laws)
        raise UsageError(
            f"'{names[0]}' is no option of a linear model with likelihood {laws}. To see the "
            f"likelihood's: ansatz show {problem.laws[0]}."
        )
