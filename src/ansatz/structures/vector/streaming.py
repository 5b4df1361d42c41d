"""Tables larger than memory: read in one pass, split in another, each in bounded memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz import data as ansatz_data
from ansatz import likelihoods, outcomes
from ansatz.data.split import TEST, TRAIN, VALID, HashSplit
from ansatz.data.streams.available import reason_to_stream
from ansatz.data.streams.blocks import stream_folder
from ansatz.data.streams.learner import Learner
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.job import Job, take
from ansatz.fitting.problem import Problem, outcome_of
from ansatz.fitting.request import Request
from ansatz.fitting.split import Split, holdout_share
from ansatz.fitting.task import Task
from ansatz.structures.vector.rows import bent_columns
from ansatz.structures.vector.stream_parts import SAMPLED, StreamPart, StreamParts, divide
from ansatz.structures.vector.stream_problem import TableOnDisk, build_stream_problem
from ansatz.structures.vector.streamed_rows import StreamedRows

ADVICE = "for a table in memory: --no-stream"


def why_a_stream(request: Request) -> str | None:
    """Says why the rows are not read at once; None where they are."""
    data, options = request.data, request.options
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if named or not isinstance(data, str | Path):
        if options["stream"]:
            raise UsageError("--stream is for files; these data are in memory already.")
        return None
    return reason_to_stream(data, stream=options["stream"], memory_limit=options["memory_limit"])


@contextmanager
def streaming(request: Request, how: Mapping[str, Any], why: str) -> Iterator[Problem]:
    r"""Reads a table once; the problem holds a sample, and blocks on disk while it lasts.

    Args:
        request: with a file (CSV, gz, Parquet, Arrow), a folder of Parquet parts, or a pattern of
            names.
        how: the data are read.
        why: they are not read at once.
    """
    options, column_roles = request.options, request.column_roles()
    if request.settings().get("calibration"):
        raise UsageError(f"calibration needs all rows at once; {ADVICE}")
    asked = options["inference"], options["folds"]
    refuse_what_cannot_stream(column_roles, options["likelihood"], *asked)
    known = {name: value for name, value in how.items() if name != "memory"}
    with stream_folder(options["out"]) as folder:
        problem = build_stream_problem(
            request.data, column_roles, folder, seed=options["seed"], why=why, **known
        )
        refuse_what_cannot_stream(problem.column_roles, problem.likelihood, *asked)
        yield problem


def refuse_what_cannot_stream(
    column_roles: ColumnRoles, likelihood: str | None, inference: str, folds: int | None
) -> None:
    """Refuses what needs all rows in memory."""
    if inference != "point":
        raise UsageError(f"inference '{inference}' does not read a stream yet; {ADVICE}")
    if folds is not None:
        raise UsageError(f"--folds needs all rows at once; take --test, or {ADVICE}")
    if column_roles.time is not None:
        raise UsageError(f"--time orders all rows, which a stream cannot; {ADVICE}")
    if likelihood is not None and likelihood != "auto":
        if not likelihoods.registry.get(likelihood).additive:
            raise UsageError(
                f"{likelihood} compares every row with all others, which a stream cannot; {ADVICE}"
            )
        if not outcomes.registry.get(outcome_of(likelihood, column_roles)).has_columns:
            raise UsageError(f"rankings do not stream; {ADVICE}")
    if column_roles.event is not None and "=" in column_roles.event:
        raise UsageError(
            f"--event {column_roles.event}: a stream needs a column of 0 and 1, without '='; {ADVICE}"
        )


def split_stream(problem: Problem, task: Task, job: Job, test: float) -> Split:
    """Splits a table on disk by the hash of each row, and takes a sample of each part.

    Args:
        problem: with a table on disk.
        task: what will be fitted; its outcome has read the problem's sample.
        job: that sample.
        test: share of the rows for the test, met as a coin meets it.
    """
    disk = problem.on_disk
    assert isinstance(disk, TableOnDisk)
    rows, total = StreamedRows(disk, task), float(disk.rows)
    if disk.column_roles.weights is not None or task.outcome.plain(job) is not job:
        rows.factors, total = _class_factors(rows, job.target.classes)
    valid = holdout_share(job._replace(total=total), task, test) * (1 - test)
    parts = divide(
        rows,
        HashSplit(task.settings.seed, test, valid),
        Learner(disk.columns, quantile=bent_columns(task.settings.options)),
        likelihood=task.likelihood(job.target) if len(problem.candidates) == 1 else None,
        sampled=SAMPLED,
    )
    if parts.rows[TRAIN].sum() == 0:
        raise DataError(f"{disk.origin}: no row is left to learn from. Give more rows.")
    learn, held_out, tested = (
        StreamPart(rows, parts, number).sample() for number in (TRAIN, VALID, TEST)
    )
    assert learn is not None
    none = np.empty(0, dtype=np.intp)
    return Split(
        learn._replace(valid=none, held_out=held_out, total=float(parts.weight[:2].sum())),
        take(learn, none) if tested is None else tested,
        parts.counts,
        notes=tuple(_notes_on(problem, disk, parts, linear=task.settings.is_linear)),
    )


def _class_factors(rows: StreamedRows, classes: int) -> tuple[NDArray[np.float64] | None, float]:
    """What class weights multiply by, from the whole table, and the sum of the weights."""
    mass = np.zeros(max(classes, 1))
    for whole in rows.disk.blocks.frames():
        frame = rows.seen(whole)
        if len(frame):
            job = rows.job(frame)
            codes = job.y.numpy().astype(np.intp) if classes else np.zeros(len(frame), np.intp)
            mass += np.bincount(codes, weights=job.weight.numpy(), minlength=len(mass))
    if mass.sum() == 0:
        raise DataError(f"{rows.origin}: the weights of all rows are zero.")
    if not classes:
        return None, float(mass.sum())
    weighted = rows.task.outcome.reweight(np.arange(classes), mass, rows.task.settings)
    return weighted / np.where(mass > 0, mass, 1.0), float(mass.sum())


def _notes_on(
    problem: Problem, disk: TableOnDisk, parts: StreamParts, *, linear: bool
) -> Iterator[str]:
    """What a stream does otherwise than a table in memory, where it did."""
    yield disk.why
    yield (
        f"{disk.rows:,} rows in {len(disk.blocks)} blocks; the split is a hash of each row: "
        "shares are met as nearly as chance does."
    )
    train, held, _ = parts.samples
    if not train.complete:
        what = "the likelihood's start values and the linear and constant models"
        if len(problem.candidates) > 1:
            what = f"the choice of the likelihood, {what}"
        if linear:
            yield f"the linear model was fitted to a sample of {train.size:,} training rows."
        else:
            yield f"{what} come from a sample of {train.size:,} training rows."
    if not held.complete:
        yield f"training stopped by a sample of {held.size:,} held-out rows."
    yield "copies of rows learned from are not looked for among test rows."
