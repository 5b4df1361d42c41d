"""The rows that a saved model was fitted to and tested on, found again and verified."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ansatz import outcomes
from ansatz.data.files import split_member
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model, estimator_of
from ansatz.fitting.problem import Problem, read_job
from ansatz.fitting.provenance import (
    Provenance,
    RowChecksums,
    TableSource,
    checksum_table,
    provenance_of,
    tables_of,
)
from ansatz.fitting.result import Fit
from ansatz.fitting.saved import load_model
from ansatz.fitting.split import Parts, split
from ansatz.fitting.task import Task


class Replay(NamedTuple):
    """A fitted model with the rows of its fit, in the parts that the fit made of them.

    ``problem`` and ``provenance`` are None for a model of ``estimator.fit(X, y)``, whose rows were
    given anew: then all of them are test rows.
    """

    name: str  # what messages call the model
    model: Model
    problem: Problem | None
    job: Job
    parts: Parts
    provenance: Provenance | None

    @property
    def learn(self) -> Job:
        """The training rows, those that stopped the training among them."""
        return take(self.job, self.parts.learn)

    @property
    def test(self) -> Job:
        """The rows that the model never saw."""
        return take(self.job, self.parts.test)


def replay(model: Any, data: Any = None) -> Replay:
    """Reads the rows of a fit again, verifies them, and splits them as the fit did.

    Args:
        model: a model's folder, a ``Fit``, an estimator or a ``Model``.
        data: the table, if it moved or was in memory: a path, a data set's name or a frame. For
            a model of ``estimator.fit``, the rows to evaluate by: ``(X, y)``, ``(X, y, weight)`` or
            ``(X, y, weight, offset)``.

    Raises:
        DataError: the table is gone or is no longer what the model was fitted to.
        ModelError: the model was saved without a record of its rows.
    """
    if isinstance(model, Fit):
        name, found = _name(model), model.fitted
        if data is None and model.split_problem is not None:
            problem, job, parts = model.split_problem
            return Replay(name, found, problem, job, parts, provenance_of(found))
    elif isinstance(model, str | Path):
        name, found = str(model), load_model(model)
    else:
        name, found = "the model", getattr(model, "model_", model)
    provenance = provenance_of(found, name)
    if provenance is None:
        return _given(name, found, data)
    problem = _read(name, provenance, data, found)
    settings = found.task.settings
    options = {**settings.options, "holdout": provenance.holdout}
    outcome = outcomes.create(found.outcome.name)
    task = Task.of(found.structure.name, outcome, settings.change(options=options))
    job = read_job(problem, task)
    asked = provenance.asked.options
    share = provenance.test if asked["folds"] is None else 0.0
    own = found.structure.split(problem, task, job, share)
    parts = (None if own is None else own.parts) or split(
        job, task, share, asked["seed"], given=provenance.given
    )
    as_then = _as_then(problem, provenance)
    _verify_split(name, provenance.rows, RowChecksums.of(as_then, job, parts))
    if as_then is not problem:  # so that it compares with models of today
        rows = RowChecksums.of(problem, job, parts)
        provenance = provenance.model_copy(update={"rows": rows})
    return Replay(name, found, problem, job, parts, provenance)


def _name(fit: Fit) -> str:
    return "the model" if fit.folder is None else str(fit.folder)


def _given(name: str, model: Model, data: Any) -> Replay:
    """Takes rows for a model without a record of its own; it may have trained on them."""
    if not isinstance(data, tuple):
        raise ModelError(
            f"{name} was saved without a record of its rows: by an older version, from a table "
            "larger than memory or from estimator.fit(X, y). Fit it again with ansatz fit, or in "
            "Python give rows it never saw: data=(X, y)."
        )
    if not 2 <= len(data) <= 4:
        raise UsageError("data must be (X, y), (X, y, weight) or (X, y, weight, offset).")
    job = estimator_of(model).read_again(*data)
    none = np.empty(0, dtype=np.intp)
    parts = Parts(none, none, np.arange(len(job.y), dtype=np.intp))
    return Replay(name, model, None, job, parts, None)


def _read(name: str, provenance: Provenance, data: Any, model: Model) -> Problem:
    """The table, verified by its checksums."""
    given = _find(name, provenance.source) if data is None else data
    source = TableSource.of(given)
    asked = provenance.asked.options
    reader = model.structure.reader(provenance.asked)
    if source.kind != "file":  # other options are in the rows
        kept = {"tiles", "passages", "text_column", "image", "smiles", "split", "directed"}
        kept |= {"inductive", "source", "destination", "relation"}
        reader = {name: reader[name] for name in sorted(kept) if name in reader}
    if provenance.validation is not None:
        reader["validation_data"] = _find_validation(name, provenance.validation)
    if isinstance(given, pd.DataFrame):
        given = given.copy(deep=False)  # its columns get names
    options = model.task.settings.likelihood_options if asked["likelihood"] else None
    problem: Problem = model.structure.problem(
        given,
        ColumnRoles.model_validate(provenance.column_roles),
        likelihood=asked["likelihood"],
        options=options,
        roles=asked["roles"],
        drop=asked["drop"],
        reader=reader,
    )
    _verify_table(name, source, provenance.rows, _as_then(problem, provenance))
    return problem


def _as_then(problem: Problem, provenance: Provenance) -> Problem:
    """The problem with the column of tiles under the name that format 2 gave it."""
    columns, then = problem.frame.columns, provenance.rows.columns
    is_old = "piece" in then and "tile" not in then and "piece" not in columns
    if not is_old or provenance.asked.options["tiles"] is None:
        return problem
    return problem._replace(frame=problem.frame.rename(columns={"tile": "piece"}))


def _find(name: str, source: TableSource) -> str:
    """Finds the table where it was, or raises."""
    if source.kind == "memory":
        raise DataError(
            f"{name} was fitted to a table in memory: give it anew, --data FILE (in Python "
            "data=...)."
        )
    if source.kind == "data set":
        return source.name
    for path in (source.path, source.name):
        if path is not None and Path(split_member(path)[0]).exists():
            return path
    raise DataError(
        f"{source.path}: the table that {name} was fitted to is no longer there. Say where it is: "
        "--data FILE."
    )


def _find_validation(name: str, source: TableSource) -> str:
    """Finds the rows that stopped the training where they were, or raises."""
    if source.kind == "memory":
        raise DataError(
            f"the rows that stopped the training of {name} were in memory and are gone: fit with "
            "a file (validation_data='valid.csv') to read them again."
        )
    return _find(name, source)


def _verify_table(name: str, source: TableSource, marks: RowChecksums, problem: Problem) -> None:
    frame = problem.frame
    columns = [str(column) for column in frame.columns]
    if columns != marks.columns:
        gone = [column for column in marks.columns if column not in columns]
        new = [column for column in columns if column not in marks.columns]
        what = f"column '{gone[0]}' is gone" if gone else f"column '{(new or columns)[0]}' is new"
        if not gone and not new:
            what = "the columns are in another order"
    elif len(frame) != marks.count:
        what = f"it had {marks.count} rows with an outcome, now {len(frame)}"
    else:
        if checksum_table(*tables_of(problem)) == marks.table:
            return
        what = "cells differ"
    raise DataError(
        f"{source.name} is not what {name} was fitted to: {what}. Give the table of the fit, "
        "--data FILE (in Python data=...), or fit again."
    )


def _verify_split(name: str, then: RowChecksums, now: RowChecksums) -> None:
    if then != now:
        raise ModelError(
            f"{name}: this version splits the rows otherwise than the one that fitted it: its "
            "test rows cannot be found. Fit it again."
        )
