"""A fit of a table that does not fit in memory: the same steps, each in bounded memory."""

import time as clock
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz import likelihoods
from ansatz.data.streams import HashSplit, Learner
from ansatz.data.streams.folder import stream_folder
from ansatz.data.streams.hash_split import TEST, TRAIN, VALID
from ansatz.errors import DataError, UsageError
from ansatz.estimators.classifier import Classifier
from ansatz.estimators.survival import SurvivalRegressor
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting import Request
from ansatz.fitting.choice import Choice, choose_law
from ansatz.fitting.first_steps import estimator_for, pose_streamed
from ansatz.fitting.job import Job
from ansatz.fitting.reading import read_job
from ansatz.fitting.result import Fit, fit_result
from ansatz.fitting.run import Run, fingerprint
from ansatz.fitting.scores import Scores
from ansatz.fitting.uses import Uses
from ansatz.likelihoods import CrossEntropy, Focal
from ansatz.outcomes.survival_metrics import Followed
from ansatz.structures.vector.stream_parts import SAMPLED, StreamParts, divide
from ansatz.structures.vector.stream_problem import StreamProblem
from ansatz.structures.vector.streamed_rows import StreamedRows
from ansatz.structures.vector.streamed_scores import judge_stream
from ansatz.structures.vector.streamed_training import thinned, train_stream

RECALIBRATED = 20_000  # rows that a temperature is estimated from, by refits


def fit_stream(
    request: Request,
    why: str = "",
    *,
    sampled: int = SAMPLED,
    window: int | None = None,
    **blocks: Any,
) -> Fit:
    r"""Fits a model to a table on disk in bounded memory, and evaluates it on held-out rows.

    The table is read twice before training: once for what its columns are, once for the split,
    the training rows' statistics, and a sample of each part. Every epoch then reads its blocks in
    a new order.

    Args:
        request: with a file (CSV, gz, Parquet, Arrow), a folder of Parquet parts, or a pattern of
            names. A likelihood that nobody named is chosen on a sample of the training rows, and
            ``"linear"`` is fitted to one; the share of test rows is met as a coin meets it.
        why: why this is a stream, for the notes.
        sampled: rows of each part that are held in memory.
        window: blocks whose rows are mixed.
        blocks: options of :func:`ansatz.data.streams.open_blocks`.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.structures.vector.streamed_fit import fit_stream
        >>> from ansatz.fitting import Request
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
        >>> rows = "".join(f"{k / 7},{k / 3}\n" for k in range(200))
        >>> _ = path.write_text("x,y\n" + rows)
        >>> asked = {"target": "y", "likelihood": "normal", "options": {"epochs": 2}}
        >>> sum(fit_stream(Request.of(path, asked)).rows.values())
        200
    """
    began = clock.perf_counter()
    options, seed = request.options, request.options["seed"]
    inference, folds = options["inference"], options["folds"]
    refuse_what_cannot_stream(request.column_roles(), options["likelihood"], inference, folds)
    run = Run(request, {})  # what is in the way is said before any reading
    with stream_folder(options["out"]) as folder:
        posed = pose_streamed(request, folder, **blocks)
        problem = posed.problem
        refuse_what_cannot_stream(problem.uses, problem.likelihood, inference, folds)
        if problem.kind == "ranking":
            raise UsageError("rankings are fitted in memory: --no-stream")
        estimator = estimator_for(request, problem)
        test = options["test"]
        if test is None:
            test = 0.2 if problem.columns else 0.0
        order = posed.blocks.counts  # they decide the order of the rows
        run.fingerprint = fingerprint(problem, estimator, test=test, blocks=order)
        finished = run.finished()
        if finished is not None:
            return finished
        rows, split = _prepare(posed, estimator, test, seed)
        parts = _divide(rows, split, estimator, folder, sampled)
        learn, valid, judged = (_sample_job(rows, parts, k) for k in (TRAIN, VALID, TEST))
        assert learn is not None
        choice = _choose(problem.laws, estimator, learn)
        _fit(estimator, rows, parts, learn, valid, run.trainer_options(), window)
        scores = Scores(messages=("no test rows were kept: nothing is known about new rows.",))
        if judged is not None:
            scores = judge_stream(estimator, rows, parts, learn, judged)
    estimator.uses_ = problem.uses
    notes = [
        *([why] if why else []),
        *_notes_on(posed, parts, estimator, test),
        *problem.notes,
        *([] if choice is None else [choice.explanation, *choice.notes]),
        *estimator.model_.preprocessor.notes,
        *getattr(estimator, "notes_", []),
        *scores.messages,
    ]
    seconds = clock.perf_counter() - began
    result = fit_result(estimator, problem, parts.counts, scores, notes, seed, seconds)
    result.candidates = [] if choice is None else choice.to_dicts()
    return run.save(result)


def refuse_what_cannot_stream(
    uses: Uses, likelihood: str | None, inference: str, folds: int | None
) -> None:
    """One line about what needs all rows in memory.

    Example:
        >>> from ansatz.structures.vector.streamed_fit import refuse_what_cannot_stream
        >>> from ansatz.fitting.uses import Uses
        >>> refuse_what_cannot_stream(Uses(target=["t"]), "cox", "point", None)
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: cox compares every row with all others, ... --no-stream
    """
    advice = "for a table in memory: --no-stream"
    if inference != "point":
        raise UsageError(f"inference '{inference}' does not read a stream yet; {advice}")
    if folds is not None:
        raise UsageError(f"--folds needs all rows at once; take --test, or {advice}")
    if uses.time is not None:
        raise UsageError(f"--time orders all rows, which a stream cannot; {advice}")
    if likelihood is not None and likelihood != "auto":
        if not likelihoods.registry.get(likelihood).additive:
            raise UsageError(
                f"{likelihood} compares every row with all others, which a stream cannot; {advice}"
            )
        if likelihood == "plackett_luce":
            raise UsageError(f"rankings do not stream; {advice}")
    if uses.event is not None and "=" in uses.event:
        raise UsageError(
            f"--event {uses.event}: a stream needs a column of 0 and 1, without '='; {advice}"
        )


