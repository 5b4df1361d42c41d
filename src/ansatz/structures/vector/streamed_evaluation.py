"""A saved model evaluated on a table of any size."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from ansatz.data.streams import RowSample
from ansatz.errors import DataError
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.pooled_metrics import PooledMetrics

SAMPLED = 30_000  # rows that are held in memory


class StreamedEvaluation(NamedTuple):
    """Metrics of all rows, and which of them come from a sample."""

    metrics: Metrics
    rows: int
    sampled: list[str]  # metrics that compare rows with each other
    sample_rows: int


def evaluate_stream(
    face: Any, frames: Iterable[pd.DataFrame], *, sampled: int = SAMPLED
) -> StreamedEvaluation:
    """Every metric of a model of ``ansatz.fit`` on rows that come in frames, in bounded memory.

    Args:
        face: the estimator of a model of :func:`ansatz.fit`: it knows its columns by name.
        frames: rows with outcomes; their index numbers them.
        sampled: rows that are kept for metrics that are no means.
    """
    model, pooled, sample = face.model_, PooledMetrics(), RowSample(sampled)
    for frame in frames:
        if frame.empty:
            continue
        sample.add(frame)
        weight = model.uses.weight(frame)
        mass = torch.from_numpy(np.ones(len(frame)) if weight is None else weight)
        y, _ = model.outcome.encode(model.uses.outcomes(frame), model.task.settings, reset=False)
        pooled.add(face.evaluate(frame), torch.from_numpy(np.array(y)), mass)
    if sample.seen == 0:
        raise DataError("there are no rows to judge by.")
    rows = sample.frame
    metrics = face.evaluate(rows)
    if sample.complete:
        return StreamedEvaluation(metrics, sample.seen, [], sample.seen)
    left = pooled.left(name for name, value in metrics.items() if value is not None)
    return StreamedEvaluation(pooled.result(metrics), sample.seen, left, len(rows))
