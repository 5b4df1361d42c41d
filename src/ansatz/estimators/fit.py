"""From a table to a fitted model with its evidence, in one call."""

import hashlib
import json
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from ansatz import networks, structures
from ansatz.data import Column, fold_numbers, row_keys, split_rows
from ansatz.errors import UsageError
from ansatz.estimators.baselines import Metrics, judge_constant, judge_linear
from ansatz.estimators.classifier import Classifier
from ansatz.estimators.copies import Keys, content_keys, copied, describe_copies, warn_of_copies
from ansatz.estimators.job import Job
from ansatz.estimators.predictions import judge_raw
from ansatz.estimators.problem import Problem, pose
from ansatz.estimators.recipe import choose_recipe
from ansatz.estimators.regressor import Regressor
from ansatz.estimators.run import Run
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.estimators.uses import Uses

Rows = NDArray[np.intp]


@dataclass
class Fit:
    """A fitted model, what it was fitted to, and how it does on rows it never saw.

    Example:
        >>> import ansatz
        >>> fit = ansatz.fit({"x": range(50), "y": range(50)}, target="y", network="linear")
        >>> fit.rows["test"]
        10
    """

    model: TableEstimator
    folder: Path | None
    structure: str
    network: str
    parameters: int
    likelihood: str
    inference: str
    rows: dict[str, int]
    metrics: Metrics | None
    linear: Metrics | None
    constant: Metrics | None
    epochs: float
    seconds: float
    seed: int
    notes: list[str] = field(default_factory=list)
    recipe: dict[str, Any] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    rows_of: dict[str, Any] = field(default_factory=dict, repr=False)  # (X, y) of learn and test

    def to_dict(self) -> dict[str, Any]:
        """The document of ``ansatz fit --json``."""
        document = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("folder", "notes", "recipe", "columns", "rows_of")
        }
        return {**document, "model": None if self.folder is None else str(self.folder)}

    def summary(self, *, refits: int = 20) -> Any:
        """A linear model's summary; a network's effects on the test rows, with intervals.

        Args:
            refits: bootstrap refits of a network; 0 gives effects without intervals.
        """
        X, y = self.rows_of.get("test", (None, None))
        return self.model.summary(X, y, training=self.rows_of.get("learn"), refits=refits)


def fit(
    data: Any,
    *,
    target: str | Sequence[str],
    x: str = "vector",
    likelihood: str | None = None,
    network: str | None = None,
    inference: str = "point",
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    force: bool = False,
    device: str = "auto",
    seed: int = 0,
    test: float = 0.2,
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
    **reader: Any,
) -> Fit:
    """Fits a model to a table and judges it on rows it never saw, beside simpler models.

    Args:
        data: a file (CSV, gz, Parquet, Arrow, npz), a data set's name, a frame or a mapping.
        target: the column to predict, or several.
        x: what a row looks like: ``"vector"``.
        likelihood: the law of the target; None chooses by the support of its values.
        network: by name; None takes the structure's default, ``"linear"`` fits a GLM.
        inference: ``"point"``.
        out: the folder to save the model to; None keeps it in memory.
        overwrite: replace what is at ``out``.
        resume: go on where an interrupted run to ``out`` stopped, bit for bit.
        force: resume although data or options changed.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        seed: of split, initial weights, order and dropout.
        test: share of the rows kept for the test.
        folds: judge by so many folds in place of one test share; the model then sees all rows.
        group: rows alike in this column stay on one side of every split.
        time: every split is forward in this column.
        weights: column of frequency weights.
        offset: column added to the linear predictor.
        exposure: column whose logarithm is added to the linear predictor.
        roles: what columns are, where the guess would be wrong.
        drop: columns to leave out.
        time_limit: seconds of training.
        progress: ``"auto"`` shows it on stderr.
        tensorboard: folder for TensorBoard logs.
        options: of the estimator (``widths``, ``epochs``, ``learning_rate``, ...) or the network.
        reader: options of :func:`ansatz.data.read_table`.

    Example:
        >>> import ansatz
        >>> table = {"x": [k / 50 for k in range(60)], "y": [k / 25 for k in range(60)]}
        >>> fit = ansatz.fit(table, target="y")
        >>> fit.likelihood, fit.rows["test"]
        ('normal', 12)
    """
    began = clock.perf_counter()
    structure = structures.create(x)
    targets = [target] if isinstance(target, str) else list(target)
    uses = Uses(
        target=targets, weights=weights, offset=offset, exposure=exposure, group=group, time=time
    )
    problem = pose(data, uses, likelihood=likelihood, roles=roles, drop=drop, reader=reader)
    estimator = _estimator(
        problem, network or structure.network, inference, seed, device, time_limit, options
    )
    run = Run(out, overwrite, resume, force, _fingerprint(problem, estimator, test, folds))
    finished = run.finished()
    if finished is not None:
        return finished
    job = _job(problem, estimator)
    if folds is not None and time is not None:
        raise UsageError("--folds mixes past and future; with --time use --test.")
    parts = _split(job, estimator, test if folds is None else 0.0, seed)
    number = None if folds is None else _fold_numbers(job, folds, seed)  # refused before training
    trainer = {
        "progress": 0 if progress == "off" else progress,
        "tensorboard": tensorboard,
        **run.trainer_options(),
    }
    keys = content_keys(job.rows, job.y, seed=0)
    notes = [*problem.notes, *describe_copies(keys)]
    model = estimator._fit_job(
        _take(job, parts.learn)._replace(valid=parts.valid, trainer_options=trainer)
    )
    law = model._law_of(job.target)
    if number is not None:
        scores = _cross_validate(estimator, job, number)
    elif len(parts.test):
        scores = _judge(model, law, _take(job, parts.learn), _take(job, parts.test))
    else:
        scores = _Scores(None, None, None, [])
        notes.append("no test rows were kept: nothing is known about new rows.")
    notes += [*model.model_.preprocessor.notes, *scores.messages]
    model.uses_, model.row_keys_ = uses, np.unique(keys[parts.learn])
    notes += _copies(model, job, keys, parts)
    result = _result(model, problem, parts, scores, notes, seed, clock.perf_counter() - began)
    if uses.offset is None and uses.exposure is None:  # effects are of models without offsets
        result.rows_of = _rows_of(problem, job, parts)
    return run.save(result)


