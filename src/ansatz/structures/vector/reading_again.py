"""Tables for a fitted model: read at once, or chunk by chunk where they are larger than memory."""

import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch

from ansatz import data as tables
from ansatz.data.columns import plain_columns
from ansatz.data.streams.available import reason_to_stream
from ansatz.data.streams.blocks import read_blocks
from ansatz.data.streams.survey import RowSample
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.model import Model
from ansatz.fitting.problem import check_known
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.scores import PooledMetrics

SAMPLED = 30_000  # rows that are held in memory


class StreamedEvaluation(NamedTuple):
    """Metrics of all rows, and which of them come from a sample."""

    metrics: Metrics
    rows: int
    sampled: list[str]  # metrics that compare rows with each other
    sample_rows: int


def evaluate_stream(
    estimator: Any, frames: Iterable[pd.DataFrame], *, sampled: int = SAMPLED
) -> StreamedEvaluation:
    """Every metric of a model of ``ansatz.fit`` on rows that come in frames, in bounded memory."""
    model, pooled, sample = estimator.model_, PooledMetrics(), RowSample(sampled)
    for frame in frames:
        if frame.empty:
            continue
        sample.add(frame)
        weight = model.column_roles.weight(frame)
        mass = torch.from_numpy(np.ones(len(frame)) if weight is None else weight)
        y, _ = model.outcome.encode(
            model.column_roles.outcomes(frame), model.task.settings, reset=False
        )
        pooled.add(estimator.evaluate(frame, warn=False), torch.from_numpy(np.array(y)), mass)
    if sample.seen == 0:
        raise DataError("there are no rows to evaluate by.")
    rows = sample.frame
    metrics = estimator.evaluate(rows, warn=False)
    if sample.complete:
        return StreamedEvaluation(metrics, sample.seen, [], sample.seen)
    left = pooled.left(name for name, value in metrics.items() if value is not None)
    return StreamedEvaluation(pooled.result(metrics), sample.seen, left, len(rows))


_NUMBER = re.compile(r"(?<= )\d+(?= (?:rows|cells) )")
_MOST_NOTES = 20  # about chunks


def read_table_again(
    model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
) -> ReadAgain:
    """Reads a file, or a data set by its name; a header without rows is a table too.

    Columns that the model read as text stay text, and those it does not use may hold anything.
    """
    reading = dict(options)
    asked = {name: reading.pop(name, None) for name in ("stream", "memory_limit")}
    why = reason_to_stream(data, **asked)
    if why is not None:
        return StreamedTable(model, data, reading, why, notify)
    origin, frame = data, None
    if data in tables.names() and not Path(data).exists():
        frame = tables.load(data).frame
    else:
        table = tables.read_table(data, allow_empty=True, **_columns_of(model), **reading)
        origin, frame = table.origin, table.frame
        for note in table.notes:
            notify(note)
    if not outcomes:
        return ReadAgain(prepare(model, frame, origin, notify))
    frame = _plain(model, frame, origin)
    known = _known(model, frame)
    assert model.column_roles is not None
    if not known.any():
        raise DataError(f"{origin}: no row has a value of '{model.column_roles.outcome_name}'.")
    if not known.all():
        notify(f"rows without the target, which were left out: {int((~known).sum())}.")
    frame = prepare(model, frame[known], origin, notify)
    check_known(model, frame, origin)
    return ReadAgain(frame)


