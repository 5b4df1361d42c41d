"""A better recipe, searched on folds and judged once on rows kept from the search."""

import hashlib
import json
import time as clock
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ansatz import structures
from ansatz.errors import UsageError
from ansatz.fitting.fit import as_start, fit, with_limit
from ansatz.fitting.kinds import split_options
from ansatz.fitting.posing import default_network, pose_as, structure_of
from ansatz.fitting.problem import Problem
from ansatz.fitting.replay import replay
from ansatz.fitting.uses import Uses
from ansatz.report.compare import Comparison, compare_fits
from ansatz.storage import RunLock
from ansatz.tuning.inner_folds import InnerFolds
from ansatz.tuning.journal import Journal, Trial
from ansatz.tuning.posing import SHARE, default_point, pose_search
from ansatz.tuning.result import Tuning
from ansatz.tuning.sampler import require_optuna
from ansatz.tuning.saved_search import finished_search, save_search
from ansatz.tuning.search import Progress, best_of, search
from ansatz.tuning.space import Space


def tune(
    data: Any,
    *,
    target: str | Sequence[str] = (),
    trials: int = 30,
    folds: int = 3,
    space: Sequence[str] | Mapping[str, Any] = (),
    time_limit: float | None = None,
    event: str | None = None,
    entry: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    trials_column: str | None = None,
    x: str | None = None,
    likelihood: str | None = None,
    network: str | None = None,
    inference: str = "point",
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    seed: int = 0,
    test: float | None = None,
    group: str | None = None,
    time: str | None = None,
    weights: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
    stream: bool | None = None,
    memory_limit: str | int | None = None,
    **reader: Any,
) -> Tuning:
    """Searches for a better recipe than the default, and says honestly whether it found one.

    The test rows are set aside first and are never seen by the search. Each trial is judged by
    its mean score on folds of the other rows; the best is fitted to all of them and judged once
    on the test rows, beside the default recipe, row by row.

    Args:
        data: as for :func:`ansatz.fit`.
        target: as there.
        trials: how many configurations to try besides the default recipe.
        folds: of the rows to learn from, by which trials are judged.
        space: in place of parts of the default space: ``["dropout=0..0.3", "activation=relu"]``,
            or a mapping of names to a (low, high) pair or a list of values; ``network`` may be
            among the names.
        time_limit: seconds after which no further trial is begun.
        event: as for :func:`ansatz.fit`, like everything that follows.
        entry: as there.
        lower: as there.
        upper: as there.
        trials_column: there called ``trials``: how many tries the target counts the successes of.
        x: as there.
        likelihood: the law; None searches among the candidates that can be compared.
        network: as there; of a table ``"linear"`` has nothing to search.
        inference: as there.
        out: the folder for the model; trials are kept in ``OUT.tuning`` while the search lasts.
        overwrite: replace what is at ``out``.
        resume: go on with a search that was stopped: the trials are those of one that was not.
        device: as there.
        seed: of split, folds, trials and fits.
        test: share of the rows kept from the search; None keeps a fifth, or the data's own test.
        group: as there.
        time: as there.
        weights: as there.
        offset: as there.
        exposure: as there.
        roles: as there.
        drop: as there.
        progress: called with trials done, trials in all and the best so far.
        options: of the fits; what is given here is not searched.
        stream: of grids, as there.
        memory_limit: of grids, as there.
        reader: options of :func:`ansatz.data.read_table`, for images of
            :func:`ansatz.data.grids.read_grids`.

    Example:
        >>> import numpy as np
        >>> import ansatz
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=60)
        >>> found = ansatz.tune(
        ...     {"x": x, "y": x + rng.normal(size=60)},
        ...     target="y",
        ...     likelihood="normal",
        ...     trials=1,
        ...     folds=2,
        ...     options={"epochs": 5},
        ... )
        >>> len(found.trials)  # the default recipe is the first
        2
    """
    began = clock.perf_counter()
    require_optuna()
    x = structure_of(data, x, image=reader.get("image"))
    structures.registry.get(x)
    if trials < 1 or folds < 2:
        raise UsageError(f"--trials from 1 and --folds from 2, got {trials} and {folds}.")
    if x == "vector" and (stream or memory_limit is not None):
        raise UsageError("a search reads a table at once: leave out --stream and --memory-limit.")
    targets = [target] if isinstance(target, str) else list(target)
    weights, start = as_start(weights, options or {})
    names = {"event": event, "entry": entry, "lower": lower, "upper": upper}
    names |= {"trials": trials_column, "weights": weights, "offset": offset}
    names |= {"exposure": exposure, "group": group, "time": time}
    given = dict(start)
    common: dict[str, Any] = {
        **{"target": targets, **names, "x": x, "inference": inference, "device": device},
        **{"seed": seed, "test": test, "roles": roles, "drop": drop, "network": network},
        **{"stream": False if x == "vector" else stream, "memory_limit": memory_limit},
        **reader,
    }
    _, law_options = split_options(likelihood, given)
    problem = pose_as(
        x,
        data,
        Uses(target=targets, **names),
        likelihood=likelihood,
        options=law_options,
        roles=roles,
        drop=drop,
        reader=with_limit(reader, stream, memory_limit) if x == "grid" else reader,
    )
    network = network or default_network(problem)
    if not problem.is_grid and (network == "linear" or not problem.has_features):
        raise UsageError("a linear model has nothing to search: fit it with ansatz fit.")
    place = None if out is None else Path(out)
    with nullcontext() if place is None else RunLock(place):
        inner, whole, notes = pose_search(
            problem, network, likelihood, given, space, folds, test, seed, inference, device
        )
        fingerprint = _fingerprint(problem, inner, whole, len(inner.folds), test)
        journal = Journal(place, fingerprint, overwrite=overwrite, resume=resume)
        finished = finished_search(place, fingerprint, resume)
        if finished is not None:
            journal.remove()
            return finished
        try:
            late = search(
                *(inner, whole, journal),
                default=default_point(inner, whole),
                trials=trials,
                time_limit=time_limit,
                progress=progress,
            )
        except KeyboardInterrupt as stop:
            if place is not None:  # the command says how to go on
                stop.step, stop.checkpoint = None, journal.folder  # type: ignore[attr-defined]
            raise
        if late:
            count = len(journal.trials) - 1
            notes.append(f"the time was up after {count} of {trials} trials.")
        result = _conclude(data, common, likelihood, given, inner, whole, journal, notes)
        result.seconds = clock.perf_counter() - began
        if place is not None:
            save_search(result, place, fingerprint, overwrite=overwrite or resume)
            journal.remove()
    return result


