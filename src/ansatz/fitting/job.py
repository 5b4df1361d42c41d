"""One fit with everything read and typed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import row_keys
from ansatz.fitting.contracts.rows import Rows
from ansatz.spec import TargetSpec


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
    part: NDArray[Any] | None = None  # "train", "validation" or "test", where the data say so
    valid: NDArray[np.intp] | None = None  # None: chosen by the hash of the rows
    held_out: "Job | None" = None  # other rows that stop the training, in place of ``valid``
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
