"""Tables larger than memory: read in one pass, split in another, each in bounded memory."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz import likelihoods, outcomes
from ansatz.data import row_keys
from ansatz.data.columns import plain_columns
from ansatz.data.split import TEST, TRAIN, VALID, HashSplit
from ansatz.data.streams.blocks import open_blocks, stream_folder
from ansatz.data.streams.learner import Learner
from ansatz.data.streams.survey import RowSample, Survey
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, is_numeric, near_columns
from ansatz.fitting.job import Job, take
from ansatz.fitting.problem import Problem, check_outcomes, outcome_of
from ansatz.fitting.proposal import Proposal, propose
from ansatz.fitting.request import Request
from ansatz.fitting.split import SplitJob, holdout_share
from ansatz.fitting.task import Task
from ansatz.inference.registry import AUTO, DEFAULT
from ansatz.structures.vector.problem import spell_roles, spelling_notes, table_warnings
from ansatz.structures.vector.rows import TableRows, bent_columns
from ansatz.structures.vector.stream_rows import (
    SAMPLED,
    StreamedRows,
    StreamPart,
    StreamParts,
    TableOnDisk,
    divide,
)

SURVEYED = 20_000  # rows that the likelihood's candidates and the warnings are taken from
_MOST_CLASSES = 1_001  # of which one row each is kept; more are refused anyway


def build_stream_problem(
    data: str | Path,
    column_roles: ColumnRoles,
    folder: Path,
    *,
    likelihood: str | None = None,
    options: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    reader: Mapping[str, Any] | None = None,
    seed: int = 0,
    why: str = "",
) -> Problem:
    r"""Reads a table once and decides what each column is for.

    The roles of columns, their levels and the range of the target come from all rows, as in
    :func:`~ansatz.structures.vector.problem.build_problem`; the candidates among likelihoods and
    the warnings of leaks from 20,000 rows, the target's extremes and a row of each class.
    """
    words = {*drop, *(name for name, role in (roles or {}).items() if role != "numeric")}
    watcher = _Watcher(str(data), column_roles, dict(roles or {}), list(drop), seed)
    found = open_blocks(data, folder, {"text": words, **(reader or {})}, watch=watcher.add)
    frame, column_roles = watcher.sample(), watcher.column_roles
    if frame.empty:
        raise DataError(
            f"{data}: the target '{column_roles.outcome_name}' is missing in every row."
        )
    frame = found.kinds.settle(frame)
    column_roles, frame, spelled = spell_roles(str(data), frame, column_roles, likelihood)
    proposal = Proposal([likelihood]) if likelihood else propose(str(data), frame, column_roles)
    given = {**proposal.options, **(options or {})}
    check_outcomes(
        str(data), frame, column_roles, proposal.candidates[0], given, named=likelihood is not None
    )
    columns = watcher.survey.columns()
    frame = plain_columns(frame, columns)
    notes = [*found.notes, *spelled, *spelling_notes(columns), *watcher.notes()]
    notes += [proposal.why] if proposal.why else []
    notes += table_warnings(frame, column_roles, columns, proposal.candidates[0])
    watcher.digest.update(str(found.counts).encode())  # they decide the order of the rows
    return Problem(
        str(data),
        frame,
        TableRows(column_roles.features(frame), columns),
        column_roles,
        proposal.candidates,
        given,
        notes,
        watcher.digest.hexdigest(),
        columns=columns,
        on_disk=TableOnDisk(
            str(data), column_roles, columns, found, list(drop), watcher.rows, folder, why
        ),
    )


class _Watcher:
    """Sees all rows once, in their order."""

    def __init__(
        self,
        origin: str,
        column_roles: ColumnRoles,
        roles: dict[str, str],
        drop: list[str],
        seed: int,
    ) -> None:
        self.origin, self.column_roles, self.drop = origin, column_roles, drop
        self.survey, self.digest = Survey(roles), hashlib.sha256()
        self.rows = self.left_out = 0
        self._sample = RowSample(SURVEYED, seed=seed, use="survey")
        self._kept: dict[tuple[str, str], tuple[float, pd.DataFrame]] = {}
        self._opened = False

    def add(self, frame: pd.DataFrame) -> None:
        if not self._opened:
            self._open(frame)
        frame = frame.drop(columns=self.drop)
        known = self.column_roles.known(frame)
        self.left_out += int((~known).sum())
        frame = frame[known]
        if frame.empty:
            return
        self.rows += len(frame)
        self.digest.update(row_keys(frame).tobytes())
        try:
            self.survey.add(self.column_roles.features(frame))
        except DataError as error:
            raise DataError(f"{self.origin}: {error}") from None
        self._sample.add(frame)
        for name in self.column_roles.outcome_columns:
            self._keep_extremes(frame, name)

    def sample(self) -> pd.DataFrame:
        """A sample of the rows, with those that show the target's whole range."""
        extra = [row for _, row in self._kept.values()]
        frame = pd.concat([self._sample.frame, *extra])
        return frame[~frame.index.duplicated()].sort_index()

    def notes(self) -> list[str]:
        """Rows that were left out."""
        if not self.left_out:
            return []
        some = "1 row" if self.left_out == 1 else f"{self.left_out} rows"
        was = "was" if self.left_out == 1 else "were"
        return [f"{some} without a value of '{self.column_roles.outcome_name}' {was} left out."]

    def _open(self, frame: pd.DataFrame) -> None:
        for name in self.drop:
            if name not in frame.columns:
                hint = near_columns(name, frame)
                raise UsageError(f"{self.origin}: no column '{name}' to drop. {hint}")
        frame = frame.drop(columns=self.drop)
        self.column_roles = self.column_roles.expand(frame)
        self.column_roles.check(frame, self.origin)
        self._opened = True

    def _keep_extremes(self, frame: pd.DataFrame, name: str) -> None:
        """One row each for the least and the largest value, a fraction, and every class."""
        column = frame[name]
        if not is_numeric(column):
            for row, value in column.drop_duplicates().items():
                self._keep(name, str(value), 0.0, frame, row)
            return
        values = column.to_numpy(dtype=np.float64)
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return
        for what, sign in (("low", 1.0), ("high", -1.0)):
            place = known[(sign * values[known]).argmin()]
            self._keep(name, what, sign * float(values[place]), frame, frame.index[place])
        parts = known[values[known] != np.round(values[known])]
        if len(parts):
            self._keep(name, "part", 0.0, frame, frame.index[parts[0]])
        distinct = np.unique(values[known])
        if len(distinct) <= 100:  # classes may be numbers
            for value in distinct:
                place = known[(values[known] == value).argmax()]
                self._keep(name, f"={value:g}", 0.0, frame, frame.index[place])

    def _keep(self, name: str, what: str, value: float, frame: pd.DataFrame, row: Any) -> None:
        before = self._kept.get((name, what))
        if before is None and len(self._kept) > _MOST_CLASSES + 6:
            return
        if before is None or value < before[0]:
            self._kept[name, what] = (value, frame.loc[[row]].copy())


