"""How a configuration does on folds of the rows to learn from."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.data import Batch
from ansatz.errors import DataError, NumericalError
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.job import Job
from ansatz.fitting.kinds import make_estimator, split_options
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.problem import Problem, kind_of
from ansatz.fitting.reading import read_job
from ansatz.fitting.refits import fresh
from ansatz.fitting.split import Parts, take
from ansatz.fitting.training import build_objective
from ansatz.likelihoods import Cox
from ansatz.report.judged import Judged, judge_rows
from ansatz.report.score_pair import score_pair
from ansatz.seeds import derive
from ansatz.tuning.space import settings_of


class OutOfTime(Exception):
    """The search ran out of time within a trial, which then does not count.

    Example:
        >>> from ansatz.tuning.inner_folds import OutOfTime
        >>> issubclass(OutOfTime, Exception)
        True
    """


class InnerFolds(NamedTuple):
    """The rows to learn from in folds, the same for every configuration.

    Args:
        problem: the table, or grids.
        parts: of its rows; those of the test are never touched.
        folds: of the rows to learn from.
        law: where a configuration names none.
        network: where a configuration names none.
        options: that the user fixed.
        settings: of every estimator: inference, seed, device.
        seed: of the search.

    Example:
        >>> from ansatz.tuning.inner_folds import InnerFolds
        >>> InnerFolds._fields[:3]
        ('problem', 'parts', 'folds')
    """

    problem: Problem
    parts: Parts
    folds: Folds
    law: str
    network: str
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    seed: int

    def configuration(self, parameters: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
        """The law, the network and the other options of a point of the space."""
        network = parameters.get("network", self.network)
        chosen = settings_of(parameters, network)
        chosen.pop("network", None)
        return chosen.pop("likelihood", self.law), network, chosen

    def estimator(self, parameters: Mapping[str, Any]) -> tuple[TableEstimator, Job]:
        """The estimator of a configuration, and the rows to learn from as it reads them."""
        law, network, chosen = self.configuration(parameters)
        others, law_options = split_options(law, {**self.options, **chosen})
        problem = self.problem._replace(
            laws=[law], law_options={**self.problem.law_options, **law_options}
        )
        made = make_estimator(problem, network, options=others, **self.settings)
        return made, take(read_job(problem, made), self.parts.learn)

    def scores(self, parameters: Mapping[str, Any], deadline: float | None = None) -> list[float]:
        """The mean score of each fold's rows by a model of the other folds; larger is better.

        Args:
            parameters: a point of the space; empty for the default recipe.
            deadline: on the monotonic clock; a trial that passes it is abandoned.
        """
        estimator, learn = self.estimator(parameters)
        found = []
        for k, (inside, outside) in enumerate(self.folds):
            model = fresh(estimator).set_params(random_state=derive(self.seed, "inner", k) >> 32)
            model.set_params(time_limit=_until(deadline, model.time_limit))
            model._fit_job(take(learn, inside)._replace(valid=None, trainer_options={}))
            _until(deadline)  # a training that the deadline cut short judges nothing
            judged = judge_rows("trial", model, take(learn, outside))
            score = float(np.average(judged.log_scores.numpy(), weights=judged.job.weight.numpy()))
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
    """Folds of the rows to learn from; by group and, forward, by time.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.tuning.inner_folds import make_folds
        >>> job = Regressor()._read(np.arange(9.0).reshape(-1, 1), np.arange(9.0))
        >>> len(make_folds(job, 3, seed=0))
        3
    """
    folds = [
        (inside, outside)
        for inside, outside in choose_folds(learn, count, derive(seed, "tuning") >> 32)
        if len(inside) and len(outside)
    ]
    if len(folds) < 2:
        raise DataError(
            f"{len(learn.y)} rows to learn from cannot be parted into {count} folds to search by."
        )
    return folds


def comparable_laws(folds: InnerFolds, laws: list[str]) -> tuple[list[str], list[str]]:
    """The candidates whose scores have one measure with the default's, and the others.

    Told by the constant model of each: a density and probabilities cannot compete.

    Example:
        >>> import inspect
        >>> from ansatz.tuning.inner_folds import comparable_laws
        >>> list(inspect.signature(comparable_laws).parameters)
        ['folds', 'laws']
    """
    default = _constant(folds, folds.law)
    name = score_pair(default, default).name
    kept, gone = [folds.law], list[str]()
    for law in laws:
        if law == folds.law:
            continue
        same = kind_of(law, folds.problem.uses) == folds.problem.kind
        try:
            same = same and score_pair(default, _constant(folds, law)).name == name
        except DataError:
            same = False
        (kept if same else gone).append(law)
    return kept, gone


def _constant(folds: InnerFolds, law: str) -> Judged:
    estimator, learn = folds.estimator({"likelihood": law})
    fitted = estimator._law_of(learn.target, float(learn.weight.sum()))
    rows = Batch.of(torch.empty(len(learn.y), 0), learn.y, learn.weight, learn.offset)
    objective = build_objective(fitted, rows)
    assert objective.shift is not None
    raw: Tensor = objective.attach(
        torch.zeros(len(learn.y), objective.shift.numel()).double(), learn.offset
    ).detach()
    found = objective.likelihood
    if isinstance(found, Cox):
        found.set_baseline(torch.zeros(len(learn.y)), learn.y, learn.weight)
    if hasattr(estimator, "_causes"):  # survival: what Judged tells it by
        from ansatz.outcomes.survival_metrics import Followed

        estimator.followed_ = Followed.of(found, learn.y, learn.weight)
    distribution, value = None, learn.y
    if found.is_law:
        with torch.no_grad():
            distribution, value = found.given(raw, learn.y)
    return Judged(law, estimator, learn, found, raw, distribution, value)
