"""A table or grids read as a search: which rows judge, what may vary."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansatz import likelihoods
from ansatz.errors import UsageError
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting import Request
from ansatz.fitting.choice import choose_law
from ansatz.fitting.fit import note_on_parts
from ansatz.fitting.job import Job
from ansatz.fitting.kinds import make_estimator, split_options
from ansatz.fitting.problem import Problem
from ansatz.fitting.reading import read_job
from ansatz.fitting.split import split, take
from ansatz.structures.grid.reading import default_network
from ansatz.tuning.grid_space import default_grid_space
from ansatz.tuning.inner_folds import InnerFolds, comparable_laws, make_folds
from ansatz.tuning.options import known_options, network_values
from ansatz.tuning.searched_networks import require_answers, searched_networks
from ansatz.tuning.space import (
    Choice,
    Space,
    check_space,
    default_space,
    parse_space,
    point_of,
)

SHARE = 0.2  # of the rows, kept from the search


def pose_search(
    request: Request, problem: Problem, changes: Sequence[str] | Mapping[str, Any], folds: int
) -> tuple[InnerFolds, Space, list[str]]:
    """The folds that judge trials, the space of the search, and what is to be said about it.

    Args:
        request: what was asked; options that it gives are fixed.
        problem: the table, or grids.
        changes: to the default space.
        folds: of the rows to learn from.

    Example:
        >>> import inspect
        >>> from ansatz.tuning.posing import pose_search
        >>> list(inspect.signature(pose_search).parameters)[:2]
        ['request', 'problem']
    """
    options, given = request.options, request.settings()
    network = options["network"] or default_network(problem)
    test, seed = options["test"], options["seed"]
    settings = {
        "inference": options["inference"],
        "random_state": seed,
        "device": options["device"],
    }
    others, _ = split_options(options["likelihood"], given)
    asked = read_space(changes)
    tried = searched_networks(asked, network, grid=problem.is_grid)
    if len(tried) > 1 and "pretrained" in given:
        raise UsageError("--space network: a file of weights is that of one network, not several.")
    _require_laws_of_masks(problem, asked)
    estimator = make_estimator(problem, network, options=others, **settings)
    job = read_job(problem, estimator)
    own = test is None and problem.part is not None
    parts = split(job, estimator, SHARE if test is None else test, seed, given=own)
    learn = take(job, parts.learn)
    law = problem.laws[0]
    takes = []
    for name in dict.fromkeys([network, *tried]):  # before the work begins
        each = make_estimator(problem, name, options=others, **settings)
        if name in tried:
            takes.append(known_options(each, name, law, grid=problem.is_grid))
            check_space(asked, takes[-1])
        require_answers(each, take(read_job(problem, each), parts.learn))
    if len(problem.laws) > 1:
        law = choose_law(estimator, problem.laws, learn).law
    parted = make_folds(learn, folds, seed)
    inner = InnerFolds(problem, parts, parted, law, network, given, settings, seed)
    laws, gone = _laws(inner, asked)
    whole = _space(estimator, learn, tried, takes, laws)
    fixed = {*given, *(("width", "depth") if "widths" in given or "widths" in asked else ())}
    whole = {name: d for name, d in whole.items() if name not in fixed} | asked
    if not whole:
        raise UsageError("nothing is left to search: every option was given.")
    notes = list(problem.notes) if problem.is_grid else []
    if problem.part is not None:
        notes.append(note_on_parts(own, parts))
    if gone:
        notes.append(f"not searched, as their scores have another measure: {', '.join(gone)}.")
    return inner, whole, notes


def _require_laws_of_masks(problem: Problem, asked: Space) -> None:
    """Masks are searched by the log score of their cells, which a loss does not have."""
    if problem.masks is None:
        return
    wanted = asked.get("likelihood")
    for name in [*problem.laws, *(wanted.values if isinstance(wanted, Choice) else ())]:
        if not likelihoods.registry.get(name).is_law:
            raise UsageError(
                f"{name} is a loss and no law of masks: trials are judged by the log score of "
                "cells. Search with --likelihood categorical, or compare fits: ansatz compare A B."
            )


def _laws(inner: InnerFolds, asked: Space) -> tuple[list[str], list[str]]:
    """The laws to search among, and the candidates whose scores have another measure."""
    if "likelihood" not in asked:
        laws = inner.problem.laws
        return ([inner.law], []) if len(laws) == 1 else comparable_laws(inner, laws)
    wanted = asked["likelihood"]
    if not isinstance(wanted, Choice):
        raise UsageError("--space likelihood: give names, likelihood=A,B.")
    if inner.problem.masks is None:
        _, gone = comparable_laws(inner, list(wanted.values))
        if gone:
            raise UsageError(
                f"--space likelihood: {gone[0]} and {inner.law} have no score in common: search "
                "among laws of one kind."
            )
    return [inner.law], []


def _space(
    estimator: TableEstimator,
    learn: Job,
    tried: list[str],
    takes: list[list[str]],
    laws: list[str],
) -> Space:
    """The default space, of what all networks that are tried have in common."""
    recipe, rows = estimator._recipe(learn), float(learn.weight.sum())
    network = tried[0] if len(tried) == 1 else None
    if learn.grid is None:
        return default_space(recipe, network=network, laws=laws, rows=rows)
    dropout = all("dropout" in names for names in takes)
    return default_grid_space(
        recipe, learn.grid, network=network, laws=laws, rows=rows, dropout=dropout
    )


def read_space(changes: Sequence[str] | Mapping[str, Any]) -> Space:
    """Changes to the space, as texts or as a mapping.

    Example:
        >>> from ansatz.tuning.posing import read_space
        >>> read_space({"dropout": (0.0, 0.3), "activation": ["relu"]})["dropout"]
        Range(low=0.0, high=0.3)
    """
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
    """The default recipe as a point of the space, if it lies in it.

    Example:
        >>> from ansatz.tuning.posing import default_point
        >>> default_point.__name__
        'default_point'
    """
    estimator, learn = inner.estimator({})
    own = {} if inner.network == "mlp" else network_values(estimator, learn)
    own["network"] = inner.network
    return point_of(estimator._recipe(learn), inner.law, whole, own)
