"""The loop of a search: propose, evaluate on the inner folds, remember."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ansatz.errors import DataError, MissingExtraError, NumericalError
from ansatz.fitting.space import Choice, Range, Space
from ansatz.seeds import derive
from ansatz.tuning.inner_folds import InnerFolds, OutOfTime
from ansatz.tuning.journal import Journal, Trial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


STARTUP = 10  # trials at random before the tree of Parzen estimators has something to go by


def require_optuna() -> None:
    """Says how to install optuna where it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("searches (ansatz tune)", "tune") from None


def next_point(space: Space, trials: Sequence[Trial], number: int, seed: int) -> dict[str, Any]:
    """The point that a tree of Parzen estimators proposes, given the trials so far.

    It is a function of space, trials, number and seed alone: the sampler is made anew from them
    for every trial, so that a search that was killed proposes what it would have proposed.

    References:
        Bergstra et al. (2011), Algorithms for hyper-parameter optimization.
        Akiba et al. (2019), Optuna. https://arxiv.org/abs/1907.10902
    """
    require_optuna()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = {name: _distribution(dimension) for name, dimension in space.items()}
    free = {name: d for name, d in distributions.items() if not d.single()}
    sampler = optuna.samplers.TPESampler(
        seed=derive(seed, "trial", number) >> 32, n_startup_trials=STARTUP, multivariate=True
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in trials:
        point = {name: trial.parameters.get(name) for name in free}
        if trial.score is None or None in point.values():
            continue
        encoded = {name: _encode(space[name], value) for name, value in point.items()}
        study.add_trial(
            optuna.trial.create_trial(params=encoded, distributions=free, value=trial.score)
        )
    found = study.ask(distributions).params
    return {name: _decode(space[name], found[name]) for name in space}


def _distribution(dimension: Range | Choice) -> "BaseDistribution":
    from optuna import distributions

    if isinstance(dimension, Choice):  # by place: optuna does not take a list as a value
        return distributions.CategoricalDistribution(list(range(len(dimension.values))))
    if dimension.whole:
        return distributions.IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.log
        )
    return distributions.FloatDistribution(
        float(dimension.low), float(dimension.high), log=dimension.log
    )


def _encode(dimension: Range | Choice, value: Any) -> Any:
    return dimension.values.index(value) if isinstance(dimension, Choice) else value


def _decode(dimension: Range | Choice, value: Any) -> Any:
    if isinstance(dimension, Choice):
        return dimension.values[value]
    if dimension.whole:
        return value
    # Three digits are enough to distinguish trials, and make a recipe that can be read.
    return min(max(float(f"{value:.3g}"), dimension.low), dimension.high)


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
    """Adds trials to the journal until their number is reached, or the time is up.

    Trial 0 is the default recipe, so that the search cannot do worse than it on its own folds.

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
