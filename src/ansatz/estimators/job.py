"""One fit of a table, read and typed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.data.grids import Grids
from ansatz.spec import InputSpec, TargetSpec


class Job(NamedTuple):
    """One fit with everything read and typed: rows, outcomes, weights, and which rows stop it.

    Example:
        >>> from ansatz.estimators.job import Job
        >>> Job._fields[:3]
        ('rows', 'columns', 'y')
    """

    rows: Any  # an array of numbers, a frame, or grids
    columns: list[Column] | None  # None for an array
    y: Tensor
    target: TargetSpec
    weight: Tensor
    offset: Tensor | None
    index: Tensor  # type: ignore[assignment]  # numbers of the rows, which name them in errors
    precision: Tensor | None = None  # R's prior weights, for linear models
    group: NDArray[Any] | None = None  # rows alike in it stay on one side of every inner split
    time: NDArray[Any] | None = None  # every inner split is forward in it
    part: NDArray[Any] | None = None  # "train", "validation" or "test", where the data say so
    valid: NDArray[np.intp] | None = None  # None: chosen by the hash of the rows
    trainer_options: Mapping[str, Any] = {}  # never changed
    labels_cells: bool = False  # an outcome is a class for every cell of its example

    @property
    def grid(self) -> InputSpec | None:
        """What an example looks like, where rows are signals, images or volumes."""
        return self.rows.spec if isinstance(self.rows, Grids) else None


def take(job: Job, rows: NDArray[np.intp]) -> Job:
    """The job of some of the rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.job import take
        >>> job = Regressor()._read(np.zeros((3, 1)), np.arange(3.0))
        >>> take(job, np.array([0, 2])).y.tolist()
        [0.0, 2.0]
    """
    index = torch.from_numpy(rows)
    return job._replace(
        rows=job.rows.iloc[rows] if isinstance(job.rows, pd.DataFrame) else job.rows[rows],
        y=job.y[index],
        weight=job.weight[index],
        offset=None if job.offset is None else job.offset[index],
        index=job.index[index],
        precision=None if job.precision is None else job.precision[index],
        group=None if job.group is None else job.group[rows],
        time=None if job.time is None else job.time[rows],
        part=None if job.part is None else job.part[rows],
    )


def has_masks(job: Job) -> bool:
    """Whether an outcome is a label for every cell of its example.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.job import has_masks
        >>> has_masks(Regressor()._read(np.zeros((3, 1)), np.arange(3.0)))
        False
    """
    return job.grid is not None and job.labels_cells
