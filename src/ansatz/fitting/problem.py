"""Data read as a question: which rows there are, and what kind of quantity the target is."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import pandas as pd
import torch

from ansatz import likelihoods, outcomes, structures
from ansatz.data.registry import own_question
from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles, is_numeric
from ansatz.fitting.contracts.rows import Rows
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, make_job
from ansatz.fitting.options import FitOptions
from ansatz.fitting.request import Request
from ansatz.fitting.task import Task, split_options
from ansatz.registry import load
from ansatz.structures.registry import (
    DEFAULT,
    SEVERAL,
    claims,
    recognizers,
    row_recognizers,
    shared,
)

if TYPE_CHECKING:
    from ansatz.fitting.model import Model


def outcome_of(likelihood: str, column_roles: ColumnRoles) -> str:
    """The outcome that a likelihood and the column roles speak of."""
    if column_roles.task is not None:
        outcomes.registry.get(column_roles.task)  # a wrong name suggests the nearest right one
        return column_roles.task
    if column_roles.is_survival:
        return outcomes.CENSORED
    return outcomes.claims.get(likelihood, outcomes.DEFAULT)


class OnDisk(Protocol):
    """The way to all rows, where a problem holds a sample of them."""

    @property
    def rows(self) -> int:
        """The number of rows with an outcome."""
        ...

    @property
    def why(self) -> str:
        """The reason why they are not held in memory, in a sentence."""
        ...


class Problem(NamedTuple):
    """Rows with their outcomes, and the likelihoods that could have produced these."""

    origin: str  # what errors call the data
    frame: pd.DataFrame  # the columns of rows whose outcome is known
    rows: Rows  # the features
    column_roles: ColumnRoles
    candidates: list[str]  # one, or the candidates among which the training rows will choose
    likelihood_options: dict[str, Any]
    notes: list[str]
    fingerprint: str  # of the rows
    given: Any = None  # the outcomes, where they are not columns of the frame
    task: str | None = None  # the outcome's name, where the likelihood does not imply it
    part: str | None = None  # the column that marks rows for training and test
    columns: list[Any] = []  # what each column of a table was taken for  # noqa: RUF012
    on_disk: OnDisk | None = None  # where frame and rows are a sample
    structure: str | None = None  # of the rows, where reading found another than was asked for

    @property
    def size(self) -> int:
        """The number of rows, those on disk included."""
        return len(self.frame) if self.on_disk is None else self.on_disk.rows

    @property
    def has_own_test(self) -> bool:
        """Whether the data mark rows for the test."""
        return self.part is not None and bool((self.frame[self.part] == "test").any())

    @property
    def likelihood(self) -> str:
        """The likelihood, or the first of the candidates."""
        return self.candidates[0]

    @property
    def kind(self) -> str:
        """The name of the outcome in the registry."""
        return self.task or outcome_of(self.likelihood, self.column_roles)

    @property
    def outcomes(self) -> Any:
        """The outcomes as given."""
        return self.column_roles.outcomes(self.frame) if self.given is None else self.given

    @property
    def has_own_columns(self) -> bool:
        """Whether the rows are columns of the frame themselves."""
        return bool(self.rows.describe()["columns"] is not None)

    @property
    def seen(self) -> pd.DataFrame:
        """The columns of rows whose weight is not 0, in the order of the job's."""
        weight = self.column_roles.weight(self.frame)
        return self.frame if weight is None else self.frame[weight > 0]


LARGEST = 1e100  # variances and their products stay below the largest double, 1.8e308


def check_outcomes(
    origin: str,
    frame: pd.DataFrame,
    column_roles: ColumnRoles,
    likelihood: str,
    options: Mapping[str, Any] | None = None,
    *,
    named: bool = False,
) -> None:
    """Rejects outcomes that the likelihood cannot produce, by the row numbers of the table.

    ``named``: the user named the likelihood, so that many classes are classes all the same.
    """
    likelihoods.registry.get(likelihood)  # an unknown name is an error with a suggestion
    kind = outcomes.registry.get(outcome_of(likelihood, column_roles))
    try:
        kind.check_columns(frame, column_roles, likelihood, dict(options or {}), named=named)
    except DataError as error:
        raise locate(error, origin, frame, column_roles) from None


def check_known(model: "Model", frame: pd.DataFrame, origin: str) -> None:
    """Refuses outcomes that the likelihood of a fitted model cannot produce: they have no score."""
    column_roles = model.column_roles
    assert column_roles is not None
    try:
        codes, _ = model.outcome.encode(
            column_roles.outcomes(frame), model.task.settings, reset=False
        )
        model.likelihood.check(torch.from_numpy(np.array(codes)))
    except DataError as error:
        raise locate(error, origin, frame, column_roles) from None


def locate(
    error: DataError, origin: str, frame: pd.DataFrame, column_roles: ColumnRoles
) -> DataError:
    """Adds the name of the table, the column and its row number to an error."""
    where = "" if str(error).startswith(("row ", "column ")) else f"{column_roles.outcome_name}: "
    named = (
        where
        if column_roles.is_survival or len(column_roles.target) > 1
        else f"column '{column_roles.target[0]}': "
    )
    return DataError(f"{origin}, {named if where else ''}{_name_row(str(error), frame)}")


