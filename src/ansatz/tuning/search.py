"""The loop of a search: propose, evaluate on the inner folds, remember."""

import time
from collections.abc import Callable
from typing import Any

from ansatz.errors import DataError, NumericalError
from ansatz.fitting.space import Space
from ansatz.tuning.inner_folds import InnerFolds, OutOfTime
from ansatz.tuning.journal import Journal, Trial
from ansatz.tuning.sampler import next_point

Progress = Callable[[int, int, str], None]


def search(
    folds: InnerFolds,
    space: Space,
    journal: Journal,
    *,
    default: dict[str, Any] | None,
    trials: int,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> bool:
    """Adds trials to the journal until there are so many, or the time is up.

    Trial 0 is the default recipe, so that the search cannot do worse than it on its own folds.

    Args:
        folds: evaluate configurations.
        space: what may vary.
        journal: finished trials, some of them perhaps from an earlier run.
        default: the default recipe as a point of the space, if it lies in it.
        trials: how many in all, the default not counted.
        time_limit: seconds from now.
        progress: called with trials done, their number in all, and the best so far.

    Returns:
        Whether the time was up before the trials were done.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    while len(journal.trials) <= trials:
        number = len(journal.trials)
        if number and deadline is not None and time.monotonic() > deadline:
            return True
        point = (
            default or {} if number == 0 else next_point(space, journal.trials, number, folds.seed)
        )
        try:
            # The default is evaluated as a fit would do it: its recipe may depend on the rows.
            trial = _evaluate(folds, number, point, None if number == 0 else deadline)
        except OutOfTime:
            return True
        journal.add(trial)
        if progress is not None:
            progress(number, trials, _so_far(journal.trials))
    return False


def best_of(trials: list[Trial]) -> Trial:
    """The trial of the best score, the earliest of equals."""
    done = [trial for trial in trials if trial.score is not None]
    if not done:
        raise NumericalError(f"no trial could be fitted: {trials[0].reason}")
    return max(done, key=lambda trial: (trial.score or 0.0, -trial.number))


def _evaluate(
    folds: InnerFolds, number: int, point: dict[str, Any], deadline: float | None
) -> Trial:
    began = time.perf_counter()
    try:
        scores = folds.scores(point if number else {}, deadline)
    except (NumericalError, DataError) as error:
        seconds = time.perf_counter() - began
        return Trial(
            number=number, parameters=point, state="failed", reason=str(error), seconds=seconds
        )
    seconds = time.perf_counter() - began
    return Trial(number=number, parameters=point, scores=scores, seconds=seconds)


def _so_far(trials: list[Trial]) -> str:
    done = [trial for trial in trials if trial.score is not None]
    if not done:
        return "no trial could be fitted yet"
    best = best_of(done)
    name = "the default" if best.number == 0 else f"trial {best.number}"
    return f"best so far {best.score:.4g} ({name})"
