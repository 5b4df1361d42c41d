"""Scores of a configuration on folds of the training rows."""

import copy
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import DataError, NumericalError
from ansatz.fitting import Request
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.problem import Problem, read_job
from ansatz.fitting.scores import constant_predictive
from ansatz.fitting.task import Task, split_options, task_of
from ansatz.report.paired_scores import Evaluated, evaluate_rows, score_pair
from ansatz.seeds import derive
from ansatz.tuning.space import settings_of


class OutOfTime(Exception):
    """The search ran out of time within a trial, which then does not count."""


class InnerFolds(NamedTuple):
    """The training rows in folds, the same for every configuration."""

    request: Request
    problem: Problem
    rows: NDArray[np.intp]
    folds: Folds
    likelihood: str
    network: str

    @property
    def seed(self) -> int:
        """The seed of the search."""
        return self.request.options["seed"]

    def configuration(self, parameters: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
        """The likelihood, the network and the other options of a point of the space."""
        network = parameters.get("network", self.network)
        chosen = settings_of(parameters, network)
        chosen.pop("network", None)
        return chosen.pop("likelihood", self.likelihood), network, chosen

    def task(self, parameters: Mapping[str, Any]) -> tuple[Task, Job]:
        """The task of a configuration, and the training rows as it reads them."""
        likelihood, network, chosen = self.configuration(parameters)
        options = {**(self.request.options["options"] or {}), **chosen}
        asked = self.request.but(likelihood=likelihood, network=network, options=options)
        _, own = split_options(likelihood, asked.settings())
        likelihood_options = {**self.problem.likelihood_options, **own}
        problem = self.problem._replace(
            candidates=[likelihood], likelihood_options=likelihood_options
        )
        task = task_of(asked, problem)
        return task, take(read_job(problem, task), self.rows)

    def scores(self, parameters: Mapping[str, Any], deadline: float | None = None) -> list[float]:
        """The mean score of each fold's rows by a model of the other folds; larger is better.

        Args:
            parameters: a point of the space; empty for the default recipe.
            deadline: on the monotonic clock; a trial that passes it is abandoned.
        """
        task, learn = self.task(parameters)
        found = []
        for k, (inside, outside) in enumerate(self.folds):
            limit = _until(deadline, task.settings.time_limit)
            seed = derive(self.seed, "inner", k) >> 32
            part = take(learn, inside)._replace(valid=None, trainer_options={})
            model = fit_model(task.change(seed=seed, time_limit=limit), part)
            _until(deadline)  # a training that the deadline cut short evaluates nothing
            evaluated = evaluate_rows("trial", model, take(learn, outside))
            score = float(
                np.average(evaluated.log_scores.numpy(), weights=evaluated.job.weight.numpy())
            )
            if not np.isfinite(score):
                raise NumericalError(f"the score of fold {k + 1} is {score}.")
            found.append(score)
        return found


def _until(deadline: float | None, limit: float | None = None) -> float | None:
    """The seconds that a training may take: those that are left, or a limit of its own."""
    if deadline is None:
        return limit
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    return left if limit is None else min(left, limit)


def make_folds(learn: Job, count: int, seed: int) -> Folds:
    """Splits the training rows into folds; by group and, forward, by time."""
    folds = [
        (inside, outside)
        for inside, outside in choose_folds(learn, count, derive(seed, "tuning") >> 32)
        if len(inside) and len(outside)
    ]
    if len(folds) < 2:
        raise DataError(
            f"{len(learn.y)} training rows cannot be split into {count} folds to search by."
        )
    return folds


def comparable_likelihoods(folds: InnerFolds, candidates: list[str]) -> tuple[list[str], list[str]]:
    """The candidates whose scores have one measure with the default's, and the others.

    Compared by the constant model of each: a density and probabilities cannot compete.
    """
    others = [likelihood for likelihood in candidates if likelihood != folds.likelihood]
    if not others:
        return [folds.likelihood], []
    default = _constant(folds, folds.likelihood)
    name = score_pair(default, default).name
    kept, gone = [folds.likelihood], list[str]()
    for likelihood in others:
        same = folds.problem._replace(candidates=[likelihood]).kind == folds.problem.kind
        try:
            same = same and score_pair(default, _constant(folds, likelihood)).name == name
        except DataError:
            same = False
        (kept if same else gone).append(likelihood)
    return kept, gone


def _constant(folds: InnerFolds, likelihood: str) -> Evaluated:
    task, learn = folds.task({"likelihood": likelihood})
    made = task.likelihood(learn.target, float(learn.weight.sum()))
    task = task._replace(outcome=copy.copy(task.outcome))
    task.outcome.begin(made, learn)
    found = constant_predictive(made, learn, learn)
    model = Model(task, cast(Posterior, None), {})  # what it predicts is known
    return Evaluated(likelihood, model, learn, *found, *task.outcome.distribution(found, learn.y))
