"""A table read as a search: which rows judge, what may vary."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansatz.errors import UsageError
from ansatz.estimators.choice import choose_law
from ansatz.estimators.kinds import make_estimator, split_options
from ansatz.estimators.parts import split, take
from ansatz.estimators.problem import Problem
from ansatz.estimators.reading import read_job
from ansatz.tuning.inner_folds import InnerFolds, comparable_laws, make_folds
from ansatz.tuning.options import known_options
from ansatz.tuning.space import (
    Choice,
    Space,
    check_space,
    default_space,
    parse_space,
    point_of,
)


def pose_search(
    problem: Problem,
    network: str,
    likelihood: str | None,
    given: dict[str, Any],
    changes: Sequence[str] | Mapping[str, Any],
    folds: int,
    test: float,
    seed: int,
    inference: str,
    device: str,
) -> tuple[InnerFolds, Space, list[str]]:
    """The folds that judge trials, the space of the search, and what is to be said about it.

    Args:
        problem: the table.
        network: by name.
        likelihood: the law asked for.
        given: options that the user fixed.
        changes: to the default space.
        folds: of the rows to learn from.
        test: share of the rows kept from the search.
        seed: of split, folds and trials.
        inference: of every fit.
        device: of every fit.

    Example:
        >>> import inspect
        >>> from ansatz.tuning.posing import pose_search
        >>> list(inspect.signature(pose_search).parameters)[:2]
        ['problem', 'network']
    """
    settings = {"inference": inference, "random_state": seed, "device": device}
    others, _ = split_options(likelihood, given)
    estimator = make_estimator(problem, network, options=others, **settings)
    job = read_job(problem, estimator)
    parts = split(job, estimator, test, seed)
    learn = take(job, parts.learn)
    estimator._rehearse(learn)
    law = problem.laws[0]
    asked = read_space(changes)
    check_space(asked, known_options(estimator, network, law))  # before the work begins
    if len(problem.laws) > 1:
        law = choose_law(estimator, problem.laws, learn).law
    parted = make_folds(learn, folds, seed)
    inner = InnerFolds(problem, parts, parted, law, network, given, settings, seed)
    laws, gone = [law], list[str]()
    if "likelihood" in asked:
        wanted = asked["likelihood"]
        if not isinstance(wanted, Choice):
            raise UsageError("--space likelihood: give names, likelihood=A,B.")
        _, gone = comparable_laws(inner, list(wanted.values))
        if gone:
            raise UsageError(
                f"--space likelihood: {gone[0]} and {law} have no score in common: search among "
                "laws of one kind."
            )
    elif len(problem.laws) > 1:
        laws, gone = comparable_laws(inner, problem.laws)
    recipe = estimator._recipe(learn)
    whole = default_space(recipe, network=network, laws=laws, rows=float(learn.weight.sum()))
    fixed = {*given, *(("width", "depth") if "widths" in given or "widths" in asked else ())}
    whole = {name: d for name, d in whole.items() if name not in fixed} | asked
    if not whole:
        raise UsageError("nothing is left to search: every option was given.")
    notes = []
    if gone and "likelihood" not in asked:
        notes.append(f"not searched, as their scores have another measure: {', '.join(gone)}.")
    return inner, whole, notes


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
    return point_of(estimator._recipe(learn), inner.law, whole)