class StreamedTable(ReadAgain):
    """Reads a table that is larger than memory, one chunk after the other."""

    in_chunks: ClassVar[bool] = True

    def __init__(
        self, model: Model, data: str, reading: Mapping[str, Any], why: str, notify: Notify
    ) -> None:
        self.model, self.data, self.reading = model, data, reading
        self.why, self.notify = why, notify

    def frames(self, estimator: Any, **options: Any) -> Iterator[pd.DataFrame]:
        """Predicts chunk by chunk; a warning is given once, whatever the counts in it."""
        given: set[str] = set()
        for frame in self._chunks():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = estimator.predict_frame(frame, **options)
            for warning in caught:
                sentence = _NUMBER.sub("some", str(warning.message))
                if sentence not in given and len(given) < _MOST_NOTES:
                    given.add(sentence)
                    self.notify(sentence)
            yield found

    def evaluate(self, estimator: Any) -> tuple[Metrics, list[str]]:
        """Pools the metrics of all chunks; it does not look for duplicates of training rows."""
        assert self.model.column_roles is not None
        left_out = 0

        def known() -> Iterator[pd.DataFrame]:
            nonlocal left_out
            for frame in self._chunks():
                mask = _known(self.model, frame)
                left_out += int((~mask).sum())
                if mask.any():
                    check_known(self.model, frame[mask], self.data)
                    yield frame[mask]

        found = evaluate_stream(estimator, known())
        if left_out:
            name = self.model.column_roles.outcome_name
            self.notify(f"rows without '{name}', which were left out: {left_out}.")
        if found.sampled:
            names = ", ".join(found.sampled)
            self.notify(f"{names}: on a sample of {found.sample_rows:,} of {found.rows:,} rows.")
        return found.metrics, []

    def _chunks(self) -> Iterator[pd.DataFrame]:
        if self.model.features["names"] is None:
            raise UsageError("a model of columns without names reads tables at once: --no-stream")
        notes: list[str] = []
        options = {**_columns_of(self.model), **self.reading}
        for number, frame in enumerate(read_blocks(self.data, options, notes=notes)):
            yield prepare(self.model, frame, self.data, None if number else self.notify)
        for note in (self.why, *notes):
            self.notify(note)


def prepare(model: Model, frame: pd.DataFrame, origin: str, notify: Notify | None) -> pd.DataFrame:
    """Finds the columns of a model in a table by their names, in any order.

    A column that is missing is an error, unless the model left it out of its features; ``notify``
    takes a note about columns that the model does not know.
    """
    frame = _plain(model, frame, origin)
    names = model.features["names"]
    if names is None:  # trained on an array: its columns have no names to go by
        return frame
    unused = {column.name for column in model.columns or () if not column.used}
    frame = frame.assign(**{name: float("nan") for name in unused if name not in frame.columns})
    for name in names:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, map(str, frame.columns), n=1)
            hint = f" Is it '{near[0]}'? Rename it." if near else ""
            raise DataError(f"{origin}: no column '{name}', which the model needs.{hint}")
    used = _used_columns(model) or ()
    extra = [str(name) for name in frame.columns if str(name) not in used]
    if extra and notify is not None:
        shown = ", ".join(extra[:5]) + (", ..." if len(extra) > 5 else "")
        notify(f"{origin}: columns that the model does not know are ignored: {shown}")
    return frame


def _plain(model: Model, frame: pd.DataFrame, origin: str) -> pd.DataFrame:
    """The rows with numbers and dates where the model's columns spell them."""
    try:
        if model.column_roles is not None:
            frame = model.column_roles.plain(frame)
        return plain_columns(frame, model.columns or ())
    except DataError as error:
        raise DataError(f"{origin}, {error}") from None


def _known(model: Model, frame: pd.DataFrame) -> Any:
    """Which rows have an outcome; its columns must be there."""
    assert model.column_roles is not None
    model.column_roles.outcomes(frame)
    return model.outcome.known(frame, model.column_roles)


def _columns_of(model: Model) -> dict[str, Any]:
    """The columns that hold text, and those in which a word is an error."""
    text: list[str] = model.encoder.preprocessor.text_columns  # type: ignore[attr-defined]
    spelled = [column.name for column in model.columns or () if column.spelling is not None]
    if model.column_roles is not None:
        spelled += model.column_roles.spellings
    return {"text": [*text, *spelled], "strict": _used_columns(model)}


def _used_columns(model: Model) -> set[str] | None:
    """Features, target, weights and so on by name; None for a model of columns without names."""
    if model.features["names"] is None:
        return None
    special = [] if model.column_roles is None else list(model.column_roles.model_dump().values())
    used = {
        name for names in special for name in ([names] if isinstance(names, str) else names or ())
    }
    return used | set(model.features["names"])
