"""Which point of the space to try next."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ansatz.errors import MissingExtraError
from ansatz.fitting.space import Choice, Range, Space
from ansatz.seeds import derive
from ansatz.tuning.journal import Trial

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

    Args:
        space: what may vary.
        trials: finished ones.
        number: of the trial to come.
        seed: of the search.

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

    if isinstance(dimension, Choice):  # by place: a list is no value that optuna knows
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
    # Three digits are enough to tell trials apart, and make a recipe that can be read.
    return min(max(float(f"{value:.3g}"), dimension.low), dimension.high)