ADVICE = "for a table in memory: --no-stream"


@contextmanager
def streaming(request: Request, how: Mapping[str, Any], why: str) -> Iterator[Problem]:
    r"""Reads a table once; the problem holds a sample, and blocks on disk while it lasts."""
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
    if inference not in (AUTO, DEFAULT):
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
            f"--event {column_roles.event}: a stream needs a column of 0 and 1, without '='; "
            f"{ADVICE}"
        )


def split_stream(problem: Problem, task: Task, job: Job, test: float) -> SplitJob:
    """Splits a table on disk by the hash of each row, and takes a sample of each part."""
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
        raise DataError(f"{disk.origin}: no row is left to train on. Give more rows.")
    learn, held_out, tested = (
        StreamPart(rows, parts, number).sample() for number in (TRAIN, VALID, TEST)
    )
    assert learn is not None
    none = np.empty(0, dtype=np.intp)
    return SplitJob(
        learn._replace(valid=none, held_out=held_out, total=float(parts.weight[:2].sum())),
        take(learn, none) if tested is None else tested,
        parts.counts,
        notes=tuple(_notes_on(problem, disk, parts, linear=task.settings.is_linear)),
    )


def _class_factors(rows: StreamedRows, classes: int) -> tuple[NDArray[np.float64] | None, float]:
    """Computes the factors of class weights and the sum of weights over the whole table."""
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
    """Notes on what a stream does otherwise than a table in memory."""
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
    yield "duplicates of training rows are not searched among test rows."
