"""One pass over a stream: the split of its rows, their statistics, a sample of each part."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz.data.split import TEST, TRAIN, VALID, HashSplit
from ansatz.data.streams.learner import Learner
from ansatz.data.streams.survey import RowSample
from ansatz.errors import DataError
from ansatz.fitting.job import Job
from ansatz.fitting.problem import locate
from ansatz.likelihoods import Likelihood
from ansatz.storage.disk import explain
from ansatz.structures.vector.rows import TableRows
from ansatz.structures.vector.streamed_rows import StreamedRows

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
        """How many rows train, stop the training, and test."""
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
    """Passes over all rows once.

    Args:
        rows: the stream.
        split: decides each row's part by the row alone.
        learner: is shown the training rows.
        likelihood: refuses outcomes that it cannot produce; None lets all pass.
        sampled: rows of each part that are kept.
    """
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
