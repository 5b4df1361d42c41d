"""A better recipe, searched on folds and evaluated once on rows kept from the search."""

import hashlib
import json
import time as clock
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Unpack, cast

from ansatz import structures
from ansatz.errors import UsageError
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.fit import fit_request
from ansatz.fitting.options import TuneOptions
from ansatz.fitting.options.commands import SearchOptions
from ansatz.fitting.options.option import with_signature
from ansatz.fitting.problem import Problem, reading, with_structure
from ansatz.fitting.replay import replay
from ansatz.fitting.request import defaults, validated
from ansatz.fitting.space import Space
from ansatz.fitting.task import network_of
from ansatz.inference.registry import AUTO, DEFAULT
from ansatz.report.compare import Comparison, compare_fits
from ansatz.storage import RunLock
from ansatz.tuning.inner_folds import InnerFolds
from ansatz.tuning.journal import Journal, Trial
from ansatz.tuning.search import best_of, require_optuna, search
from ansatz.tuning.search_problem import SHARE, build_search, default_point
from ansatz.tuning.search_result import Tuning, finished_search, save_search


@with_signature(TuneOptions)
def tune(data: Any, **options: Unpack[TuneOptions]) -> Tuning:
    """Searches for a better recipe than the default, and reports whether it found one.

    The test rows are held out first and are never seen by the search. Each trial is evaluated by
    its mean score on folds of the other rows; the best is fitted to all of them and evaluated once
    on the test rows, beside the default recipe, row by row. Trials are kept in ``OUT.tuning`` while
    the search lasts.

    Args:
        data: as for :func:`ansatz.fit`.
        options: what the command ``ansatz tune`` takes, by the same names: those of the search, and
            those of :func:`ansatz.fit`, where what is given is not searched. ``space`` may be a
            mapping of names to a (low, high) pair or a list of values.

    Example:
        >>> import numpy as np
        >>> import ansatz
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=60)
        >>> found = ansatz.tune(
        ...     {"x": x, "y": x + rng.normal(size=60)},
        ...     target="y",
        ...     likelihood="normal",
        ...     searches=1,
        ...     folds=2,
        ...     options={"epochs": 5},
        ... )
        >>> len(found.trials)  # the default recipe is the first
        2
    """
    given = validated(options, TuneOptions, "ansatz.tune")
    how = {name: given.pop(name, each) for name, each in defaults(SearchOptions).items()}
    return tune_request(Request(data, cast(FitOptions, given)), cast(SearchOptions, how))


def tune_request(asked: Request, how: SearchOptions) -> Tuning:
    """Searches for a better recipe of what was asked for."""
    began = clock.perf_counter()
    require_optuna()
    request = with_structure(asked)
    if request.options["inference"] == AUTO:  # a search steers the training of one network
        request = request.but(inference=DEFAULT)
    options, searches, folds = request.options, how["searches"], how["folds"]
    if searches < 1 or folds < 2:
        raise UsageError(f"--searches from 1 and --folds from 2, got {searches} and {folds}.")
    structure: Structure = structures.create(str(options["x"]))
    request = structure.at_once(request)
    with reading(request) as problem:
        solved = structure.solves and network_of(request, problem) == "linear"
        if solved or not problem.rows.has_features:
            raise UsageError("a linear model has nothing to search: fit it with ansatz fit.")
        place = None if options["out"] is None else Path(options["out"])
        with nullcontext() if place is None else RunLock(place):
            return _search(request, problem, how, place, began)


