"""How a model does on the test rows of a stream, beside simpler models, in bounded memory."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ansatz.data.streams.hash_split import TEST
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.baselines import Metrics, best_linear, constant_raw
from ansatz.fitting.job import Job
from ansatz.fitting.pooled_metrics import PooledMetrics
from ansatz.fitting.scores import Scores, _said
from ansatz.fitting.split import take
from ansatz.likelihoods import Likelihood
from ansatz.structures.vector.stream_parts import StreamParts
from ansatz.structures.vector.streamed_rows import StreamedRows

CHUNK = 8_192  # rows predicted at once
Answer = Callable[[Job], tuple[Likelihood, Tensor]]  # the law and its raw numbers


def judge_stream(
    model: TableEstimator, rows: StreamedRows, parts: StreamParts, learn: Job, test: Job
) -> Scores:
    """The model, and the linear and the constant model fitted to a sample, on all test rows.

    Args:
        model: fitted.
        rows: the stream.
        parts: which of its rows test.
        learn: a sample of the training rows, which the simpler models learn from.
        test: a sample of the test rows, which metrics that are no means are taken from.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.streamed_scores import judge_stream
        >>> list(inspect.signature(judge_stream).parameters)[-1]
        'test'
    """
    learn, test = model._plain(learn), model._plain(test)
    notes: list[str] = []
    answers: dict[str, Answer] = {"metrics": lambda job: _served(model, job, notes)}
    law = model._law_of(learn.target)
    messages: list[str] = []
    if model.network == "linear":
        messages = _said(model)
    elif model._has_features(learn):  # without them it is the constant model
        linear, messages = best_linear(law, learn)
        answers["linear"] = lambda job: (
            linear.objective.likelihood,
            linear.raw(job.rows, job.offset, notes=[]),
        )
    answers["constant"] = lambda job: constant_raw(law, learn, job)
    found = {name: _judge(model, answer, test) for name, answer in answers.items()}
    if not parts.samples[TEST].complete:
        pooled = {name: PooledMetrics() for name in answers}
        for job in map(model._plain, jobs_to_judge(rows, parts)):
            for name, answer in answers.items():
                pooled[name].add(_judge(model, answer, job), job.y, job.weight)
        found = {name: pooled[name].result(metrics) for name, metrics in found.items()}
        left = pooled["metrics"].left(k for k, v in found["metrics"].items() if v is not None)
        if left:
            messages.append(f"{', '.join(left)}: on a sample of {len(test.y):,} test rows.")
    if model.network == "linear":
        found["linear"] = found["metrics"]
    judged = list(dict.fromkeys(f"judged rows: {note}" for note in notes))
    return Scores(
        found["metrics"], found.get("linear"), found["constant"], (*judged[:5], *messages)
    )


def _judge(model: TableEstimator, answer: Answer, job: Job) -> Metrics:
    """Metrics of an answer, computed for some thousand rows at a time: hidden layers are wide."""
    parts = [
        answer(take(job, np.arange(first, min(first + CHUNK, len(job.y)))))
        for first in range(0, len(job.y), CHUNK)
    ]
    raw = torch.cat([raw for _, raw in parts])
    return model._judge(parts[0][0], raw, job.y, job.weight)


def jobs_to_judge(rows: StreamedRows, parts: StreamParts) -> Iterator[Job]:
    """The test rows, block by block.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.streamed_scores import jobs_to_judge
        >>> list(inspect.signature(jobs_to_judge).parameters)
        ['rows', 'parts']
    """
    for block in np.flatnonzero(parts.rows[TEST]):
        frame = rows.seen(rows.posed.blocks.read(int(block)))
        yield rows.job(frame[parts.part_of(int(block)) == TEST])


def _served(model: TableEstimator, job: Job, notes: list[str]) -> tuple[Likelihood, Tensor]:
    said: list[str] = []
    with torch.no_grad():
        raw = model._served_raw(model.model_.raw(job.rows, job.offset, notes=said))
    if len(notes) < 5:  # counts are those of a block: the first ones stand for all
        notes += said
    return model.model_.objective.likelihood, raw
