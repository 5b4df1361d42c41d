"""How a model does on rows it never saw, beside simpler models of the same law."""

from typing import NamedTuple

import numpy as np

from ansatz.fitting.baselines import constant_predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model
from ansatz.fitting.split import Rows
from ansatz.fitting.task import Task


class Scores(NamedTuple):
    """Metrics of the model, the linear and the constant model, and notes on their fits."""

    metrics: Metrics | None = None
    linear: Metrics | None = None
    constant: Metrics | None = None
    messages: tuple[str, ...] = ()


def evaluate_all(model: Model, learn: Job, test: Job) -> Scores:
    """Evaluates the model, and the linear and the constant model of its law fitted to ``learn``.

    Args:
        model: fitted to ``learn``.
        learn: the training rows.
        test: the rows to evaluate on.
    """
    outcome, structure, task = model.outcome, model.structure, model.task
    learn, test = outcome.plain(learn), outcome.plain(test)
    law = task.law(learn.target)
    linear: Metrics | None = None
    messages: list[str] = []
    notes: list[str] = []
    metrics = model.evaluate(test, notes)
    if is_linear(model):
        linear, messages = metrics, linear_messages(model)
    elif learn.rows.has_features:  # without them it is the constant model
        posterior, messages = structure.baseline(law, learn, task.settings.seed)
        if posterior is not None:  # the network's own notes say the same
            found = posterior.predictive(test.rows, test.offset, notes=[])
            linear = outcome.evaluate(found, test.y, test.weight)
    constant = outcome.evaluate(constant_predictive(law, learn, test), test.y, test.weight)
    said = (*(f"judged rows: {note}" for note in notes), *messages)
    return Scores(metrics, linear, constant, said)


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
