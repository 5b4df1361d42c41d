"""From a table to a fitted model with its evidence, in one call."""

import time as clock
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import UsageError
from ansatz.fitting.choice import Choice, choose_law
from ansatz.fitting.duplicates import Keys, content_keys, copied, describe_copies, warn_of_copies
from ansatz.fitting.first_steps import (
    estimator_for,
    pose_request,
    why_a_stream,
    with_structure,
)
from ansatz.fitting.job import Job
from ansatz.fitting.provenance import Origin, RowMarks, Source, plain, seen_rows
from ansatz.fitting.split import Parts, folds_of, holdout_share, split, take
from ansatz.fitting.problem import Problem
from ansatz.fitting.reading import read_job
from ansatz.fitting.result import Fit, fit_result, log_likelihood
from ansatz.fitting.run import Run, fingerprint
from ansatz.fitting.scores import Scores, cross_validate, judge_all, judge_model
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.options.option import with_signature
from ansatz.training.distributed import by_first, in_all_processes


@with_signature(FitOptions)
def fit(data: Any, **options: Unpack[FitOptions]) -> Fit:
    """Fits a model to a table or to grids and evaluates it on held-out rows, beside baselines.

    Args:
        data: a file (CSV, gz, Parquet, Arrow, npz), a folder of images, a data set's name, a frame,
            arrays or a mapping.
        options: what the command ``ansatz fit`` takes, by the same names.

    Example:
        >>> import ansatz
        >>> table = {"x": [k / 50 for k in range(60)], "y": [k / 25 for k in range(60)]}
        >>> fit = ansatz.fit(table, target="y")
        >>> fit.likelihood, fit.rows["test"]
        ('normal', 12)
    """
    return fit_request(Request.of(data, options))


@in_all_processes
def fit_request(asked: Request) -> Fit:
    """Fits what was asked for.

    Example:
        >>> from ansatz.fitting.fit import fit_request
        >>> from ansatz.fitting import Request
        >>> table = {"x": range(50), "y": range(50)}
        >>> fit_request(Request.of(table, {"target": "y", "network": "linear"})).network
        'linear'
    """
    began = clock.perf_counter()
    request = with_structure(asked)
    options, seed = request.options, request.options["seed"]
    why = why_a_stream(request)
    if why is not None:
        from ansatz.structures.vector.streamed_fit import fit_stream  # it makes a Fit

        return fit_stream(request, why)
    problem = pose_request(request)
    estimator = estimator_for(request, problem)
    test, folds = options["test"], options["folds"]
    given = test is None and folds is None and problem.part is not None
    if test is None:
        test = 0.2 if problem.has_features else 0.0
    run = Run(request, fingerprint(problem, estimator, test=test, folds=folds))
    finished = run.finished()
    if finished is not None:
        return finished
    job = read_job(problem, estimator)
    if folds is not None and options["time"] is not None:
        raise UsageError("--folds mixes past and future; with --time use --test.")
    share = test if folds is None else 0.0
    holdout = holdout_share(job, estimator, share)  # of the law before rows choose one
    parts = split(job, estimator, share, seed, given=given)
    number = None  # of each row's fold; what cannot be parted is refused before training
    if folds is not None:
        number = folds_of(estimator._plain(job), folds, seed)
    choice = _choose(problem, estimator, take(job, parts.learn))
    trainer = run.trainer_options()
    model = estimator._fit_job(
        take(job, parts.learn)._replace(valid=parts.valid, trainer_options=trainer)
    )
    scores = _scores(estimator, model, job, parts, number)
    keys = content_keys(job.rows, job.y, seed=0)
    model.uses_, model.row_keys_ = problem.uses, np.unique(keys[parts.learn])
    notes = [
        *problem.notes,
        *([] if problem.part is None else [note_on_parts(given, parts)]),
        *describe_copies(keys),
        *(_never_learned(model, job, parts) if problem.kind == "class" else []),
        *_notes_on(choice, number is not None),
        *model.model_.preprocessor.notes,
        *getattr(model, "notes_", []),
        *scores.messages,
        *_copies(model, job, keys, parts),
    ]
    result = fit_result(
        model, problem, parts.counts, scores, notes, seed, clock.perf_counter() - began
    )
    result.candidates = [] if choice is None else choice.to_dicts()
    if result.network == "linear":
        result.log_likelihood = log_likelihood(model, take(job, parts.learn))
    # Effects are of columns, and of models without offsets.
    if options["offset"] is None and options["exposure"] is None and not problem.is_grid:
        result.rows_of = _rows_of(problem, job, parts)
    result.posed = problem, job, parts
    result.origin = Origin(
        source=Source.of(request.data),
        request=request.record(),
        uses=(problem.uses if problem.is_grid else request.column_roles()).model_dump(),
        test=test,
        given=given,
        holdout=holdout,
        chosen=result.likelihood,
        law_options=plain(problem.law_options),
        network=str(estimator.network),
        rows=RowMarks.of(problem, job, parts),
    )
    return run.save(result)


