"""One fit with everything read and typed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from ansatz.data import row_keys, split_rows
from ansatz.data.split import Split as SplitRows
from ansatz.errors import DataError
from ansatz.fitting.contracts.rows import Rows
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.fitting.task import Task


class Job(NamedTuple):
    """Rows, outcomes, weights, and which rows stop the training."""

    rows: Rows
    y: Tensor
    target: TargetSpec
    weight: Tensor
    offset: Tensor | None
    index: Tensor  # type: ignore[assignment]  # numbers of the rows, which name them in errors
    precision: Tensor | None = None  # R's prior weights, for linear models
    group: NDArray[Any] | None = None  # rows alike in it stay on one side of every inner split
    time: NDArray[Any] | None = None  # every inner split is forward in it
    part: NDArray[Any] | None = None  # "train", "validation" or "test", where the data hold it
    valid: NDArray[np.intp] | None = None  # None: chosen by the hash of the rows
    held_out: "Job | None" = None  # other rows that stop the training, in place of ``valid``
    errors: str | None = None  # standard errors of a linear model: classical, HC0, ..., cluster
    link: str | None = None  # of a linear model's mean, where not the likelihood's own
    impute: tuple[int, int] | None = None  # imputations of gaps for a linear model, and the seed
    total: float | None = None  # the sum of all weights, where the rows are a sample
    trainer_options: Mapping[str, Any] = {}  # never changed

    @property
    def mass(self) -> float:
        """The sum of the weights of all rows, those included that a sample leaves out."""
        return float(self.weight.sum()) if self.total is None else self.total

    def keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each row's features and outcome: duplicates share it."""
        found: NDArray[np.uint64] = row_keys(self.rows, self.y.numpy(), seed=seed)
        return found

    def split(
        self, *, seed: int, test: float = 0.0, valid: float = 0.0, keys: Any = None
    ) -> SplitRows:
        """Splits the rows by the hash of their content, their group or their time."""
        return split_rows(
            self.keys(seed) if keys is None else keys,
            seed=seed,
            test=test,
            valid=valid,
            group=self.group,
            time=self.time,
            weight=self.weight.numpy(),
        )


def take(job: Job, rows: NDArray[np.intp]) -> Job:
    """The job of some of the rows."""
    index = torch.from_numpy(rows)
    return job._replace(
        rows=job.rows[rows],
        y=job.y[index],
        weight=job.weight[index],
        offset=None if job.offset is None else job.offset[index],
        index=job.index[index],
        precision=None if job.precision is None else job.precision[index],
        group=None if job.group is None else job.group[rows],
        time=None if job.time is None else job.time[rows],
        part=None if job.part is None else job.part[rows],
        held_out=None,
        total=None,
    )


def thinned(job: Job, most: int) -> Job:
    """Takes at most ``most`` rows of a job, evenly spaced."""
    step = -(-len(job.y) // most)
    return job if step <= 1 else take(job, np.arange(0, len(job.y), step))


def read_column(name: str, values: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    """One finite number per row, copied; None stays None."""
    if values is None:
        return None
    column = np.array(values, dtype=np.float64)
    if column.shape != (count,):
        raise DataError(f"{name} must have shape ({count},), got {column.shape}.")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(f"{name} must be finite, got {column[bad[0]]} at row {bad[0]}.")
    return column


def read_groups(groups: ArrayLike | None, count: int) -> NDArray[Any] | None:
    """One name per row, numbers or words; None stays None."""
    if groups is None:
        return None
    # As objects first: a list of words would have its nan read as the word.
    given = np.asarray(groups, dtype=object)
    if given.shape != (count,):
        raise DataError(f"groups must have shape ({count},), one per row, got {given.shape}.")
    missing = np.flatnonzero(pd.isna(given))
    if len(missing):
        raise DataError(f"groups is missing at row {missing[0]}: give that row a group of its own.")
    return np.array(groups)


def read_weights(sample_weight: ArrayLike | None, rows: Any) -> NDArray[np.float64]:
    """Frequency weights of the rows, copied, ones by default; not all of them may be zero."""
    # scikit-learn's own check wants an array; a frame's first column has the same length.
    like = rows if isinstance(rows, np.ndarray) else np.empty((len(rows), 1))
    try:
        weight: NDArray[np.float64] = np.array(
            _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
        )
    except ValueError as error:
        raise DataError(str(error)) from None
    if weight.sum() == 0:  # scikit-learn < 1.8 lets them pass
        raise DataError("Sample weights are all zero: there is no row to train on.")
    return weight


def make_job(
    task: "Task",
    rows: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    precision: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    reset: bool,
    fitting: bool = True,
) -> Job:
    """Reads the outcomes, weights and so on of rows; rows of weight 0 are left out.

    ``reset`` lets the outcome remember names and classes; without ``fitting`` the class weights
    are those of the fit.
    """
    outcome = task.outcome
    codes, target = outcome.encode(outcome.beside(y, rows), task.settings, reset=reset)
    if len(codes) != len(rows):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {len(rows)} rows and y has {len(codes)}."
        )
    weight, count = read_weights(sample_weight, rows), len(rows)
    given = read_column("offset", offset, count), read_column("precision", precision, count)
    seen = weight > 0
    columns = [
        None if each is None else each[seen] for each in (*given, read_groups(groups, count))
    ]
    if not seen.all():
        rows, codes, weight = rows[seen], codes[seen], weight[seen]
    weighted = (
        outcome.reweight(codes, weight, task.settings)
        if fitting
        else outcome.weighted(codes, weight)
    )
    job = Job(
        rows,
        torch.from_numpy(np.array(codes)),  # a copy: the given one may be read-only
        target,
        torch.from_numpy(weighted),
        None if columns[0] is None else torch.from_numpy(columns[0]),
        torch.from_numpy(np.flatnonzero(seen)),
        None if columns[1] is None else torch.from_numpy(columns[1]),
        columns[2],
    )
    return outcome.read(job)