def _prepare(
    posed: StreamProblem, estimator: TableEstimator, test: float, seed: int
) -> tuple[StreamedRows, HashSplit]:
    """Lets the estimator read the sample; decides weights of classes and the shares."""
    job = read_job(posed.problem, estimator)  # names, classes, shapes
    rows = StreamedRows(posed, estimator)
    total = float(posed.rows)
    if posed.problem.uses.weights is not None or getattr(estimator, "class_weight", None):
        rows.factors, total = _class_factors(rows)
    holdout = estimator.holdout
    if holdout is None:
        holdout = estimator._default_recipe(total * (1 - test), job.target).holdout
    if estimator.network == "linear" or not estimator._has_features(job):
        holdout = 0.0
    return rows, HashSplit(seed, test, holdout * (1 - test))


def _class_factors(rows: StreamedRows) -> tuple[NDArray[np.float64] | None, float]:
    """What class weights multiply by, from the whole table, and the sum of the weights."""
    estimator = rows.estimator
    classes = len(estimator.classes_) if isinstance(estimator, Classifier) else 1
    mass = np.zeros(classes)
    for whole in rows.posed.blocks.frames():
        frame = rows.seen(whole)
        if len(frame):
            job = rows.job(frame)
            codes = job.y.numpy().astype(np.intp) if classes > 1 else np.zeros(len(frame), np.intp)
            mass += np.bincount(codes, weights=job.weight.numpy(), minlength=classes)
    if mass.sum() == 0:
        raise DataError(f"{rows.origin}: the weights of all rows are zero.")
    if not isinstance(estimator, Classifier) or estimator.class_weight is None:
        return None, float(mass.sum())
    weighted = estimator._reweight(np.arange(classes), mass)
    return weighted / np.where(mass > 0, mass, 1.0), float(mass.sum())


def _divide(
    rows: StreamedRows, split: HashSplit, estimator: TableEstimator, folder: Path, sampled: int
) -> StreamParts:
    problem = rows.posed.problem
    bent = estimator.quantile if isinstance(estimator.quantile, bool) else list(estimator.quantile)
    law = None
    if len(problem.laws) == 1:
        law = estimator._law_of(read_job(problem, estimator).target)
    parts = divide(
        rows, split, Learner(problem.columns, quantile=bent), folder, law=law, sampled=sampled
    )
    if parts.rows[TRAIN].sum() == 0:
        raise DataError(f"{problem.origin}: no row is left to learn from. Give more rows.")
    return parts


def _sample_job(rows: StreamedRows, parts: StreamParts, part: int) -> Job | None:
    frame = parts.samples[part].frame
    return None if frame.empty else rows.job(rows.posed.blocks.kinds.settle(frame))


def _choose(laws: list[str], estimator: TableEstimator, learn: Job) -> Choice | None:
    if len(laws) == 1:
        return None
    estimator._rehearse(learn)
    choice = choose_law(estimator, laws, learn)
    estimator.set_params(likelihood=choice.law)
    return choice


def _fit(
    estimator: TableEstimator,
    rows: StreamedRows,
    parts: StreamParts,
    learn: Job,
    valid: Job | None,
    trainer: dict[str, Any],
    window: int | None,
) -> None:
    total = float(parts.weight[:2].sum())
    law = estimator._law_of(learn.target, total)
    law.check(learn.y)
    if isinstance(estimator, SurvivalRegressor):
        estimator.followed_ = Followed.of(law, learn.y, learn.weight)
    if isinstance(estimator, Classifier):
        estimator._temperature = 1.0
    if estimator.network == "linear" or not estimator._has_features(learn):
        estimator.columns_, estimator.has_offset_ = learn.columns, learn.offset is not None
        estimator._fit_linear(learn, law)
        return
    train_stream(estimator, law, rows, parts, learn, valid, trainer_options=trainer, window=window)
    fitted = estimator.model_.objective.likelihood
    if isinstance(estimator, Classifier) and (
        isinstance(fitted, Focal) or (isinstance(fitted, CrossEntropy) and fitted.smoothed)
    ):
        estimator._temperature = estimator._recalibrate(thinned(learn, RECALIBRATED))


def _notes_on(
    posed: StreamProblem, parts: StreamParts, estimator: TableEstimator, test: float
) -> list[str]:
    """What a stream does otherwise than a table in memory, where it did."""
    said = [
        f"{posed.rows:,} rows in {len(posed.blocks)} blocks; the split is a hash of each row: "
        "shares are met as nearly as chance does."
    ]
    sample = parts.samples[TRAIN]
    if not sample.complete:
        what = "the law's start values and the linear and constant models"
        if len(posed.problem.laws) > 1:
            what = f"the choice of the likelihood, {what}"
        said.append(f"{what} come from a sample of {sample.size:,} training rows.")
        if estimator.network == "linear":
            said[-1] = f"the linear model was fitted to a sample of {sample.size:,} training rows."
    held = parts.samples[VALID]
    if not held.complete:
        said.append(f"training stopped by a sample of {held.size:,} held-out rows.")
    said.append("copies of rows learned from are not looked for among test rows.")
    return said