def _copies(model: TableEstimator, job: Job, keys: Keys, parts: "_Parts") -> list[str]:
    """Splits by group or time may part copies: then the metrics without them are told as well."""
    mask = copied(model.row_keys_, keys[parts.test])
    if not mask.any():
        return []
    rest = _take(job, parts.test[~mask])
    return warn_of_copies(mask, _metrics(model, rest, []) if len(rest.y) else None)


def _rows_of(problem: Problem, job: Job, parts: "_Parts") -> dict[str, Any]:
    outcomes = problem.uses.outcomes(_seen(problem))
    return {
        name: (job.rows.iloc[rows], outcomes.iloc[rows])
        for name, rows in (("learn", parts.learn), ("test", parts.test))
        if len(rows)
    }


class _Parts(NamedTuple):
    learn: Rows  # rows that the model may see
    valid: Rows  # positions within learn that stop the training
    test: Rows


class _Scores(NamedTuple):
    metrics: Metrics | None
    linear: Metrics | None
    constant: Metrics | None
    messages: list[str]


def _estimator(
    problem: Problem,
    network: str,
    inference: str,
    seed: int,
    device: str,
    time_limit: float | None,
    options: Mapping[str, Any] | None,
) -> TableEstimator:
    kind = Classifier if problem.is_classification else Regressor
    networks.registry.get(network)
    known = kind._get_param_names()
    mine = {name: value for name, value in (options or {}).items() if name in known}
    others = {name: value for name, value in (options or {}).items() if name not in known}
    return kind(
        **{
            "likelihood": problem.likelihood,
            "network": network,
            "inference": inference,
            "random_state": seed,
            "device": device,
            "time_limit": time_limit,
            **({"network_options": others} if others else {}),
            **mine,
        }
    )


def _job(problem: Problem, estimator: TableEstimator) -> Job:
    frame = problem.frame
    group, time = _order(problem)
    job = estimator._read(
        problem.features,
        problem.uses.outcomes(frame),
        problem.uses.weight(frame),
        problem.uses.offsets(frame),
        columns=problem.columns,
    )
    rows = frame.index.to_numpy()[job.index.numpy()]  # errors name rows as the table counts them
    if rows.dtype.kind == "i":
        job = job._replace(index=torch.from_numpy(rows + 1))
    return job._replace(group=group, time=time)


def _take(job: Job, rows: Rows) -> Job:
    index = torch.from_numpy(rows)
    return job._replace(
        rows=job.rows.iloc[rows] if isinstance(job.rows, pd.DataFrame) else job.rows[rows],
        y=job.y[index],
        weight=job.weight[index],
        offset=None if job.offset is None else job.offset[index],
        index=job.index[index],
        group=None if job.group is None else job.group[rows],
        time=None if job.time is None else job.time[rows],
    )


def _seen(problem: Problem) -> pd.DataFrame:
    """The rows whose weight is not 0, in the order of the job's."""
    weight = problem.uses.weight(problem.frame)
    return problem.frame if weight is None else problem.frame[weight > 0]


def _order(problem: Problem) -> tuple[Any, Any]:
    """The columns that govern every split."""
    frame, uses = _seen(problem), problem.uses
    group = None if uses.group is None else frame[uses.group].to_numpy()
    time = None if uses.time is None else frame[uses.time].to_numpy()
    return group, time


