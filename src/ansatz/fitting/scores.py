"""How a model does on rows it never saw, beside simpler models of the same law."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ansatz.fitting.baselines import constant_predictive
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model
from ansatz.fitting.pooled_metrics import PooledMetrics
from ansatz.fitting.split import Rows
from ansatz.fitting.task import Task

Answer = Callable[[Job], Predictive]


class Scores(NamedTuple):
    """Metrics of the model, the linear and the constant model, and notes on their fits."""

    metrics: Metrics | None = None
    linear: Metrics | None = None
    constant: Metrics | None = None
    messages: tuple[str, ...] = ()


def evaluate_all(model: Model, learn: Job, test: Job) -> Scores:
    """Evaluates the model, and the linear and the constant model of its law fitted to ``learn``.

    Where the test rows held are a sample, means over rows are those of all test rows.

    Args:
        model: fitted to ``learn``.
        learn: the training rows.
        test: the rows to evaluate on.
    """
    outcome, structure, task = model.outcome, model.structure, model.task
    learn, test = outcome.plain(learn), outcome.plain(test)
    law = task.law(learn.target)
    messages: list[str] = []
    notes: list[str] = []
    answers: dict[str, Answer] = {
        "metrics": lambda job: model.predictive(job.rows, job.offset, notes=notes)
    }
    if is_linear(model):
        messages = linear_messages(model)
    elif learn.rows.has_features:  # without them it is the constant model
        posterior, messages = structure.baseline(law, learn, task.settings.seed)
        if posterior is not None:  # the network's own notes say the same
            answers["linear"] = lambda job: posterior.predictive(job.rows, job.offset, notes=[])
    answers["constant"] = lambda job: constant_predictive(law, learn, job)

    def evaluate(job: Job) -> dict[str, Metrics]:
        return {
            name: outcome.evaluate(answer(job), job.y, job.weight)
            for name, answer in answers.items()
        }

    found, everything = evaluate(test), structure.jobs(test)
    if everything is not None:
        pooled = {name: PooledMetrics() for name in answers}
        for job in map(outcome.plain, everything):
            for name, metrics in evaluate(job).items():
                pooled[name].add(metrics, job.y, job.weight)
        found = {name: pooled[name].result(metrics) for name, metrics in found.items()}
        left = pooled["metrics"].left(k for k, v in found["metrics"].items() if v is not None)
        if left:
            messages.append(f"{', '.join(left)}: on a sample of {len(test.y):,} test rows.")
    if is_linear(model):
        found["linear"] = found["metrics"]
    said = (*(f"judged rows: {note}" for note in notes), *messages)
    return Scores(found["metrics"], found.get("linear"), found["constant"], said)


def is_linear(model: Model) -> bool:
    """Whether the model is itself the linear model of its structure."""
    names = {model.structure.linear_network(axis) for axis in ("row", "element")}
    return model.network_name in names and model.has_features


def cross_validate(task: Task, job: Job, number: Rows) -> Scores:
    """Evaluates every row once, by a model that never saw it; means over folds by weight.

    Args:
        task: what to fit.
        job: the rows.
        number: the fold of each row.
    """
    scores, weights = [], []
    for k in range(number.max() + 1):
        inside, outside = np.flatnonzero(number != k), np.flatnonzero(number == k)
        learn, test = take(job, inside), take(job, outside)
        model = fit_model(task, learn)
        scores.append(evaluate_all(model, learn, test))
        weights.append(float(model.outcome.plain(test).weight.sum()))
    messages = dict.fromkeys(message for score in scores for message in score.messages)
    return Scores(
        _mean([score.metrics for score in scores], weights),
        _mean([score.linear for score in scores], weights),
        _mean([score.constant for score in scores], weights),
        tuple(messages),
    )


def linear_messages(model: Model) -> list[str]:
    """What the fit of an exact linear model had to say."""
    said = [message for fit in model.linear for message in fit.messages]
    return list(dict.fromkeys(f"linear model: {sentence}" for sentence in said))


def _mean(parts: list[Metrics | None], weights: list[float]) -> Metrics:
    names = dict.fromkeys(name for part in parts if part for name in part)
    means: Metrics = {}
    for name in names:
        values = [part.get(name) if part else None for part in parts]
        known = [value for value in values if value is not None]
        means[name] = (
            float(np.average(known, weights=weights)) if len(known) == len(values) else None
        )
    return means
