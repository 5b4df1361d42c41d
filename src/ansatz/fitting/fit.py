"""From a table to a fitted model with its evidence, in one call."""

import sys
import time as clock
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz import data as ansatz_data
from ansatz import structures
from ansatz.data.streams.available import reason_to_stream
from ansatz.errors import ModelError, UsageError
from ansatz.fitting.choice import Choice, choose_law
from ansatz.fitting.duplicates import Keys, content_keys, copied, describe_copies, warn_of_copies
from ansatz.fitting.job import Job
from ansatz.fitting.kinds import make_estimator, split_options
from ansatz.fitting.provenance import Origin, RowMarks, Source, plain, seen_rows
from ansatz.fitting.split import Parts, folds_of, holdout_share, split, take
from ansatz.fitting.posing import default_network, pose_as, structure_of
from ansatz.fitting.problem import Problem
from ansatz.fitting.reading import read_job
from ansatz.fitting.result import Fit, fit_result, log_likelihood
from ansatz.fitting.run import Run, fingerprint
from ansatz.fitting.scores import Scores, cross_validate, judge_all, judge_model
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.uses import Uses
from ansatz.training.distributed import by_first, in_all_processes

WEIGHT_FILES = (".safetensors", ".pth", ".pt")


@in_all_processes
def fit(
    data: Any,
    *,
    target: str | Sequence[str] = (),
    event: str | None = None,
    entry: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    trials: str | None = None,
    x: str | None = None,
    likelihood: str | None = None,
    network: str | None = None,
    inference: str = "point",
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    force: bool = False,
    device: str = "auto",
    seed: int = 0,
    test: float | None = None,
    folds: int | None = None,
    group: str | None = None,
    time: str | None = None,
    weights: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    time_limit: float | None = None,
    progress: str | int = "off",
    tensorboard: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    stream: bool | None = None,
    memory_limit: str | int | None = None,
    **reader: Any,
) -> Fit:
    """Fits a model to a table or to grids and judges it on rows it never saw, beside simpler ones.

    Args:
        data: a file (CSV, gz, Parquet, Arrow, npz), a folder of images, a data set's name, a frame,
            arrays or a mapping.
        target: the column to predict, or several; for survival the time.
        event: 1, or the number of the cause, where the time is that of an event, 0 where the row
            was censored; ``"status=dead"`` names the value that is an event.
        entry: the time from which a row was watched.
        lower: with ``upper`` in place of the target: the outcome lies in (lower, upper].
        upper: missing or infinite where the outcome is only known to be above ``lower``.
        trials: how many tries the target counts the successes of.
        x: what a row looks like: ``"vector"`` or ``"grid"``; None tells by the data.
        likelihood: the law of the target; None chooses among those whose support holds its
            values, by the out-of-fold log score given x within the rows to learn from.
        network: by name; None takes the structure's default, ``"linear"`` fits a GLM.
        inference: ``"point"``, or ``"ensemble"``: several networks, mixed and recalibrated.
        out: the folder to save the model to; None keeps it in memory.
        overwrite: replace what is at ``out``.
        resume: go on where an interrupted run to ``out`` stopped, bit for bit.
        force: resume although data or options changed.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        seed: of split, initial weights, order and dropout.
        test: share of the rows kept for the test; None keeps a fifth, and no row where there is
            no feature.
        folds: judge by so many folds in place of one test share; the model then sees all rows.
        group: rows alike in this column stay on one side of every split.
        time: every split is forward in this column.
        weights: column of frequency weights; or a file of weights (``.safetensors``, ``.pth``)
            that the network begins with, as ``pretrained`` among the options.
        offset: column added to the linear predictor.
        exposure: column whose logarithm is added to the linear predictor.
        roles: what columns are, where the guess would be wrong.
        drop: columns to leave out.
        time_limit: seconds of training.
        progress: ``"auto"`` shows it on stderr.
        tensorboard: folder for TensorBoard logs.
        options: of the estimator (``widths``, ``epochs``, ``learning_rate``, ...), the likelihood
            or the network.
        stream: True reads a file block by block in bounded memory, False all at once; None does
            the former where the table would take more than ``memory_limit``.
        memory_limit: bytes, or a text like ``"4GB"``; None for a quarter of the free memory.
        reader: options of :func:`ansatz.data.read_table`, for images of
            :func:`ansatz.data.grids.read_grids`.

    Example:
        >>> import ansatz
        >>> table = {"x": [k / 50 for k in range(60)], "y": [k / 25 for k in range(60)]}
        >>> fit = ansatz.fit(table, target="y")
        >>> fit.likelihood, fit.rows["test"]
        ('normal', 12)
    """
    began = clock.perf_counter()
    x = structure_of(data, x, image=reader.get("image"))
    structures.registry.get(x)  # a wrong name suggests the nearest right one
    targets = [target] if isinstance(target, str) else list(target)
    weights, options = as_start(weights, options or {})
    uses = Uses(
        target=targets,
        event=event,
        entry=entry,
        lower=lower,
        upper=upper,
        trials=trials,
        weights=weights,
        offset=offset,
        exposure=exposure,
        group=group,
        time=time,
    )
    why = None if x == "grid" else _why_a_stream(data, stream, memory_limit)
    if why is not None:
        from ansatz.structures.vector.streamed_fit import fit_stream  # it makes a Fit

        return fit_stream(
            data,
            uses,
            why=why,
            x=x,
            likelihood=likelihood,
            network=network,
            inference=inference,
            out=out,
            overwrite=overwrite,
            resume=resume,
            force=force,
            device=device,
            seed=seed,
            test=test,
            folds=folds,
            roles=roles,
            drop=drop,
            time_limit=time_limit,
            progress=progress,
            tensorboard=tensorboard,
            options=options,
            reader=reader,
        )
    others, law_options = split_options(likelihood, options)
    problem = pose_as(
        x,
        data,
        uses,
        likelihood=likelihood,
        options=law_options,
        roles=roles,
        drop=drop,
        reader=with_limit(reader, stream, memory_limit) if x == "grid" else reader,
    )
    network = network or default_network(problem)
    settings = {"random_state": seed, "device": device, "time_limit": time_limit}
    estimator = make_estimator(problem, network, inference=inference, options=others, **settings)
    given = test is None and folds is None and problem.part is not None
    if test is None:
        test = 0.2 if problem.has_features else 0.0
    settled = fingerprint(problem, estimator, test=test, folds=folds)
    run = Run(out, overwrite, resume, force, settled)
    finished = run.finished()
    if finished is not None:
        return finished
    job = read_job(problem, estimator)
    if folds is not None and time is not None:
        raise UsageError("--folds mixes past and future; with --time use --test.")
    share = test if folds is None else 0.0
    holdout = holdout_share(job, estimator, share)  # of the law before rows choose one
    parts = split(job, estimator, share, seed, given=given)
    number = None  # of each row's fold; what cannot be parted is refused before training
    if folds is not None:
        number = folds_of(estimator._plain(job), folds, seed)
    choice = _choose(problem, estimator, take(job, parts.learn))
    trainer = {
        "progress": 0 if progress == "off" else progress,
        "tensorboard": tensorboard,
        **run.trainer_options(),
    }
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
    if uses.offset is None and uses.exposure is None and not problem.is_grid:
        result.rows_of = _rows_of(problem, job, parts)
    result.posed = problem, job, parts
    result.origin = Origin(
        source=Source.of(data),
        reader=plain(reader),
        uses=problem.uses.model_dump() if problem.is_grid else uses.model_dump(),
        roles=dict(roles or {}),
        drop=list(drop),
        seed=seed,
        test=test,
        given=given,
        folds=folds,
        holdout=holdout,
        x=x,
        likelihood=likelihood,
        chosen=result.likelihood,
        law_options=plain(problem.law_options),
        network=network,
        inference=inference,
        options=plain(options),
        rows=RowMarks.of(problem, job, parts),
    )
    return run.save(result)