def _split(job: Job, estimator: TableEstimator, test: float, seed: int) -> _Parts:
    keys = row_keys(job.rows, job.y.numpy(), seed=seed)
    total = float(job.weight.sum()) * (1 - test)
    holdout = estimator.holdout
    if holdout is None:
        holdout = choose_recipe(total, classes=job.target.classes > 0).holdout
    if estimator.network == "linear":
        holdout = 0.0
    split = split_rows(
        keys,
        seed=seed,
        test=test,
        valid=holdout * (1 - test),
        group=job.group,
        time=job.time,
        weight=job.weight.numpy(),
    )
    learn = np.sort(np.concatenate([split.train, split.valid]))
    return _Parts(learn, np.searchsorted(learn, np.sort(split.valid)), split.test)


def _judge(model: TableEstimator, law: Any, learn: Job, test: Job) -> _Scores:
    linear, messages = judge_linear(law, learn, test)
    notes: list[str] = []
    metrics = _metrics(model, test, notes)
    messages = [*(f"judged rows: {note}" for note in notes), *messages]
    return _Scores(metrics, linear, judge_constant(law, learn, test), messages)


def _metrics(model: TableEstimator, test: Job, notes: list[str]) -> Metrics:
    raw = model._served_raw(model.model_.raw(test.rows, test.offset, notes=notes))
    return judge_raw(model.model_.objective.likelihood, raw, test.y, test.weight)


def _fold_numbers(job: Job, folds: int, seed: int) -> Rows:
    keys = row_keys(job.rows, job.y.numpy(), seed=seed)
    return fold_numbers(keys, folds, seed=seed, group=job.group, weight=job.weight.numpy())


def _cross_validate(estimator: TableEstimator, job: Job, number: Rows) -> _Scores:
    """Every row is judged once, by a model that never saw it; means over folds by weight."""
    scores, weights = [], []
    for k in range(number.max() + 1):
        inside, outside = np.flatnonzero(number != k), np.flatnonzero(number == k)
        model = clone(estimator)
        for name, value in vars(estimator).items():  # what reading the rows found out
            if name.endswith("_") or name.startswith("_"):
                setattr(model, name, value)
        learn, test = _take(job, inside), _take(job, outside)
        model._fit_job(learn)
        scores.append(_judge(model, model._law_of(job.target), learn, test))
        weights.append(float(test.weight.sum()))
    messages = list(dict.fromkeys(message for score in scores for message in score.messages))
    return _Scores(
        _mean([score.metrics for score in scores], weights),
        _mean([score.linear for score in scores], weights),
        _mean([score.constant for score in scores], weights),
        messages,
    )


def _mean(parts: list[Metrics | None], weights: list[float]) -> Metrics:
    names = dict.fromkeys(name for part in parts if part for name in part)
    means: Metrics = {}
    for name in names:
        values = [part.get(name) if part else None for part in parts]
        known = [value for value in values if value is not None]
        means[name] = (
            float(np.average(known, weights=weights)) if len(known) == len(values) else None
        )
    return means


def _fingerprint(
    problem: Problem, estimator: TableEstimator, test: float, folds: int | None
) -> dict[str, str]:
    settings = {
        **{name: repr(value) for name, value in estimator.get_params().items()},
        "uses": problem.uses.model_dump(),
        "columns": [(column.name, column.role) for column in problem.columns],
        "test": test,
        "folds": folds,
    }
    for name in ("time_limit", "verbose", "n_jobs"):  # they change no number
        settings.pop(name, None)
    text = json.dumps(settings, sort_keys=True, default=str)
    return {"data": problem.fingerprint, "options": hashlib.sha256(text.encode()).hexdigest()}


def _result(
    model: TableEstimator,
    problem: Problem,
    parts: _Parts,
    scores: _Scores,
    notes: list[str],
    seed: int,
    seconds: float,
) -> Fit:
    history = getattr(model, "history_", None)
    recipe = getattr(model, "recipe_", None)
    described: dict[str, Any] = {}
    if recipe is not None:
        described["recipe"] = recipe.sentence(model.model_.network_name)
    if history is not None:
        described["stopped"] = history.stop_reason
    return Fit(
        model=model,
        folder=None,
        structure="vector",
        network=model.model_.network_name,
        parameters=model.model_.parameters,
        likelihood=model.model_.objective.likelihood.name,
        inference=model.inference,
        rows={
            "train": len(parts.learn) - len(parts.valid),
            "valid": len(parts.valid),
            "test": len(parts.test),
        },
        metrics=scores.metrics,
        linear=scores.linear,
        constant=scores.constant,
        epochs=0 if history is None else history.epochs,
        seconds=seconds,
        seed=seed,
        notes=notes,
        recipe=described,
        columns=problem.columns,
    )
