"""The provenance of a fit: where its rows came from, and the checksums that identify them."""

import hashlib
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from ansatz import data as ansatz_data
from ansatz.data import row_keys
from ansatz.errors import ModelError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.job import Job
from ansatz.fitting.options import FitOptions, declared
from ansatz.fitting.problem import Problem
from ansatz.fitting.recipe import one_line
from ansatz.fitting.request import Request, validated
from ansatz.fitting.split import Parts, Rows
from ansatz.inference.registry import DEFAULT

Kind = Literal["file", "data set", "memory"]


class TableSource(BaseModel):
    """The place of a table.

    Args:
        kind: a file, a named data set, or rows in memory, which only the caller has.
        name: as it was given; what messages call it.
        path: of a file, absolute.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    name: str
    path: str | None = None

    @classmethod
    def of(cls, data: Any) -> "TableSource":
        """The place of what was given to ``ansatz.fit``."""
        if not isinstance(data, str | Path):
            return cls(kind="memory", name="the table")
        if isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists():
            return cls(kind="data set", name=data)
        return cls(kind="file", name=str(data), path=str(Path(data).absolute()))


class RowChecksums(BaseModel):
    """Checksums that identify the rows of a fit without holding them.

    Args:
        count: rows with an outcome.
        columns: of the table, in their order, without those that were dropped.
        table: SHA-256 over the content of every row, in order.
        test_rows: over the numbers of the test rows in the table.
        test_outcomes: over their outcomes as given.
        valid_rows: over the numbers of the rows that stopped the training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    columns: list[str]
    table: str
    test_rows: str
    test_outcomes: str
    valid_rows: str

    @classmethod
    def of(cls, problem: Problem, job: Job, parts: Parts) -> "RowChecksums":
        """The checksums of a table and its split."""
        seen = problem.seen
        return cls(
            count=len(problem.frame),
            columns=[str(name) for name in problem.frame.columns],
            table=checksum_table(*tables_of(problem)),
            test_rows=checksum_rows(job, parts.test),
            test_outcomes=checksum_outcomes(problem.column_roles.outcomes(seen).iloc[parts.test]),
            valid_rows=checksum_rows(job, parts.learn[parts.valid]),
        )


class Provenance(BaseModel):
    """The request of a fit and its rows, as data: to read them and to fit them again.

    Args:
        source: where the table was.
        request: the options that were given, those of the run aside; what JSON cannot hold is its
            repr.
        column_roles: what the special columns are for.
        test: share of the rows kept for the test.
        given: whether the parts for training and test are the data's own.
        holdout: share of the training rows that stopped the training.
        chosen: the likelihood that was fitted.
        likelihood_options: its options.
        network: that was fitted.
        rows: the checksums of the rows.
        validation: where the rows were that stopped the training, if the user brought them.
        default_inference: of a request that names none; point in models of version 0.2 and before.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: TableSource
    request: dict[str, Any]
    column_roles: dict[str, Any]
    test: float
    given: bool = False
    holdout: float
    chosen: str
    likelihood_options: dict[str, Any] = {}
    network: str | None = None
    rows: RowChecksums
    validation: TableSource | None = None
    default_inference: str = DEFAULT

    @model_validator(mode="before")
    @classmethod
    def _migrate(cls, record: Any) -> Any:
        """A record of before requests: what was asked for stood beside what came of it.

        A record of before the automatic inference: what names none asked for a point estimate.
        """
        is_old = isinstance(record, dict) and "request" not in record
        if is_old and isinstance(record.get("reader", {}), dict):
            record = dict(record)
            asked = {name: record.pop(name) for name in _ASKED if name in record}
            roles = record.get("column_roles") or {}
            known = declared(FitOptions)  # a role may have no option of its own
            asked |= record.pop("reader", {}) | {n: c for n, c in roles.items() if n in known}
            record["request"] = {"network": record.get("network"), "x": "vector", **asked}
        if isinstance(record, dict) and isinstance(record.get("request"), dict):
            default = record.get("default_inference", DEFAULT)
            record = record | {"request": {"inference": default, **record["request"]}}
        return record

    @field_validator("column_roles")
    @classmethod
    def _check_roles(cls, roles: dict[str, Any]) -> dict[str, Any]:
        ColumnRoles.model_validate(roles)
        return roles

    @field_validator("request")
    @classmethod
    def _validate(cls, request: dict[str, Any]) -> dict[str, Any]:
        return validated(request, FitOptions, "request")

    @property
    def asked(self) -> Request:
        """The request, with the data where they were."""
        return Request(self.source.path or self.source.name, cast(FitOptions, self.request))


_ASKED = ("roles", "drop", "seed", "folds", "x", "likelihood", "inference", "options")


def provenance_of(model: Any, name: str = "the model") -> Provenance | None:
    """Reads the provenance of a model of ``ansatz.fit``; None for one of ``estimator.fit``."""
    record = model.evidence.get("provenance")
    if record is None:
        return None
    try:
        return Provenance.model_validate(record)
    except ValidationError as error:
        raise ModelError(f"{name}: the record of its rows: {one_line(error)}") from None


def tables_of(problem: Problem) -> tuple[Any, ...]:
    """All that identifies the rows of a problem: the columns, and the grids beside them."""
    frame = problem.frame.reset_index(drop=True)
    if problem.has_own_columns:
        return (frame,)
    return (frame, problem.rows) if frame.shape[1] else (problem.rows,)


def checksum_table(*parts: Any) -> str:
    """A digest of the rows' content, in order, whatever the types that hold it."""
    return _digest(row_keys(*parts, seed=0))


def checksum_rows(job: Job, rows: Rows) -> str:
    """A digest of the numbers that some of the job's rows have in their table."""
    return _digest(np.sort(job.index.numpy()[rows]).astype(np.int64))


def checksum_outcomes(outcomes: Any) -> str:
    """A digest of outcomes as they were given, in order; the names of columns do not enter."""
    frame = pd.DataFrame(outcomes).reset_index(drop=True)
    frame.columns = pd.Index([f"y{k}" for k in range(frame.shape[1])])
    return _digest(row_keys(frame, seed=0))


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
