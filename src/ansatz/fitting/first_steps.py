"""The first steps of every fit: what x looks like, the problem, the task."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from ansatz import likelihoods, networks, outcomes, structures
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, read_column, read_weights
from ansatz.fitting.options.tables import fit_settings, settings_of
from ansatz.fitting.problem import Problem, locate
from ansatz.fitting.request import Request
from ansatz.fitting.task import Settings, Task
from ansatz.registry import load
from ansatz.structures.registry import DEFAULT, recognizers

_LIKELIHOOD, _NETWORK = "likelihood.", "network."  # before the keys of their options, where said
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
        likelihood_options=problem.likelihood_options,
        network_options=others,
        options={k: v for k, v in mine.items() if k not in ("n_jobs", "verbose")},
        threads=mine.get("n_jobs"),
        progress=mine.get("verbose", 0),
    )


def _refuse_of_networks(names: list[str], problem: Problem) -> None:
    """A linear model has options of its likelihood and its outcomes alone: others would do nothing."""
    if names:
        named = " or ".join(problem.candidates)
        raise UsageError(
            f"'{names[0]}' is no option of a linear model with likelihood {named}. To see the "
            f"likelihood's: ansatz show {problem.candidates[0]}."
        )


def structure_of(
    data: Any, asked: str | None = None, options: Mapping[str, Any] | None = None
) -> str:
    """The structure of data for a fit, by name.

    Args:
        data: what ``ansatz.fit`` was given.
        asked: the structure that was asked for; a wrong name suggests the nearest right one.
        options: of the reader.
    """
    if asked is not None and asked != "auto":
        structures.registry.get(asked)
        return asked
    return _first("recognizes", data, options or {})


def structure_of_rows(X: Any, asked: str = "auto") -> str:
    """The structure of what was handed to an estimator as X, by name."""
    if asked != "auto":
        structures.registry.get(asked)
        return asked
    return _first("recognizes_rows", X)


def _first(question: str, *about: Any) -> str:
    for name, module in recognizers.items():
        if load(f"{module}:{question}")(*about):
            return name
    return DEFAULT


def read_job(problem: Problem, task: Task) -> Job:
    """Reads the rows of a problem for a task; errors name the table's own rows.

    The task's outcome remembers what it read: names and classes.

    Args:
        problem: rows with their outcomes.
        task: what will be fitted.
    """
    frame = problem.frame
    weight, offset = problem.column_roles.weight(frame), problem.column_roles.offsets(frame)
    try:
        job = _read(problem, task, weight, offset)
    except DataError as error:
        raise locate(error, problem.origin, frame, problem.column_roles) from None
    rows = frame.index.to_numpy()[job.index.numpy()]  # errors name rows as the table counts them
    if rows.dtype.kind == "i":
        job = job._replace(index=torch.from_numpy(rows + 1))
    group, time, part = _order(problem)
    return job._replace(group=group, time=time, part=part)


def _read(problem: Problem, task: Task, weight: Any, offset: Any) -> Job:
    rows, outcome = problem.rows, task.outcome
    codes, target = outcome.encode(
        outcome.beside(problem.outcomes, rows), task.settings, reset=True
    )
    mass, extra = read_weights(weight, rows), read_column("offset", offset, len(rows))
    seen = mass > 0  # a row of weight 0 is a row that is not there
    if not seen.all():
        rows, codes, mass = rows[seen], codes[seen], mass[seen]
        extra = None if extra is None else extra[seen]
    job = Job(
        rows,
        torch.from_numpy(np.array(codes)),  # a copy: the given one may be read-only
        target,
        torch.from_numpy(outcome.reweight(codes, mass, task.settings)),
        None if extra is None else torch.from_numpy(extra),
        torch.from_numpy(np.flatnonzero(seen)),
    )
    return outcome.read(job)


def _order(problem: Problem) -> tuple[Any, Any, Any]:
    """The columns that govern every split."""
    frame, column_roles = problem.seen, problem.column_roles
    names = column_roles.group, column_roles.time, problem.part
    group, time, part = (None if name is None else frame[name].to_numpy() for name in names)
    return group, time, part
