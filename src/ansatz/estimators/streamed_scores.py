"""How a model does on the test rows of a stream, beside simpler models, in bounded memory."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ansatz.data.streams.hash_split import TEST
from ansatz.estimators.baselines import best_linear, constant_raw
from ansatz.estimators.job import Job
from ansatz.estimators.pooled_metrics import PooledMetrics
from ansatz.estimators.scores import Scores, judge_all
from ansatz.estimators.stream_parts import StreamParts
from ansatz.estimators.streamed_rows import StreamedRows
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.likelihoods import Likelihood

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
        >>> from ansatz.estimators.streamed_scores import judge_stream
        >>> list(inspect.signature(judge_stream).parameters)[-1]
        'test'
    """
    if parts.samples[TEST].complete:
        return judge_all(model, learn, test)
    notes: list[str] = []
    answers: dict[str, Answer] = {"metrics": lambda job: _served(model, job, notes)}
    law = model._law_of(learn.target)
    messages: list[str] = []
    if model.network != "linear" and model._has_features(learn):
        linear, messages = best_linear(law, learn)
        answers["linear"] = lambda job: (
            linear.objective.likelihood,
            linear.raw(job.rows, job.offset, notes=[]),
        )
    answers["constant"] = lambda job: constant_raw(law, learn, job)
    pooled = {name: PooledMetrics() for name in answers}
    for job in jobs_to_judge(rows, parts):
        for name, answer in answers.items():
            likelihood, raw = answer(job)
            pooled[name].add(model._judge(likelihood, raw, job.y, job.weight), job.y, job.weight)
    found = {}
    for name, answer in answers.items():
        likelihood, raw = answer(test)
        sample = model._judge(likelihood, raw, test.y, test.weight)
        found[name] = pooled[name].result(sample)
    if "linear" not in answers and model.network == "linear":
        found["linear"] = found["metrics"]
    left = pooled["metrics"].left(k for k, v in found["metrics"].items() if v is not None)
    if left:
        messages.append(f"{', '.join(left)}: on a sample of {len(test.y):,} test rows.")
    judged = dict.fromkeys(f"judged rows: {note}" for note in notes)
    return Scores(
        found["metrics"],
        found.get("linear"),
        found["constant"],
        (*list(judged)[:5], *messages),
    )


def jobs_to_judge(rows: StreamedRows, parts: StreamParts) -> Iterator[Job]:
    """The test rows, block by block.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.streamed_scores import jobs_to_judge
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
