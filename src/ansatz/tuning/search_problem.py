"""Data read for a search: which rows evaluate, what may vary."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansatz import likelihoods, networks
from ansatz.errors import UsageError
from ansatz.fitting import Request
from ansatz.fitting.choice import choose_likelihood
from ansatz.fitting.fit import note_on_parts
from ansatz.fitting.job import Job
from ansatz.fitting.problem import Problem, read_job
from ansatz.fitting.request import settings_of, settings_with
from ansatz.fitting.space import Choice, Space
from ansatz.fitting.split import SplitJob, split
from ansatz.fitting.task import Task, network_of, task_of
from ansatz.spec import InputSpec
from ansatz.tuning.inner_folds import InnerFolds, comparable_likelihoods, make_folds
from ansatz.tuning.space import SHAPE, check_space, parse_space, point_of

SHARE = 0.2  # of the rows, kept from the search


def build_search(
    request: Request, problem: Problem, changes: Sequence[str] | Mapping[str, Any], folds: int
) -> tuple[InnerFolds, Space, list[str]]:
    """The folds that evaluate trials, the space of the search, and notes on it."""
    options, given = request.options, request.settings()
    network, asked = network_of(request, problem), read_space(changes)
    task = task_of(request, problem)
    tried = searched_networks(asked, network, solves=task.structure.solves)
    if len(tried) > 1 and "pretrained" in given:
        raise UsageError("--space network: a file of weights is that of one network, not several.")
    _require_element_likelihoods(task, problem, asked)
    job = read_job(problem, task)
    own = options["test"] is None and problem.part is not None
    share = SHARE if options["test"] is None else options["test"]
    found = task.structure.split(problem, task, job, share)
    rows = found or SplitJob.of(job, split(job, task, share, options["seed"], given=own))
    assert rows.parts is not None  # of rows that are all in memory
    learn = rows.learn._replace(valid=None)
    likelihood = problem.candidates[0]
    takes = []
    for name in dict.fromkeys([network, *tried]):  # before the work begins
        each = task_of(request.but(network=name), problem)._replace(outcome=task.outcome)
        if name in tried:
            takes.append(known_options(each, name, likelihood))
            check_space(asked, takes[-1])
        require_answers(each, learn)
    if len(problem.candidates) > 1:
        likelihood = choose_likelihood(task, problem.candidates, learn).likelihood
    inner_folds = make_folds(learn, folds, options["seed"])
    inner = InnerFolds(request, problem, rows.parts.learn, inner_folds, likelihood, network)
    candidates, gone = _likelihoods(inner, asked)
    whole = _space(task, learn, tried, takes, candidates)
    fixed = {*given, *(("width", "depth") if "widths" in given or "widths" in asked else ())}
    whole = {name: d for name, d in whole.items() if name not in fixed} | asked
    if not whole:
        raise UsageError("nothing is left to search: every option was given.")
    notes = [] if problem.has_own_columns else list(problem.notes)
    if problem.part is not None:
        notes.append(note_on_parts(own, len(rows.test.y)))
    if gone:
        notes.append(f"not searched, as their scores have another measure: {', '.join(gone)}.")
    return inner, whole, notes


def _require_element_likelihoods(task: Task, problem: Problem, asked: Space) -> None:
    """Outcomes on elements are searched by their log score, which a loss does not have."""
    if task.outcome.axis == "row" or task.structure.element is None:
        return
    wanted = asked.get("likelihood")
    for name in [*problem.candidates, *(wanted.values if isinstance(wanted, Choice) else ())]:
        if not likelihoods.registry.get(name).has_distribution:
            raise UsageError(
                f"{name} is a loss, not a likelihood of {task.outcome.plural}: trials take the "
                f"log score of {task.structure.element[1]}. Search with --likelihood categorical, "
                "or compare fits: ansatz compare A B."
            )


def _likelihoods(inner: InnerFolds, asked: Space) -> tuple[list[str], list[str]]:
    """The likelihoods to search among, and the candidates whose scores have another measure."""
    if "likelihood" not in asked:
        return comparable_likelihoods(inner, inner.problem.candidates)
    wanted = asked["likelihood"]
    if not isinstance(wanted, Choice):
        raise UsageError("--space likelihood: give names, likelihood=A,B.")
    _, gone = comparable_likelihoods(inner, list(wanted.values))
    if gone:
        raise UsageError(
            f"--space likelihood: {gone[0]} and {inner.likelihood} have no score in common: search "
            "among likelihoods of one kind."
        )
    return [inner.likelihood], []


def _space(
    task: Task, learn: Job, tried: list[str], takes: list[list[str]], candidates: list[str]
) -> Space:
    """The default space, of what all networks that are tried have in common."""
    network = tried[0] if len(tried) == 1 else None
    common = set(takes[0]).intersection(*takes[1:])
    recipe, facts = task.recipe(learn), task.facts(learn)
    space = task.structure.search_space(recipe, facts, network=network, takes=common)
    if len(candidates) > 1:
        space["likelihood"] = Choice(tuple(candidates))
    return space


def read_space(changes: Sequence[str] | Mapping[str, Any]) -> Space:
    """Changes to the space, as texts or as a mapping."""
    if not isinstance(changes, Mapping):
        return parse_space([changes] if isinstance(changes, str) else changes)
    texts = []
    for name, values in changes.items():
        if isinstance(values, tuple) and len(values) == 2:
            texts.append(f"{name}={values[0]}..{values[1]}")
        elif isinstance(values, list) and values:
            texts.append(f"{name}={json.dumps(values)[1:-1]}")
        else:
            raise UsageError(f"space of {name}: expected (low, high) or a list, got {values!r}.")
    return parse_space(texts)


def default_point(inner: InnerFolds, whole: Space) -> dict[str, Any] | None:
    """The default recipe as a point of the space, if it lies in it."""
    task, learn = inner.task({})
    own = {} if inner.network == "mlp" else network_values(task, learn)
    own["network"] = inner.network
    return point_of(task.recipe(learn), inner.likelihood, whole, own)


def searched_networks(asked: Space, network: str, *, solves: bool) -> list[str]:
    """The names of ``--space network=A,B``, or the one network of every fit."""
    wanted = asked.get("network")
    if wanted is None:
        return [network]
    if not isinstance(wanted, Choice):
        raise UsageError("--space network: give names, network=A,B.")
    for name in wanted.values:
        networks.registry.get(name)
        if name == "linear" and solves:
            raise UsageError("--space network: a linear model has nothing to search: leave it out.")
    return list(wanted.values)


def require_answers(task: Task, learn: Job) -> None:
    """Raises, before any work, what a fit would raise about the network and its options."""
    task.check_settings(learn)
    plan, inputs = task.plan(task.recipe(learn), learn), learn.rows.spec or InputSpec.of(1)
    made = networks.create(plan.network_name, inputs=inputs, outputs=2, **plan.network_options)
    axis = learn.target.axis
    task.structure.require_answers(made.eval(), plan.network_name, inputs, axis)


_NOT_SEARCHED = {"n_jobs", "verbose", "warm_start"}  # options that change no model


def known_options(task: Task, network: str, likelihood: str) -> list[str]:
    """Options of the fit, the network and the likelihood, by name."""
    names = settings_with(task.structure.name) - _NOT_SEARCHED
    names -= settings_of("outcome") - task.outcome.settings
    names = names | set(SHAPE) if network == "mlp" else names - settings_of("network")
    names |= _arguments(networks.registry.get(network))
    names |= _arguments(likelihoods.registry.get(likelihood))
    return sorted(names - {"inputs", "outputs", "generator"})


def network_values(task: Task, learn: Job) -> dict[str, Any]:
    """The options of a network as a fit would make it, its own defaults among them."""
    plan = task.plan(task.recipe(learn), learn)
    found = inspect.signature(networks.registry.get(plan.network_name)).parameters.values()
    own = {each.name: each.default for each in found if each.default is not inspect.Parameter.empty}
    own.pop("generator", None)
    return {**own, **plan.network_options}


def _arguments(function: Callable[..., Any]) -> set[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in found if parameter.kind not in kinds}
