"""Scores of a model on held-out rows, beside simpler models of the same likelihood."""

import functools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.data.streams.learner import Moments
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model, PointPosterior
from ansatz.fitting.split import Rows
from ansatz.fitting.task import Task
from ansatz.fitting.training import start_objective
from ansatz.likelihoods import Cox, Likelihood, Quantiles
from ansatz.metrics import compute_metrics, pinball

MEANS = ("nll", "crps", "mae", "accuracy", "brier", "pinball", "energy_score", "mean_angular_error")


class PooledMetrics:
    r"""Means over all rows from the means of blocks; other metrics come from a sample.

    A metric that is a mean over rows is the weighted mean of the blocks' values; the RMSE is the
    root of that of squares, and :math:`R^2 = 1 - \sum (y - f)^2 / \sum (y - \bar y)^2` of sums.
    What compares rows with each other (AUC, ECE, concordance) is that of ``sample``.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._undefined: set[str] = set()
        self._moments = Moments(1)
        self._weight = 0.0

    def add(self, metrics: Metrics, y: Tensor, weight: Tensor) -> None:
        """Takes in the metrics of some rows, their outcomes and weights."""
        mass = float(weight.sum())
        if mass == 0:
            return
        self._weight += mass
        for name in (*MEANS, "rmse"):
            if name in metrics:
                value = metrics[name]
                if value is None:
                    self._undefined.add(name)
                    continue
                value = value**2 if name == "rmse" else value
                self._sums[name] = self._sums.get(name, 0.0) + mass * value
        if y.ndim == 1 and y.is_floating_point():
            self._moments.add(y.double().numpy()[:, None], weight.double().numpy())
        else:
            self._undefined |= {"rmse", "r2"}  # means over targets: left to the sample

    def result(self, sample: Metrics) -> Metrics:
        """All metrics, in the order of those of the sample."""
        found = dict(sample)
        for name in self._sums:
            if name in self._undefined:
                continue
            mean = self._sums[name] / self._weight
            found[name] = math.sqrt(mean) if name == "rmse" else mean
        if "r2" in sample and "rmse" in self._sums and "rmse" not in self._undefined:
            total = float(self._moments.square[0]) / self._weight
            error = self._sums["rmse"] / self._weight
            found["r2"] = 1 - error / total if total > 0 else None
        return found

    def left(self, names: Iterable[str]) -> list[str]:
        """Lists the metrics that come from the sample."""
        own = {name for name in self._sums if name not in self._undefined}
        own |= {"r2"} if "rmse" in own else set()
        return [name for name in names if name not in own]


def constant_predictive(likelihood: Likelihood, learn: Job, test: Job) -> Predictive:
    """The maximum-likelihood constant model of ``learn``, at each row of ``test``.

    Outcomes on the elements of an example all get the shares of the labels in ``learn``.
    """
    if test.target.axis != "row":
        objective = start_objective(likelihood, learn)
        assert objective.shift is not None
        shift = objective.shift.double()
        raw = shift.expand(*test.y.shape, shift.numel()).clone().detach()
        return Predictive(objective.likelihood, raw)
    objective = start_objective(likelihood, learn, torch.float64)
    assert objective.shift is not None
    raw = objective.attach(torch.zeros(len(test.y), objective.shift.numel()).double(), test.offset)
    if isinstance(objective.likelihood, Cox):
        objective.likelihood.set_baseline(torch.zeros(len(learn.y)), learn.y, learn.weight)
        raw = torch.cat([raw, test.y[:, 3:].to(raw)], 1)  # the stratum, where there is one
    return Predictive(objective.likelihood, raw.detach())


def evaluate_predictive(predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
    """Every metric that applies: of the likelihood's distribution, or of a loss's point alone.

    Args:
        predictive: of each row.
        y: outcomes, ``(N, ...)``.
        weight: ``(N,)`` frequency weights.
    """
    likelihood, raw = predictive
    with torch.no_grad():
        if not likelihood.has_distribution:
            found = compute_metrics(y, point=likelihood.point(raw), weight=weight)
            if isinstance(likelihood, Quantiles):
                at = likelihood.quantiles(raw)
                found = {"pinball": float(pinball(y, at, likelihood.levels, weight)), **found}
            return found
        distribution, outcome = likelihood.given(raw, y)
        # The point that belongs to the outcome: a count of successes, not their share.
        point = likelihood.point(raw) if outcome is y else distribution.mean
        return compute_metrics(outcome, point=point, distribution=distribution, weight=weight)


Answer = Callable[[Job], Predictive]


class Scores(NamedTuple):
    """Metrics of the model, the linear and the constant model, and notes on their fits."""

    metrics: Metrics | None = None
    linear: Metrics | None = None
    constant: Metrics | None = None
    baselines: dict[str, Metrics] = {}  # further ones by name  # noqa: RUF012
    messages: tuple[str, ...] = ()


def evaluate_all(model: Model, learn: Job, test: Job) -> Scores:
    """Evaluates the model beside the linear and the constant model of its likelihood.

    Where the test rows held are a sample, means over rows are those of all test rows.
    """
    outcome, structure, task = model.outcome, model.structure, model.task
    learn, test = outcome.plain(learn), outcome.plain(test)
    likelihood = task.likelihood(learn.target)
    messages: list[str] = []
    notes: list[str] = []
    answers: dict[str, Answer] = {
        "metrics": lambda job: model.predictive(job.rows, job.offset, notes=notes)
    }
    if is_linear(model):
        messages = linear_messages(model)
    elif learn.rows.has_features:  # without them it is the constant model
        posterior, messages = outcome.baseline(structure, likelihood, learn, task.settings.seed)
        if posterior is not None:  # the network's own notes are the same
            answers["linear"] = lambda job: posterior.predictive(job.rows, job.offset, notes=[])
    if not outcome.is_x:  # whose simplest model is among its baselines
        answers["constant"] = lambda job: (
            outcome.constant(model, likelihood, learn, job)
            or constant_predictive(likelihood, learn, job)
        )
    more, added = outcome.baselines(structure, likelihood, learn, task.settings.seed)
    messages += added
    for name, each in more.items():
        answers[name] = functools.partial(_answer, each)

    posteriors = {"metrics": model.posterior, **more}

    def evaluate(job: Job) -> dict[str, Metrics]:
        found = {
            name: outcome.evaluate(answer(job), job.y, job.weight)
            for name, answer in answers.items()
        }
        for name, each in posteriors.items():
            found[name] |= outcome.measure(each, job.rows)
        return found

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
    reported = (*(f"evaluated rows: {note}" for note in notes), *messages)
    others = {name: found[name] for name in more}
    return Scores(found["metrics"], found.get("linear"), found.get("constant"), others, reported)


def _answer(posterior: Posterior, job: Job) -> Predictive:
    return posterior.predictive(job.rows, job.offset, notes=[])


def is_linear(model: Model) -> bool:
    """Tests whether the model is itself the linear model of its structure."""
    names = {model.structure.linear_network(axis) for axis in ("row", "element")}
    solved = isinstance(model.posterior, PointPosterior)
    return model.network_name in names and model.has_features and solved


def cross_validate(
    task: Task, job: Job, number: Rows, progress: Callable[[int, int], None] | None = None
) -> Scores:
    """Evaluates every row once, by a model that never saw it; means over folds by weight."""
    scores, weights = [], []
    for k in range(number.max() + 1):
        if progress is not None:
            progress(k, int(number.max()) + 1)
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
        {
            name: _mean([score.baselines.get(name) for score in scores], weights)
            for name in scores[0].baselines
        },
        tuple(messages),
    )


def linear_messages(model: Model) -> list[str]:
    """The messages of the exact linear fits."""
    messages = [message for fit in model.linear for message in fit.messages]
    return list(dict.fromkeys(f"linear model: {sentence}" for sentence in messages))


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
