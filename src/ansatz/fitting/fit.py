"""Fits a model to data and evaluates it, in one call."""

import time as clock
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ansatz import outcomes
from ansatz.errors import UsageError
from ansatz.fitting.choice import LikelihoodChoice, choose_likelihood
from ansatz.fitting.drift import note_on_drift
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model, PointPosterior
from ansatz.fitting.options import FitOptions
from ansatz.fitting.options.option import with_signature
from ansatz.fitting.problem import Problem, read_job, reading, with_structure
from ansatz.fitting.provenance import Provenance, RowChecksums, TableSource
from ansatz.fitting.request import Request
from ansatz.fitting.result import Fit, FitFolder, describe_training, fingerprint
from ansatz.fitting.scores import Scores, cross_validate, evaluate_all
from ansatz.fitting.split import (
    Keys,
    Parts,
    SplitJob,
    are_duplicates,
    describe_duplicates,
    describe_late_rows,
    folds_of,
    holdout_share,
    split,
    warn_of_duplicates,
)
from ansatz.fitting.task import Task, task_of
from ansatz.fitting.validation import check_validation
from ansatz.inference.registry import AUTO, DEFAULT, FEWEST_ROWS, MOST_ROWS
from ansatz.storage.json_file import plain
from ansatz.training.machine import by_first, in_all_processes
from ansatz.training.phase import Phase


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
    """Fits what was asked for."""
    began = clock.perf_counter()
    request = with_structure(asked)
    run = FitFolder(request, {})  # what is in the way is reported before any reading
    progress = request.options["progress"]
    with ExitStack() as stack:
        with Phase(f"reading {place_of(request.data)}", progress, logged=False):
            problem = stack.enter_context(reading(request))
        task = task_of(request, problem)
        test = request.options["test"]
        own = test is None and request.options["folds"] is None and problem.has_own_test
        if test is None:
            share = outcomes.registry.get(problem.kind).test_share
            test = share if problem.rows.has_features else 0.0
        run.fingerprint = fingerprint(problem, task, test=test, folds=request.options["folds"])
        finished = run.finished()
        if finished is not None and not _asks_for_more(task, finished.fitted):
            return finished
        previous = None if finished is None else finished.fitted
        result = _fit(request, problem, task, test, own, run, previous)
    result.seconds = clock.perf_counter() - began
    return run.save(result)


def _fit(
    request: Request,
    problem: Problem,
    task: Task,
    test: float,
    own: bool,
    run: FitFolder,
    previous: Model | None = None,
) -> Fit:
    """Splits the rows, chooses the likelihood, fits, and evaluates beside the baselines."""
    seed, folds = request.options["seed"], request.options["folds"]
    job = read_job(problem, task)
    if folds is not None and problem.column_roles.time is not None:
        raise UsageError("--folds mixes past and future; with --time use --test.")
    if request.options["validation_data"] is not None:
        if folds is not None:
            raise UsageError("--folds fits on other rows each time; with --validation use --test.")
        check_validation(task, job)
    share = test if folds is None else 0.0
    task = task.settle(job, job.mass * (1 - share))
    holdout = holdout_share(job, task, share)  # of the likelihood before rows choose one
    rows = task.structure.split(problem, task, job, share)
    if rows is None:
        rows = SplitJob.of(job, split(job, task, share, seed, given=own))
    # Folds that cannot be made are refused before training.
    number = None if folds is None else folds_of(job, task, folds, seed)
    progress = request.options["progress"]
    choice, task = _choose(problem, task, rows.learn, progress)
    learn = rows.learn._replace(trainer_options=run.trainer_options())
    model = fit_model(task, learn, previous=previous)
    model.column_roles = problem.column_roles
    scores = _scores(model, job, rows, number, progress)
    if len(rows.test.y):
        model.outcome.tested(model, rows.test)
    keys = job.keys() if rows.parts is not None else None
    seen: list[str] = []  # what only all rows can show
    if rows.parts is not None:
        if keys is not None:
            model.row_keys = np.unique(keys[rows.parts.learn])
            seen += describe_duplicates(keys)
        seen += describe_late_rows(job, rows.parts)
        seen += model.outcome.unseen(rows.learn, rows.test)
    notes = [
        *rows.notes,
        *problem.notes,
        *([] if not problem.has_own_test else [note_on_parts(own, len(rows.test.y))]),
        *seen,
        *_notes_on(choice, number is not None),
        *_note_on_inference(request, model),
        *([] if problem.column_roles.time is None else note_on_drift(model, rows.test)),
        *model.encoder.notes,
        *model.notes,
        *_answers(model, rows.test),
        *model.outcome.notes(model),
        *scores.messages,
        *_second_opinion(request, model, rows),
        *_duplicates(model, job, keys, rows.parts),
    ]
    result = Fit(
        fitted=model,
        folder=None,
        structure=model.structure.name,
        network=model.network_name,
        parameters=model.estimated,
        likelihood=model.likelihood_name,
        inference=model.task.settings.inference,
        rows=rows.counts,
        metrics=scores.metrics,
        linear=scores.linear,
        constant=scores.constant,
        baselines=scores.baselines,
        epochs=0 if model.history is None else model.history.epochs,
        seconds=0.0,
        seed=seed,
        notes=notes,
        recipe=describe_training(model),
        columns=problem.columns,
    )
    result.candidates = [] if choice is None else choice.to_dicts()
    if rows.parts is not None:
        if result.network == "linear" and isinstance(model.posterior, PointPosterior):
            result.log_likelihood = model.log_likelihood(rows.learn)
        # Effects are of columns, and of models without offsets.
        if job.offset is None and problem.has_own_columns:
            result.rows_of = _rows_of(problem, job, rows.parts)
        result.split_problem = problem, job, rows.parts
        result.provenance = Provenance(
            source=TableSource.of(request.data),
            request=request.record(),
            validation=_validation_source(request),
            column_roles=(
                request.column_roles() if problem.has_own_columns else problem.column_roles
            ).model_dump(exclude={"spellings"}),
            test=test,
            given=own,
            holdout=holdout,
            chosen=result.likelihood,
            likelihood_options=plain(problem.likelihood_options),
            network=str(task.settings.network),
            rows=RowChecksums.of(problem, job, rows.parts),
            default_inference=AUTO,
        )
    return result