def numbers_of(frame: pd.DataFrame, name: str, likelihood: str) -> np.ndarray:
    """Reads a target column as numbers that can be squared."""
    column = frame[name]
    if not is_numeric(column):
        bad = pd.to_numeric(column.astype(str), errors="coerce").isna().to_numpy()
        row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
        raise DataError(
            f"row {row_number(frame, row)}, column '{name}': {likelihood} needs numbers, got "
            f"{str(column.iloc[row])[:60]!r}. For classes use bernoulli or categorical."
        )
    values: np.ndarray = column.to_numpy(dtype=np.float64, copy=True)
    row = int(np.abs(values).argmax())
    if np.abs(values[row]) > LARGEST and np.isfinite(values[row]):
        raise DataError(
            f"row {row_number(frame, row)}, column '{name}': {values[row]:g} is too large to be "
            "squared. Divide the column by a power of ten."
        )
    return values


def _name_row(message: str, frame: pd.DataFrame) -> str:
    """Puts the table's row number in place of y[17] or y[17, 2]."""
    return re.sub(
        r"y\[(\d+)(?:, \d+)*\]", lambda found: f"row {row_number(frame, int(found[1]))}", message
    )


def row_number(frame: pd.DataFrame, position: int) -> int:
    """The number of a row as its file counts them."""
    label = frame.index[position]
    return int(label) + 1 if isinstance(label, int | np.integer) else position + 1


def with_structure(request: Request) -> Request:
    """Decides what x looks like and what is predicted, and refuses options of other structures.

    A named data set brings its own target where none is given.
    """
    named = request.options["task"]
    if named is not None and outcomes.registry.get(named).is_x:
        kind = outcomes.registry.get(named)
        own = own_question(request.data)
        request = request._replace(given=cast(FitOptions, kind.arrange(request.given, own)))
    elif not any(request.given.get(name) for name in ("target", "lower", "masks", "labels")):
        request = request.but(**{**own_question(request.data), **request.given})
    task = _precise(request.options["task"] or _task_of(request), request)
    x = structure_of(request.data, request.options["x"], request.given, task)
    request.check(x)
    return request.but(x=x) if task is None else request.but(x=x, task=task)


def _task_of(request: Request) -> str | None:
    """The outcome that an option or the file's name implies."""
    for option, task in outcomes.by_option.items():
        if request.given.get(option) is not None:
            return task
    name = str(request.data).lower().removesuffix(".gz")
    found = (task for end, task in outcomes.by_file.items() if name.endswith(end))
    shown = outcomes.by_contents.items()
    by_contents = (task for task, test in shown if load(test)(request.data, request.given))
    return next(found, None) or next(by_contents, None)


def _precise(task: str | None, request: Request) -> str | None:
    """The task that data make of one that has several forms."""
    place = outcomes.by_data.get(task or "")
    found: str | None = task if place is None else load(place)(request.data, request.given)
    return found


def reading(request: Request) -> AbstractContextManager[Problem]:
    """Reads the data of a request and decides what is predicted; what is on disk stays inside."""
    structure: Structure = structures.create(str(request.options["x"]))
    found: AbstractContextManager[Problem] = structure.reading(request, how(request))
    return found


def how(request: Request) -> dict[str, Any]:
    """The options with which a structure reads the data of a request."""
    options = request.options
    structure: Structure = structures.create(str(options["x"]))
    return {
        "likelihood": options["likelihood"],
        "options": split_options(options["likelihood"], request.settings())[1],
        "roles": options["roles"],
        "drop": options["drop"],
        "reader": structure.reader(request),
        "memory": request.memory(),
    }


def structure_of(
    data: Any,
    asked: str | None = None,
    options: Mapping[str, Any] | None = None,
    task: str | None = None,
) -> str:
    """Names the structure of data for a fit; a wrong name suggests the nearest right one."""
    if task in outcomes.on_structure and asked in (None, "auto"):
        return outcomes.on_structure[task]
    own = {option: name for option, name in claims.items() if (options or {}).get(option)}
    given = [own[option] for option in own if option not in shared] or list(own.values())
    return _structure(asked, given, recognizers, data)


def structure_of_rows(X: Any, asked: str = "auto") -> str:
    """Names the structure of what was given to an estimator as X."""
    return _structure(asked, [], row_recognizers, X)


def _structure(
    asked: str | None, given: list[str], questions: Mapping[str, str], about: Any
) -> str:
    if asked is not None and asked != "auto":
        structures.registry.get(asked)
        return asked
    found = (name for name, place in questions.items() if load(place)(about))
    if len(set(given)) > 1:
        return SEVERAL
    return given[0] if given else next(found, DEFAULT)


def read_job(problem: Problem, task: Task) -> Job:
    """Reads the rows of a problem for a task; errors name the table's own rows.

    The task's outcome remembers what it read: names and classes.
    """
    frame = problem.frame
    weight, offset = problem.column_roles.weight(frame), problem.column_roles.offsets(frame)
    try:
        job = make_job(task, problem.rows, problem.outcomes, weight, offset, reset=True)
    except DataError as error:
        raise locate(error, problem.origin, frame, problem.column_roles) from None
    rows = frame.index.to_numpy()[job.index.numpy()]  # errors name rows as the table counts them
    if rows.dtype.kind == "i":
        job = job._replace(index=torch.from_numpy(rows + 1))
    group, time, part = _order(problem)
    return job._replace(group=group, time=time, part=part)


def _order(problem: Problem) -> tuple[Any, Any, Any]:
    """The columns that govern every split."""
    frame, column_roles = problem.seen, problem.column_roles
    names = column_roles.group, column_roles.time, problem.part
    group, time, part = (None if name is None else frame[name].to_numpy() for name in names)
    return group, time, part