def as_start(
    weights: str | None, options: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, Any]]:
    """A column of weights stays one; a file of weights is what the network begins with.

    Args:
        weights: a column, or a file of weights.
        options: of the fit.

    Example:
        >>> from ansatz.fitting.fit import as_start
        >>> as_start("copies", {"epochs": 5})
        ('copies', {'epochs': 5})
    """
    if weights is None or Path(weights).suffix.lower() not in WEIGHT_FILES:
        return weights, options
    if not Path(weights).is_file():
        raise ModelError(f"{weights}: no such file of weights. Check its name.")
    return None, {"pretrained": weights, **options}


def with_limit(
    reader: dict[str, Any], stream: bool | None, memory_limit: str | int | None
) -> dict[str, Any]:
    """What examples may take in memory; those that stream stay in their files.

    Args:
        reader: options of :func:`ansatz.data.grids.read_grids`.
        stream: True leaves all examples in their files, False none.
        memory_limit: what they may take otherwise.

    Example:
        >>> from ansatz.fitting.fit import with_limit
        >>> with_limit({"size": 32}, None, "4GB")
        {'size': 32, 'memory_limit': '4GB'}
    """
    if stream is not None:
        memory_limit = 1 if stream else sys.maxsize
    return reader if memory_limit is None else {**reader, "memory_limit": memory_limit}


def _why_a_stream(data: Any, stream: bool | None, memory_limit: str | int | None) -> str | None:
    """Why the rows are not read at once; None where they are."""
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if named or not isinstance(data, str | Path):
        if stream:
            raise UsageError("--stream is for files; these data are in memory already.")
        return None
    return reason_to_stream(data, stream=stream, memory_limit=memory_limit)


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
