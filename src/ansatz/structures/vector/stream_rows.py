"""Rows of a table on disk: read block by block, divided into parts, fed as batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from ansatz.data import Batch, Column
from ansatz.data.columns import plain_columns
from ansatz.data.split import TEST, TRAIN, VALID, HashSplit
from ansatz.data.streams.block_source import BlockSource
from ansatz.data.streams.blocks import Blocks
from ansatz.data.streams.learner import Learner
from ansatz.data.streams.survey import RowSample
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, read_numbers
from ansatz.fitting.contracts.structure import Feed
from ansatz.fitting.job import Job
from ansatz.fitting.problem import locate
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Task
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive
from ansatz.storage.disk import explain
from ansatz.structures.vector.rows import TableEncoder, TableRows


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


class StreamedRows:
    """Turns frames of a table on disk into jobs for a task that has read a sample of it.

    Args:
        disk: the table.
        task: its outcome knows the classes and the names.
        factors: ``(K,)``, what the weight of each class is multiplied by; None for 1.
    """

    def __init__(
        self, disk: TableOnDisk, task: Task, factors: NDArray[np.float64] | None = None
    ) -> None:
        self.disk, self.task, self.factors = disk, task, factors
        self.column_roles, self.origin = disk.column_roles, disk.origin

    def seen(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that count: with an outcome and a weight above 0."""
        gone = [name for name in self.disk.drop if name in frame.columns]
        frame = frame.drop(columns=gone)
        frame = frame[self.column_roles.known(frame)]
        frame = plain_columns(self.column_roles.plain(frame), self.disk.columns)
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
        """The keys of the split: hashes of the rows' content, or of their group."""
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


SAMPLED = 30_000  # rows of each part that are held in memory


class StreamParts(NamedTuple):
    """The split of a stream."""

    rows: NDArray[np.int64]  # (3, blocks): training, validation and test rows of each block
    weight: NDArray[np.float64]  # (3,)
    learner: Learner
    samples: tuple[RowSample, RowSample, RowSample]
    file: Path  # the part of each row that counts, one byte
    starts: NDArray[np.int64]  # of each block in that file

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of rows for training, validation and test."""
        train, valid, test = self.rows.sum(axis=1).tolist()
        return {"train": train, "valid": valid, "test": test}

    def part_of(self, block: int) -> NDArray[np.uint8]:
        """The parts of the rows of a block that count, in their order."""
        with self.file.open("rb") as file:
            file.seek(int(self.starts[block]))
            content = file.read(int(self.starts[block + 1] - self.starts[block]))
        return np.frombuffer(content, dtype=np.uint8)


class StreamPart(NamedTuple):
    """The rows of a stream that train, that stop the training, or that test."""

    table: StreamedRows
    parts: StreamParts
    number: int  # TRAIN, VALID or TEST

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows in each block."""
        rows: NDArray[np.int64] = self.parts.rows[self.number]
        return rows

    @property
    def is_held(self) -> bool:
        """Whether the sample is all of the rows."""
        return self.parts.samples[self.number].complete

    def sample(self) -> Job | None:
        """The rows that are held in memory; None where there are none."""
        frame = self.parts.samples[self.number].frame
        return None if frame.empty else self._job(self.table.disk.blocks.kinds.settle(frame))

    def read(self, block: int) -> Job:
        """The rows of one block."""
        frame = self.table.seen(self.table.disk.blocks.read(block))
        return self._job(frame[self.parts.part_of(block) == self.number])

    def jobs(self) -> Iterator[Job]:
        """All rows, block by block."""
        return (self.read(int(block)) for block in np.flatnonzero(self.counts))

    def _job(self, frame: pd.DataFrame) -> Job:
        job = self.table.job(frame)
        return job._replace(rows=TableRows(job.rows.values, self.table.disk.columns, stream=self))  # type: ignore[attr-defined]


def divide(
    rows: StreamedRows,
    split: HashSplit,
    learner: Learner,
    *,
    likelihood: Likelihood | None = None,
    sampled: int = SAMPLED,
) -> StreamParts:
    """Passes over all rows once."""
    blocks = rows.disk.blocks
    counts = np.zeros((3, len(blocks)), dtype=np.int64)
    weight = np.zeros(3)
    samples = tuple(
        RowSample(sampled, seed=split.seed, use=use) for use in ("train", "valid", "test")
    )
    file = rows.disk.folder / "parts"
    starts = np.zeros(len(blocks) + 1, dtype=np.int64)
    try:
        with file.open("wb") as out:
            for block, whole in enumerate(blocks.frames()):
                frame = rows.seen(whole)
                part = _divide_block(
                    rows, frame, split, learner, likelihood, counts[:, block], weight
                )
                for sample, number in zip(samples, (TRAIN, VALID, TEST), strict=True):
                    sample.add(frame[part == number])
                out.write(part.tobytes())
                starts[block + 1] = starts[block] + len(part)
    except OSError as error:
        raise explain(error, file) from error
    return StreamParts(counts, weight, learner, samples, file, starts)  # type: ignore[arg-type]


def _divide_block(
    rows: StreamedRows,
    frame: pd.DataFrame,
    split: HashSplit,
    learner: Learner,
    likelihood: Likelihood | None,
    counts: NDArray[np.int64],
    weight: NDArray[np.float64],
) -> NDArray[np.uint8]:
    if frame.empty:
        return np.empty(0, dtype=np.uint8)
    job = rows.job(frame)
    if likelihood is not None:
        try:
            likelihood.check(job.y)
        except DataError as error:
            raise locate(error, rows.origin, frame, rows.column_roles) from None
    part: NDArray[np.uint8] = split.parts(rows.keys(job, split))
    mass = job.weight.numpy()
    for number in (TRAIN, VALID, TEST):
        counts[number] = int((part == number).sum())
        weight[number] += float(mass[part == number].sum())
    learn = part == TRAIN
    learner.add(job.rows[learn].values, mass[learn])  # type: ignore[attr-defined]
    return part


WINDOW_BYTES = 24 * 2**20  # of encoded rows that are mixed; twice that while they are


def stream_recipe(recipe: Recipe, stream: StreamPart, options: Mapping[str, Any]) -> Recipe:
    """Replaces a batch of all rows, and counts passes over all training rows."""
    rows, epochs = int(stream.counts.sum()), options.get("epochs")
    if recipe.batch_size == 0:
        if options.get("batch_size") == 0:
            raise UsageError(
                "batch_size=0 takes all rows at once, which a stream cannot: --no-stream."
            )
        recipe = recipe.model_copy(update={"batch_size": rows, "folds": 0})
    if epochs is not None:
        steps = max(1, round(epochs * -(-rows // recipe.batch_size)))  # whole passes
        recipe = recipe.model_copy(update={"steps": steps})
    return recipe


def stream_source(
    stream: StreamPart, encoder: TableEncoder, feed: Feed, encode: Callable[[Job], Batch]
) -> BlockSource:
    """Makes batches of the rows of a stream; the rows of some 24 MB of blocks are mixed."""
    counts, made = stream.counts, encoder.preprocessor
    width = len(made.feature_names) + 4 + len(made.spec.cardinalities)
    block = max(1.0, float(counts.mean())) * width * getattr(torch, feed.recipe.dtype).itemsize
    return BlockSource(
        lambda number: encode(stream.read(number)),
        counts.tolist(),
        feed.recipe.batch_size,
        seed=derive(feed.seed, "rows"),
        window=int(np.clip(WINDOW_BYTES / block, 2, 64)),
    )
