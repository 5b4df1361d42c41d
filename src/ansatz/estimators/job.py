"""One fit of a table, read and typed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.spec import TargetSpec


class Job(NamedTuple):
    """One fit with everything read and typed: rows, outcomes, weights, and which rows stop it.

    Example:
        >>> from ansatz.estimators.job import Job
        >>> Job._fields[:3]
        ('rows', 'columns', 'y')
    """

    rows: Any  # an array of numbers, or a frame
    columns: list[Column] | None  # None for an array
    y: Tensor
    target: TargetSpec
    weight: Tensor
    offset: Tensor | None
    index: Tensor  # type: ignore[assignment]  # numbers of the rows, which name them in errors
    precision: Tensor | None = None  # R's prior weights, for linear models
    group: NDArray[Any] | None = None  # rows alike in it stay on one side of every inner split
    time: NDArray[Any] | None = None  # every inner split is forward in it
    valid: NDArray[np.intp] | None = None  # None: chosen by the hash of the rows
    trainer_options: Mapping[str, Any] = {}  # never changed