def _asks_for_more(task: Task, model: Model) -> bool:
    """Whether a finished model is of chains that are shorter than what is asked for."""
    drawn = getattr(model.posterior, "drawn", 0)
    return bool(drawn) and (task.settings.get("draws") or 0) > drawn


def _answers(model: Model, test: Job) -> list[str]:
    """Which question the test rows answer, where groups vary."""
    describe = getattr(model.posterior, "answers", None)
    return [] if describe is None or not len(test.y) else list(describe(test.rows))


def _validation_source(request: Request) -> TableSource | None:
    data = request.options["validation_data"]
    return None if data is None else TableSource.of(data)


def _choose(
    problem: Problem, task: Task, learn: Job, progress: int | str
) -> tuple[LikelihoodChoice | None, Task]:
    """Lets the training rows choose among the likelihoods that the values allow."""
    own = getattr(task.inference, "likelihoods", ())
    candidates = [name for name in problem.candidates if not own or name in own]
    candidates = candidates or problem.candidates[:1]
    if len(problem.candidates) == 1:
        return None, task
    if len(candidates) == 1:
        return None, task.change(likelihood=candidates[0])
    task.check_settings(learn)  # raises what is wrong before likelihoods are compared
    choices: list[LikelihoodChoice] = []

    def choose() -> str:
        words = f"choosing among {len(candidates)} likelihoods"
        with Phase(words, progress) as phase:
            choices.append(choose_likelihood(task, candidates, learn, phase.show))
        return choices[0].likelihood

    # By the first of several processes: one that rounds otherwise might choose otherwise.
    likelihood = by_first(choose)
    return choices[0] if choices else None, task.change(likelihood=likelihood)


def place_of(data: Any) -> str:
    """Names data for a line of progress."""
    return Path(data).name or str(data) if isinstance(data, str | Path) else "the data"


def _note_on_inference(request: Request, model: Model) -> list[str]:
    """Reports an inference that was chosen by the number of rows."""
    name = model.task.settings.inference
    if request.options["inference"] != AUTO or name == DEFAULT:
        return []
    return [
        f"inference {name}: the default for {FEWEST_ROWS} to {MOST_ROWS:,} training rows of a "
        f"table (one network: --inference {DEFAULT})."
    ]


def note_on_parts(given: bool, count: int) -> str:
    """Reports whether the data's own parts for training and test were used."""
    if given:
        return f"the test is the data's own, {count} examples (--test 0.2: another)."
    return "the data's own parts for training and test are mixed, as --test or --folds asks for."


def _notes_on(choice: LikelihoodChoice | None, folds: bool) -> list[str]:
    if choice is None:
        return []
    notes = [choice.explanation, *choice.notes]
    if folds:
        notes.append(
            "the likelihood was chosen on the rows that the folds evaluate; to evaluate without "
            f"that, name it: --likelihood {choice.likelihood}."
        )
    return notes


def _second_opinion(request: Request, model: Model, rows: SplitJob) -> list[str]:
    """Compares a likelihood that nobody named with a simpler model on the test rows."""
    if request.options["likelihood"] is not None or not len(rows.test.y):
        return []
    return by_first(lambda: model.outcome.second_opinion(model, rows.learn, rows.test))


def _scores(
    model: Model,
    job: Job,
    rows: SplitJob,
    number: NDArray[np.intp] | None,
    progress: int | str,
) -> Scores:
    """Scores the model by folds if there are folds, else on the test rows if there are any."""
    if number is not None:
        with Phase("fitting the folds", progress) as phase:
            return cross_validate(model.task, job, number, phase.show)
    if len(rows.test.y):
        with Phase("fitting the baselines and evaluating the test rows", progress):
            return Scores(*by_first(lambda: evaluate_all(model, rows.learn, rows.test)))
    return Scores(messages=("no test rows were kept: nothing is known about new rows.",))


def _duplicates(model: Model, job: Job, keys: Keys | None, parts: Parts | None) -> list[str]:
    """Metrics without duplicates of training rows, which splits by group or time may separate."""
    if keys is None or parts is None or model.row_keys is None:
        return []
    mask = are_duplicates(model.row_keys, keys[parts.test])
    if not mask.any():
        return []
    rest = model.outcome.plain(take(job, parts.test[~mask]))
    return warn_of_duplicates(mask, model.evaluate(rest) if len(rest.y) else None)


def _rows_of(problem: Problem, job: Job, parts: Parts) -> dict[str, Any]:
    outcomes = problem.column_roles.outcomes(problem.seen)
    return {
        name: (job.rows[rows].values, outcomes.iloc[rows])  # type: ignore[attr-defined]
        for name, rows in (("learn", parts.learn), ("test", parts.test))
        if len(rows)
    }
