"""Rows of a stream as a job: typed as the rows of a table in memory are."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from ansatz.data.split import HashSplit
from ansatz.errors import DataError
from ansatz.fitting.column_roles import read_numbers
from ansatz.fitting.job import Job
from ansatz.fitting.problem import locate
from ansatz.fitting.task import Task
from ansatz.structures.vector.rows import TableRows
from ansatz.structures.vector.stream_problem import TableOnDisk


class StreamedRows:
    """Turns frames of a table on disk into jobs for a task that has read a sample of it.

    Args:
        disk: the table.
        task: its outcome knows the classes and the names.
        factors: ``(K,)``, what the weight of each class is multiplied by; None for 1.
    """

    def __init__(
        self,
        disk: TableOnDisk,
        task: Task,
        factors: NDArray[np.float64] | None = None,
    ) -> None:
        self.disk, self.task, self.factors = disk, task, factors
        self.column_roles, self.origin = disk.column_roles, disk.origin

    def seen(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that count: with an outcome and a weight above 0."""
        gone = [name for name in self.disk.drop if name in frame.columns]
        frame = frame.drop(columns=gone)
        frame = frame[self.column_roles.known(frame)]
        if self.column_roles.weights is None:
            return frame
        return frame[self._number(frame, self.column_roles.weights, least=0.0) > 0]

    def job(self, frame: pd.DataFrame) -> Job:
        """A job of rows that count; ``index`` and errors name them as the table does."""
        column_roles, task = self.column_roles, self.task
        try:
            codes, target = task.outcome.encode(
                column_roles.outcomes(frame), task.settings, reset=False
            )
        except DataError as error:
            raise locate(error, self.origin, frame, column_roles) from None
        weight = np.ones(len(frame))
        if column_roles.weights is not None:
            weight = self._number(frame, column_roles.weights, least=0.0).copy()
        if self.factors is not None:
            weight = weight * self.factors[codes.astype(np.intp)]
        try:
            offset = column_roles.offsets(frame)
        except DataError:
            offset = self._offsets(frame)
        return Job(
            TableRows(column_roles.features(frame), self.disk.columns),
            torch.from_numpy(np.array(codes)),
            target,
            torch.from_numpy(weight),
            None if offset is None else torch.from_numpy(np.array(offset)),
            torch.from_numpy(frame.index.to_numpy() + 1),
            group=None if column_roles.group is None else frame[column_roles.group].to_numpy(),
        )

    def keys(self, job: Job, split: HashSplit) -> NDArray[np.uint64]:
        """What the split goes by: the rows' content, or their group."""
        if job.group is not None:
            groups = pd.Series(job.group, name="group")
            return split.group_keys(groups, job.index.numpy())
        return job.keys(split.seed)

    def _offsets(self, frame: pd.DataFrame) -> Any:
        """Says again what is wrong with offset or exposure, with the table's row."""
        for name in (self.column_roles.offset, self.column_roles.exposure):
            if name is not None:
                self._number(frame, name, least=None)
        assert self.column_roles.exposure is not None
        values = frame[self.column_roles.exposure].to_numpy(dtype=np.float64)
        row = frame.index[int((values <= 0).argmax())] + 1
        raise DataError(
            f"{self.origin}, row {row}, column '{self.column_roles.exposure}': an exposure must be "
            f"positive, got {values.min():g}."
        )

    def _number(
        self, frame: pd.DataFrame, name: str, *, least: float | None
    ) -> NDArray[np.float64]:
        try:
            return read_numbers(frame, name, least=least)
        except DataError as error:
            values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)
            bad = ~np.isfinite(values) if least is None else ~(values >= least) | np.isinf(values)
            row = frame.index[int(bad.argmax())] + 1
            raise DataError(
                f"{self.origin}, row {row}, column '{name}': expected a finite number"
                f"{'' if least is None else f' >= {least:g}'}, got {frame[name].loc[row - 1]}."
            ) from error
