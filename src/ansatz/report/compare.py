"""Compares two models on their test rows, or two methods by refits on many splits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job, take
from ansatz.fitting.replay import Replay, replay
from ansatz.fitting.split import are_duplicates, warn_of_training_rows
from ansatz.report.difference import (
    FEW_GROUPS,
    FEW_ROWS,
    Difference,
    fits_verdict,
    paired_difference,
)
from ansatz.report.methods import (
    Methods,
    Progress,
    Setting,
    candidate,
    compare_methods,
    methods_verdict,
    recipe_difference,
)
from ansatz.report.nested import NestedModels, nested_models
from ansatz.report.paired_scores import (
    Evaluated,
    ScorePair,
    evaluate_rows,
    require_same_kind,
    require_same_outcomes,
    score_pair,
)

Model = Any  # a folder, a Fit, an estimator or its fitting.Model


@dataclass
class Scored:
    """A score of both models and their paired difference."""

    name: str
    higher: bool  # whether larger is better
    a: float
    b: float
    difference: Difference  # of the gains: positive where a is better

    def to_dict(self) -> dict[str, Any]:
        """As plain data; ``difference`` is a - b, in the score's own direction."""
        sign = 1.0 if self.higher else -1.0
        found = self.difference
        return {
            "score": self.name,
            "higher_is_better": self.higher,
            "a": _finite(self.a),
            "b": _finite(self.b),
            "difference": _finite(sign * found.mean),
            "standard_error": found.error,
            "method": found.method,
            "rows": found.rows,
            "worst_rows": found.worst_rows,
            "worst_share": found.worst_share,
        }


@dataclass
class Comparison:
    """The result of ``ansatz.compare``."""

    a: str  # the first model's name
    b: str  # the other's; of more than two, the chosen one
    verdict: str  # one sentence
    better: str | None  # name of the better one, or None
    cautions: list[str] = field(default_factory=list)  # warnings about the comparison
    scores: list[Scored] = field(default_factory=list)  # the log score and a second one
    metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)  # by model
    methods: Methods | None = None  # of refits, where asked for
    differs: list[Setting] = field(default_factory=list)  # the settings that differ
    nested: NestedModels | None = None  # tests, of linear models one of which contains the other

    def to_dict(self) -> dict[str, Any]:
        """The document of ``ansatz compare --json``."""
        return {
            "a": self.a,
            "b": self.b,
            "verdict": self.verdict,
            "better": self.better,
            "cautions": self.cautions,
            "scores": [score.to_dict() for score in self.scores],
            "metrics": self.metrics,
            "methods": None if self.methods is None else _methods_dict(self.methods),
            "differs": [setting._asdict() for setting in self.differs],
            "nested": None if self.nested is None else self.nested.to_dict(),
        }


