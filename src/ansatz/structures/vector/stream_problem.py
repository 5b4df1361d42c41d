"""A table on disk read as a question, in one pass and with bounded memory."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data import Column, row_keys
from ansatz.data.streams.blocks import Blocks, open_blocks
from ansatz.data.streams.survey import RowSample, Survey
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.problem import Problem, check_outcomes
from ansatz.fitting.proposal import Proposal, is_numeric, propose
from ansatz.structures.vector.problem import table_warnings
from ansatz.structures.vector.rows import TableRows

SURVEYED = 20_000  # rows that the likelihood's candidates and the warnings are taken from
_MOST_CLASSES = 1_001  # of which one row each is kept; more are refused anyway


@dataclass(frozen=True)
class TableOnDisk:
    """A table in blocks, and what each column is for."""

    origin: str  # what errors call the table
    column_roles: ColumnRoles
    columns: list[Column]
    blocks: Blocks
    drop: list[str]
    rows: int  # with an outcome
    folder: Path  # for what is written while the fit lasts
    why: str  # it is not read at once


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

    Args:
        data: a file, a folder of Parquet parts, or a pattern of names.
        column_roles: target, weights, offset and so on by name.
        folder: for blocks.
        likelihood: the likelihood; None lets the values of the target choose.
        options: of the likelihood.
        roles: what columns are, where the guess would be wrong.
        drop: columns to leave out.
        reader: options of :func:`ansatz.data.read_table`.
        seed: of the sample.
        why: the table is not read at once, in a sentence.
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
    proposal = Proposal([likelihood]) if likelihood else propose(str(data), frame, column_roles)
    given = {**proposal.options, **(options or {})}
    check_outcomes(
        str(data), frame, column_roles, proposal.candidates[0], given, named=likelihood is not None
    )
    columns = watcher.survey.columns()
    notes = [*found.notes, *watcher.notes()]
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