def _search(
    request: Request, problem: Problem, how: SearchOptions, place: Path | None, began: float
) -> Tuning:
    """Goes on with the search in a folder, or begins one, and fits what it found."""
    options, searches = request.options, how["searches"]
    overwrite, resume = options["overwrite"], options["resume"]
    inner, whole, notes = build_search(request, problem, how["space"], how["folds"])
    fingerprint = _fingerprint(inner, whole)
    journal = Journal(place, fingerprint, overwrite=overwrite, resume=resume)
    finished = finished_search(place, fingerprint, resume)
    if finished is not None:
        journal.remove()
        return finished
    try:
        late = search(
            *(inner, whole, journal),
            default=default_point(inner, whole),
            trials=searches,
            time_limit=how["time_limit"],
            progress=how["progress"],
        )
    except KeyboardInterrupt as stop:
        if place is not None:  # the command reports how to go on
            stop.step, stop.checkpoint = None, journal.folder  # type: ignore[attr-defined]
        raise
    if late:
        count = len(journal.trials) - 1
        notes.append(f"the time was up after {count} of {searches} trials.")
    result = _conclude(inner, whole, journal, notes)
    result.seconds = clock.perf_counter() - began
    if place is not None:
        save_search(result, place, fingerprint, overwrite=overwrite or resume)
        journal.remove()
    return result


def _conclude(inner: InnerFolds, whole: Space, journal: Journal, notes: list[str]) -> Tuning:
    """The chosen configuration and the default, fitted and evaluated on the test rows."""
    best, request = best_of(journal.trials), inner.request
    asked = request.but(out=None, overwrite=False, resume=False)  # the search saves one of them
    default = fit_request(asked)
    tuned, comparison = default, None
    if best.number:
        likelihood, network, chosen = inner.configuration(best.parameters)
        # A likelihood that nobody asked for is proposed again, with the options that go with it.
        named = (
            request.options["likelihood"]
            if [likelihood] == inner.problem.candidates
            else likelihood
        )
        options = {**(request.options["options"] or {}), **chosen}
        tuned = fit_request(asked.but(likelihood=named, network=network, options=options))
    if best.number and default.rows["test"]:
        comparison = compare_fits(
            replay(tuned)._replace(name="tuned"), replay(default)._replace(name="default")
        )
    tested = sum(len(outside) for _, outside in inner.folds)
    learned = sum(len(inside) for inside, _ in inner.folds)
    failed = sum(trial.state == "failed" for trial in journal.trials)
    if failed:
        notes.append(f"{failed} of {len(journal.trials)} trials could not be fitted.")
    return Tuning(
        fit=tuned,
        default=default,
        trials=journal.trials,
        best=best,
        space=whole,
        folds=len(inner.folds),
        learned=learned / tested,
        comparison=comparison,
        verdict=_verdict(best, len(journal.trials) - 1, comparison),
        notes=notes,
    )


def _verdict(best: Trial, count: int, comparison: Comparison | None) -> str:
    if count == 0:
        return "No trial was made, as the time limit or --searches has it: the default was kept."
    if best.number == 0 and count == 1:
        return "The one trial did not beat the default recipe on the inner folds: that was kept."
    if best.number == 0:
        return f"None of {count} trials beat the default recipe on the inner folds: it was kept."
    if comparison is None:
        return (
            f"Trial {best.number} was best on the inner folds; no test rows were kept to evaluate."
        )
    if comparison.better is None:
        return (
            "The search found nothing that the test rows can distinguish from the default recipe. "
            f"{comparison.verdict}"
        )
    return comparison.verdict


def _fingerprint(inner: InnerFolds, whole: Space) -> dict[str, str]:
    problem, options = inner.problem, inner.request.options
    settings = {
        "options": {name: repr(value) for name, value in inner.request.settings().items()},
        "settings": [options["inference"], options["seed"], options["device"]],
        "column_roles": problem.column_roles.model_dump(exclude={"spellings"}),
        "columns": [(column.name, column.role) for column in problem.columns],
        "likelihoods": [inner.likelihood, *problem.candidates],
        "network": inner.network,
        "folds": len(inner.folds),
        "test": SHARE if options["test"] is None and problem.part is None else options["test"],
    }
    space = {name: dimension.sentence() for name, dimension in whole.items()}
    texts = {"options": settings, "space": space}
    return {"data": problem.fingerprint} | {
        name: hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
        for name, value in texts.items()
    }
