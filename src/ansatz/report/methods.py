"""Compares methods by refitting each on the same folds."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ansatz import outcomes
from ansatz.data import row_keys
from ansatz.errors import DataError, UsageError
from ansatz.fitting import FitOptions
from ansatz.fitting.contracts.rows import Rows as Examples
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model
from ansatz.fitting.options import declared
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.problem import read_job
from ansatz.fitting.provenance import provenance_of
from ansatz.fitting.replay import Replay
from ansatz.fitting.split import Rows
from ansatz.fitting.summaries import describe_model
from ansatz.fitting.task import Task
from ansatz.report.difference import CLEAR, corrected_error, score_words
from ansatz.report.paired_scores import evaluate_rows, score_pair
from ansatz.seeds import derive
from ansatz.storage.json_file import plain

Progress = Callable[[int, int], None]


class Candidate(NamedTuple):
    """A method: its task and the rows as that task reads them."""

    name: str
    task: Task  # its outcome has read the rows
    job: Job


class Method(NamedTuple):
    """The cross-validated score of a method and its gain over the first."""

    name: str  # of the method
    score: float  # its mean over the splits
    gain: float  # the mean by which it is better than the first; negative: worse
    error: float | None  # Nadeau and Bengio's standard error of the gain; None where undefined

    @property
    def is_clear(self) -> bool:
        """Whether the gain is at least two standard errors from 0."""
        return self.error is not None and abs(self.gain) >= CLEAR * self.error > 0


class Methods(NamedTuple):
    """The scores of several methods on the same splits; the first is the reference."""

    table: list[Method]
    score: str  # what it is called
    higher: bool
    folds: int
    repeats: int
    rows: int
    tested: float  # mean number of test rows of a split
    learned: float
    notes: tuple[str, ...]

    @property
    def best(self) -> Method:
        """The method of the best mean score."""
        return max(self.table, key=lambda method: method.gain)


def candidate(found: Replay) -> Candidate:
    """Prepares the method of a model to be refitted on some of its rows."""
    if found.problem is None:
        raise UsageError(
            f"{found.name} was made by estimator.fit(X, y) and has no record to refit it from: fit "
            "it with ansatz.fit."
        )
    task = found.model.task
    task = task._replace(outcome=outcomes.create(task.outcome.name))
    return Candidate(found.name, task, read_job(found.problem, task))


def compare_methods(
    candidates: Sequence[Candidate],
    *,
    rows: Rows | None = None,
    folds: int = 5,
    repeats: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Methods:
    """Fits every method on the same folds and compares their scores on the held-out rows.

    The standard error of a gain is that of Nadeau and Bengio, as folds share their rows. Rows
    ordered by time are predicted from their past, without repetition: the folds would be the same.
    """
    _require_same_rows(candidates)
    first = candidates[0]
    used: Rows = np.arange(len(first.job.y), dtype=np.intp) if rows is None else rows
    if first.job.time is not None:
        repeats = 1
    splits = list(_splits(candidates, used, folds, repeats, seed))
    if len(splits) < 2:
        raise DataError(f"{len(used)} rows or their groups cannot be split into {folds} folds.")
    total, done = len(splits) * len(candidates), 0
    scores = np.zeros((len(splits), len(candidates)))
    gains = np.zeros((len(splits), len(candidates)))
    name, higher, notes = "log score", True, dict[str, None]()
    for place, (inside, outside, state) in enumerate(splits):
        evaluated = []
        for each in candidates:
            model = _refit(each, inside, state)
            evaluated.append(evaluate_rows(each.name, model, take(each.job, outside)))
            done += 1
            if progress is not None:
                progress(done, total)
        weight = evaluated[0].job.weight.numpy()
        for k, other in enumerate(evaluated):
            pair = score_pair(evaluated[0], other)
            name, higher = pair.name, pair.higher
            scores[place, k] = np.average(pair.b, weights=weight)
            gains[place, k] = np.average(-pair.gain, weights=weight)
            if pair.note:
                notes[pair.note] = None
    tested = float(np.mean([len(outside) for _, outside, _ in splits]))
    learned = float(np.mean([len(inside) for inside, _, _ in splits]))
    table = [
        Method(
            each.name, float(scores[:, k].mean()), *corrected_error(gains[:, k], tested, learned)
        )
        for k, each in enumerate(candidates)
    ]
    return Methods(
        *(table, name, higher, len(splits) // repeats, repeats, len(used)),
        tested=tested,
        learned=learned,
        notes=tuple(notes),
    )


def methods_verdict(methods: Methods) -> tuple[str, str | None]:
    """Writes which method is better on average over refits; None if the difference is noise."""
    first, *others = methods.table
    best = max(others, key=lambda method: method.gain)
    winner, loser = (best, first) if best.gain > 0 else (first, best)
    refits = f"over {methods.folds * methods.repeats} refits"
    if math.isinf(best.gain):
        words = f"{loser.name} gives some outcomes probability 0 {refits}"
        return f"{winner.name} is the better method: {words}.", winner.name
    if best.error is None or math.isnan(best.gain):
        return f"Not comparable: the scores are not finite {refits}.", None
    name, size, error = score_words(methods.score), f"{abs(best.gain):.2g}", f"{best.error:.2g}"
    if not best.is_clear:
        words = f"{best.name} and {first.name} differ by {size} in {name}"
        error = f"a corrected standard error of {error} {refits}"
        return f"Not distinguishable as methods: {words} with {error}.", None
    direction = "higher" if methods.higher else "lower"
    words = f"its {name} is {direction} by {size} (corrected standard error {error}) {refits}"
    return f"{winner.name} is the better method: {words}.", winner.name


def _refit(each: Candidate, inside: Rows, state: int) -> Model:
    part = take(each.job, inside)._replace(valid=None, trainer_options={})
    return fit_model(each.task.change(seed=state), part)


def _splits(
    candidates: Sequence[Candidate], used: Rows, folds: int, repeats: int, seed: int
) -> Iterator[tuple[Rows, Rows, int]]:
    """Yields training rows, test rows and the seed of the refits."""
    shared = take(candidates[0].job, used)._replace(rows=_common(candidates, used, folds))
    for repeat in range(repeats):
        parts: Folds = choose_folds(shared, folds, derive(seed, "compare", repeat) >> 32)
        for k, (inside, outside) in enumerate(parts):
            if len(inside) and len(outside):
                yield used[inside], used[outside], derive(seed, "refit", repeat, k) >> 32


def _common(candidates: Sequence[Candidate], used: Rows, folds: int) -> Examples:
    """The features common to all methods, by which duplicate rows are found.

    If these distinguish too few rows, the first method's features.
    """
    rows = [each.job.rows for each in candidates]
    shared = candidates[0].task.structure.shared(rows)[used]
    if len(np.unique(row_keys(shared))) >= 10 * folds:
        return shared
    return rows[0][used]


def _require_same_rows(candidates: Sequence[Candidate]) -> None:
    first = candidates[0]
    index = first.job.index.numpy()
    for other in candidates[1:]:
        if not np.array_equal(index, other.job.index.numpy()):
            raise DataError(
                f"{first.name} and {other.name} have different rows: {len(index)} and "
                f"{len(other.job.index)} with an outcome and a weight. Fit both to one table."
            )


# Options of a fit that other entries repeat.
_REPEATED = ("options", "network", "inference", "pretrained", "freeze", "test")


class Setting(NamedTuple):
    """One setting that differs; None where a model does not have it."""

    name: str
    a: Any
    b: Any


def recipe_difference(a: Model, b: Model) -> list[Setting]:
    """Lists the likelihood, network, training, column and split settings that differ."""
    first, second = recipe_of(a), recipe_of(b)
    recipes = [model.recipe for model in (a, b)]
    if (recipes[0] is None) != (recipes[1] is None):  # nothing of a training to set side by side
        for found, recipe in zip((first, second), recipes, strict=True):
            steps = "solved exactly" if recipe is None else f"AdamW, {recipe.steps} steps"
            for name in () if recipe is None else type(recipe).model_fields:
                found.pop(name, None)
            found["training"] = steps
        first.pop("holdout", None)
        second.pop("holdout", None)
    return [
        Setting(name, first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def recipe_of(model: Model) -> dict[str, Any]:
    """Flattens every setting of a fitted model by name."""
    described = describe_model(model)
    origin = provenance_of(model)
    found: dict[str, Any] = {"likelihood": described["likelihood"]}
    found |= {
        f"likelihood.{name}": value for name, value in described["likelihood_options"].items()
    }
    found["network"] = described["network"]
    found |= {
        f"network.{name}": value for name, value in (described["network_options"] or {}).items()
    }
    found["inference"] = described["inference"]
    if model.recipe is not None:
        mlp = ("widths", "activation", "dropout")  # listed as options of the network
        fields = model.recipe.model_dump(mode="json")
        found |= {name: value for name, value in fields.items() if name not in mlp}
    found |= _other_parameters(model, found)
    names = [column["name"] for column in described["columns"]]
    found["columns"] = ", ".join(map(str, names))
    if origin is not None:
        deciding = {name for name, each in declared(FitOptions).items() if each.option.decides}
        deciding -= {
            *_REPEATED,
            *origin.column_roles,
            *found,
        }  # what was fitted, not what was asked
        asked = {name: value for name, value in origin.asked.options.items() if name in deciding}
        found |= {name: value for name, value in origin.column_roles.items() if value} | asked
        found |= {"test": origin.test, "given": origin.given, "holdout": origin.holdout}
    found["parameters"] = described["parameters"]
    return {name: plain(value) for name, value in found.items()}


def _other_parameters(model: Model, known: dict[str, Any]) -> dict[str, Any]:
    """Settings that are in neither the recipe nor the options of the network."""
    silent = {"likelihood_options", "network_options", "random_state", "widths", "activation"}
    silent |= {"dropout", "n_jobs", "device", "verbose", "warm_start", "time_limit", "epochs"}
    return {
        name: value
        for name, value in model.task.settings.arguments.items()
        if name not in silent and name not in known and value is not None
    }