def _choose(problem: Problem, estimator: TableEstimator, learn: Job) -> Choice | None:
    """Lets the rows to learn from choose among the laws that the values allow."""
    if len(problem.laws) == 1:
        return None
    estimator._rehearse(learn)  # what is wrong is said before laws are compared
    choices: list[Choice] = []

    def choose() -> str:
        choices.append(choose_law(estimator, problem.laws, learn))
        return choices[0].law

    # By the first of several processes: one that rounds otherwise might choose otherwise.
    estimator.set_params(likelihood=by_first(choose))
    return choices[0] if choices else None


def note_on_parts(given: bool, parts: Parts) -> str:
    """What became of the parts for training and test that data come in.

    Args:
        given: whether they were kept.
        parts: of the fit.

    Example:
        >>> import numpy as np
        >>> from ansatz.fitting.fit import note_on_parts
        >>> from ansatz.fitting.split import Parts
        >>> note_on_parts(True, Parts(*(np.arange(n) for n in (5, 1, 2))))
        "the test is the data's own, 2 examples (--test 0.2: another)."
    """
    if given:
        return f"the test is the data's own, {len(parts.test)} examples (--test 0.2: another)."
    return "the data's own parts for training and test are mixed, as --test or --folds asks for."


def _notes_on(choice: Choice | None, folds: bool) -> list[str]:
    if choice is None:
        return []
    notes = [choice.explanation, *choice.notes]
    if folds:
        notes.append(
            "the likelihood was chosen on the rows that the folds judge; to judge without that, "
            f"name it: --likelihood {choice.law}."
        )
    return notes


def _scores(
    estimator: TableEstimator,
    model: TableEstimator,
    job: Job,
    parts: Parts,
    number: NDArray[np.intp] | None,
) -> Scores:
    """By folds where each row has a number, else on the test rows, if there are any."""
    if number is not None:
        return cross_validate(estimator, job, number)
    if len(parts.test):
        found = by_first(lambda: judge_all(model, take(job, parts.learn), take(job, parts.test)))
        return Scores(*found)
    return Scores(messages=("no test rows were kept: nothing is known about new rows.",))


def _copies(model: TableEstimator, job: Job, keys: Keys, parts: Parts) -> list[str]:
    """Splits by group or time may part copies: then the metrics without them are told as well."""
    mask = copied(model.row_keys_, keys[parts.test])
    if not mask.any():
        return []
    rest = model._plain(take(job, parts.test[~mask]))
    return warn_of_copies(mask, judge_model(model, rest, []) if len(rest.y) else None)


def _never_learned(model: TableEstimator, job: Job, parts: Parts) -> list[str]:
    """Classes that only the test rows show."""
    tested, learned = (set(job.y[part].long().tolist()) for part in (parts.test, parts.learn))
    absent = [str(model.classes_[k]) for k in sorted(tested - learned)]
    if not absent:
        return []
    more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
    return [f"no row to learn from is of class {', '.join(absent[:5])}{more}, which the test has."]


def _rows_of(problem: Problem, job: Job, parts: Parts) -> dict[str, Any]:
    outcomes = problem.uses.outcomes(seen_rows(problem))
    return {
        name: (job.rows.iloc[rows], outcomes.iloc[rows])
        for name, rows in (("learn", parts.learn), ("test", parts.test))
        if len(rows)
    }