def compare(
    a: Model,
    b: Model,
    *others: Model,
    data: Any = None,
    refit: bool = False,
    folds: int = 5,
    repeats: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compares models on test rows that none of them was trained on.

    The scores are subtracted row by row; the mean difference is tested by its standard error,
    which accounts for groups and time. Below two standard errors the models are not
    distinguishable. With ``refit`` the methods are compared: both are refitted on the same folds
    of all rows. Of more than two models, refits on folds of the training rows choose one, and the
    test rows then compare that one with the first.

    Args:
        a: a model's folder, a ``Fit``, or a model that ``ansatz.fit`` made.
        b: another.
        others: more of them.
        data: the table, if it moved or was in memory; for models of ``estimator.fit``, held-out
            rows ``(X, y)``.
        refit: compare the methods by repeated cross-validation.
        folds: number of folds of each repetition.
        repeats: number of repetitions.
        seed: of folds and refits.
        progress: called with the number of refits done and of all.

    Raises:
        DataError: the models have different test rows, or scores that are not comparable.

    Example:
        >>> import ansatz
        >>> table = {"x": range(60), "y": [k / 9 + k % 5 for k in range(60)]}
        >>> fits = [
        ...     ansatz.fit(table, target="y", likelihood=likelihood, network="linear")
        ...     for likelihood in ("normal", "laplace")
        ... ]
        >>> print(ansatz.compare(*fits).verdict)
        Not distinguishable: ...

    References:
        Diebold and Mariano (1995), Comparing predictive accuracy.
        Nadeau and Bengio (2003), Inference for the generalization error.
    """
    found = [replay(model, data) for model in (a, b, *others)]
    found = [each._replace(name=name) for each, name in zip(found, _names(found), strict=True)]
    if len(found) > 2:
        return _compare_many(found, refit, folds, repeats, seed, progress)
    if refit:
        return _compare_refits(found, folds, repeats, seed, progress)
    return compare_fits(*found)


def compare_fits(a: Replay, b: Replay) -> Comparison:
    """Compares two models on their common test rows."""
    nested = nested_models(a, b)
    if nested is not None and not len(a.parts.test) and not len(b.parts.test):
        verdict = "No test rows were kept: the models are compared by the test of their columns."
        return Comparison(
            *(a.name, b.name, verdict, None),
            differs=recipe_difference(a.model, b.model),
            nested=nested,
        )
    first, second, cautions = _on_test_rows(a, b)
    scores, pair = _scored(first, second)
    verdict, better = fits_verdict(first.name, second.name, scores[0].difference, pair)
    if pair.note:
        cautions.append(pair.note)
    cautions += _cautions(first.name, second.name, scores)
    return Comparison(
        a=a.name,
        b=b.name,
        verdict=verdict,
        better=better,
        cautions=cautions,
        scores=scores,
        metrics={evaluated.name: evaluated.metrics() for evaluated in (first, second)},
        differs=recipe_difference(a.model, b.model),
        nested=nested,
    )


def _compare_refits(
    found: Sequence[Replay], folds: int, repeats: int, seed: int, progress: Progress | None
) -> Comparison:
    _check_folds(folds, repeats)
    methods = compare_methods(
        [candidate(each) for each in found],
        folds=folds,
        repeats=repeats,
        seed=seed,
        progress=progress,
    )
    verdict, better = methods_verdict(methods)
    cautions = [*methods.notes, *_kept_likelihoods(found)]
    if methods.rows < FEW_ROWS:
        cautions.append(f"{methods.rows} rows: the standard error is unreliable below {FEW_ROWS}.")
    a, b = found
    result = Comparison(a.name, b.name, verdict, better, cautions, methods=methods)
    result.differs = recipe_difference(a.model, b.model)
    return result


def _compare_many(
    found: Sequence[Replay],
    refit: bool,
    folds: int,
    repeats: int,
    seed: int,
    progress: Progress | None,
) -> Comparison:
    """Chooses by folds of the training rows; the test rows evaluate once."""
    _check_folds(folds, repeats)
    for other in found[1:]:
        _require_same_test_rows(found[0], other)
    methods = compare_methods(
        [candidate(each) for each in found],
        rows=None if refit else found[0].parts.learn,
        folds=folds,
        repeats=repeats,
        seed=seed,
        progress=progress,
    )
    best = methods.best.name
    chosen = next(each for each in found if each.name == best)
    if refit or chosen is found[0]:
        verdict, better = methods_verdict(methods)
        result = Comparison(found[0].name, best, verdict, better, methods=methods)
        if not refit:
            result.cautions.append("the test rows were not used: the first model was chosen.")
    else:
        result = compare_fits(found[0], chosen)
        result.methods = methods
        result.verdict = (
            f"{best} was chosen by cross-validation. On the test rows: {result.verdict}"
        )
    result.cautions += [*methods.notes, *_kept_likelihoods(found)]
    result.differs = recipe_difference(found[0].model, chosen.model)
    return result


def _on_test_rows(a: Replay, b: Replay) -> tuple[Evaluated, Evaluated, list[str]]:
    """Evaluates both models on the same rows in the same order, with warnings."""
    _require_same_test_rows(a, b)
    cautions = []
    jobs = [_ordered(each.model.outcome.plain(each.test)) for each in (a, b)]
    if not (jobs[0].weight == jobs[1].weight).all():
        cautions.append("the models weigh the rows differently: here every row counts once.")
        jobs = [job._replace(weight=job.weight * 0 + 1) for job in jobs]
    if a.provenance is not None and b.provenance is not None:
        if a.provenance.rows.table != b.provenance.rows.table:
            cautions.append("the tables differ: rows were matched by their number and outcome.")
    cautions += [each for pair in zip((a, b), jobs, strict=True) for each in _trained_on(*pair)]
    first, second = (
        evaluate_rows(each.name, each.model, job) for each, job in zip((a, b), jobs, strict=True)
    )
    require_same_kind(first, second)
    require_same_outcomes(first, second)
    return first, second, cautions


def _trained_on(found: Replay, job: Job) -> list[str]:
    """Warns of given rows that a model was trained on, or may have been."""
    if found.provenance is not None:  # the test rows of its fit
        return []
    if found.model.row_keys is None:
        return [f"it is not known whether {found.name} was trained on these rows."]
    count = int(are_duplicates(found.model.row_keys, job.keys()).sum())
    return [f"{found.name}: {each}" for each in warn_of_training_rows(count, len(job.y))]


def _ordered(job: Job) -> Job:
    return take(job, np.argsort(job.index.numpy(), kind="stable"))


def _require_same_test_rows(a: Replay, b: Replay) -> None:
    for each in (a, b):
        if not len(each.parts.test):
            raise DataError(
                f"{each.name} has no test rows: fit it with --test 0.2, or compare the methods "
                "with --refit."
            )
    rows = [set(each.test.index.tolist()) for each in (a, b)]
    if rows[0] == rows[1]:
        return
    common = len(rows[0] & rows[1])
    advice = ""
    if all(each.model.task.is_solved(each.job) for each in (a, b)):
        advice = " Nested linear models are tested on all rows: fit both with --test 0."
    raise DataError(
        f"{a.name} and {b.name} have different test rows ({len(rows[0])} and {len(rows[1])}, "
        f"{common} in common), which depend on seed, share and columns: fit both with the same, "
        f"or compare the methods with --refit.{advice}"
    )


def _scored(a: Evaluated, b: Evaluated) -> tuple[list[Scored], ScorePair]:
    main = score_pair(a, b)
    beside = a.outcome_report.score_beside(a, b)
    group = a.job.group if a.job.group is not None else b.job.group
    time = a.job.time if a.job.time is not None else b.job.time
    weight = a.job.weight.numpy()
    scores = []
    for pair in (main, beside):
        if pair is None:
            continue
        better, worse = (pair.a, pair.b) if pair.higher else (-pair.a, -pair.b)
        scores.append(
            Scored(
                pair.name,
                pair.higher,
                float(np.average(pair.a, weights=weight)),
                float(np.average(pair.b, weights=weight)),
                paired_difference(better, worse, weight, group=group, time=time),
            )
        )
    return scores, main


def _cautions(a: str, b: str, scores: list[Scored]) -> list[str]:
    main = scores[0].difference
    found = []
    if main.rows < FEW_ROWS:
        found.append(f"{main.rows} test rows: the standard error is unreliable below {FEW_ROWS}.")
    elif main.units < FEW_GROUPS:
        found.append(
            f"the standard error is based on {main.units} groups or time points: unreliable below "
            f"{FEW_GROUPS}."
        )
    if main.worst_share is not None and main.is_clear and main.worst_share > 0.5:
        count = "row" if main.worst_rows == 1 else f"{main.worst_rows} rows"
        found.append(
            f"{100 * main.worst_share:.0f} % of the difference comes from the {count} on which "
            "the models differ most: look at them."
        )
    if len(scores) > 1:
        other = scores[1].difference
        if main.is_clear and other.is_clear and (main.mean > 0) != (other.mean > 0):
            winner = a if other.mean > 0 else b
            found.append(f"by {scores[1].name} {winner} is better: the two scores disagree.")
    return found


def _kept_likelihoods(found: Sequence[Replay]) -> list[str]:
    chosen = [
        each.name
        for each in found
        if each.provenance is not None and not each.provenance.asked.options["likelihood"]
    ]
    if not chosen or all(each.provenance is not None and _one_likelihood(each) for each in found):
        return []
    return [f"refits keep the likelihood that the rows chose for {', '.join(chosen)}."]


def _one_likelihood(found: Replay) -> bool:
    return found.problem is not None and len(found.problem.candidates) == 1


def _check_folds(folds: int, repeats: int) -> None:
    if folds < 2 or repeats < 1:
        raise UsageError(f"--folds from 2 and --repeats from 1, got {folds} and {repeats}.")


def _names(found: Sequence[Replay]) -> list[str]:
    """Names the models by their folders, else by whole paths or letters, so that names differ."""
    short = [Path(each.name).name for each in found]
    if len(set(short)) == len(short):
        return short
    whole = [each.name for each in found]
    if len(set(whole)) == len(whole):
        return whole
    return [f"{name} ({chr(ord('A') + k)})" for k, name in enumerate(short)]


def _methods_dict(methods: Methods) -> dict[str, Any]:
    kept = {name: value for name, value in methods._asdict().items() if name != "table"}
    table = [
        {**method._asdict(), "score": _finite(method.score), "gain": _finite(method.gain)}
        for method in methods.table
    ]
    return {**kept, "notes": list(methods.notes), "best": methods.best.name, "table": table}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