def _conclude(
    data: Any,
    common: dict[str, Any],
    likelihood: str | None,
    given: dict[str, Any],
    inner: InnerFolds,
    whole: Space,
    journal: Journal,
    notes: list[str],
) -> Tuning:
    """The chosen configuration and the default, fitted and judged on the test rows."""
    best = best_of(journal.trials)
    default = fit(data, likelihood=likelihood, options=given, **common)
    tuned, comparison = default, None
    if best.number:
        law, network, chosen = inner.configuration(best.parameters)
        # A law that nobody asked for is proposed again, with the options that go with it.
        named = likelihood if [law] == inner.problem.laws else law
        how = {**common, "network": network, "options": {**given, **chosen}}
        tuned = fit(data, likelihood=named, **how)
    if best.number and len(inner.parts.test):
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
    if best.number == 0:
        return f"None of {count} trials beat the default recipe on the inner folds: it was kept."
    if comparison is None:
        return f"Trial {best.number} was best on the inner folds; no test rows were kept to judge."
    if comparison.better is None:
        return (
            "The search found nothing that the test rows can tell from the default recipe. "
            f"{comparison.verdict}"
        )
    return comparison.verdict


def _fingerprint(
    problem: Problem, inner: InnerFolds, whole: Space, folds: int, test: float | None
) -> dict[str, str]:
    settings = {
        "options": {name: repr(value) for name, value in inner.options.items()},
        "settings": {name: repr(value) for name, value in inner.settings.items()},
        "uses": problem.uses.model_dump(),
        "columns": [(column.name, column.role) for column in problem.columns],
        "laws": [inner.law, *problem.laws],
        "network": inner.network,
        "folds": folds,
        "test": SHARE if test is None and problem.part is None else test,
    }
    space = {name: dimension.sentence() for name, dimension in whole.items()}
    texts = {"options": settings, "space": space}
    return {"data": problem.fingerprint} | {
        name: hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
        for name, value in texts.items()
    }
