"""How a model does on rows it never saw, beside simpler models of the same law."""

from typing import NamedTuple

import numpy as np

from ansatz.fitting.baselines import Metrics, judge_constant, judge_linear
from ansatz.structures.grid.baselines import judge_constant_masks, judge_linear_grid
from ansatz.fitting.job import Job, has_masks
from ansatz.fitting.split import Rows, take
from ansatz.fitting.refits import fresh
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.likelihoods import Likelihood
from ansatz.linear import LinearFit
from ansatz.structures import Grid


class Scores(NamedTuple):
    """Metrics of the model, the linear and the constant model, and what their fits had to say.

    Example:
        >>> from ansatz.fitting.scores import Scores
        >>> Scores().metrics is None
        True
    """

    metrics: Metrics | None = None
    linear: Metrics | None = None
    constant: Metrics | None = None
    messages: tuple[str, ...] = ()


def judge_model(model: TableEstimator, test: Job, notes: list[str]) -> Metrics:
    """Every metric that applies to the model's law on the rows of ``test``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.scores import judge_model
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> judge_model(model, model._read(x, x[:, 0]), [])["rmse"] < 1e-6
        True
    """
    raw = model._served_raw(model.model_.raw(test.rows, test.offset, notes=notes))
    return model._judge(model.model_.objective.likelihood, raw, test.y, test.weight)


def judge_all(model: TableEstimator, learn: Job, test: Job) -> Scores:
    """The model, and the linear and the constant model of its law fitted to ``learn``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.scores import judge_all
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> job = model._read(x, x[:, 0])
        >>> round(judge_all(model, job, job).constant["rmse"], 2)
        5.77
    """
    learn, test = model._plain(learn), model._plain(test)
    law = model._law_of(learn.target)
    linear: Metrics | None = None
    messages: list[str] = []
    notes: list[str] = []
    metrics = judge_model(model, test, notes)
    if model.network == "linear":
        linear, messages = metrics, _said(model)
    elif model._has_features(learn):  # without them it is the constant model
        linear, messages = _judge_linear(model, law, learn, test)
    if has_masks(learn):
        constant = judge_constant_masks(law, learn, test, judge=model._judge)
    else:
        constant = judge_constant(law, learn, test, judge=model._judge)
    said = (*(f"judged rows: {note}" for note in notes), *messages)
    return Scores(metrics, linear, constant, said)


def _judge_linear(
    model: TableEstimator, law: Likelihood, learn: Job, test: Job
) -> tuple[Metrics | None, list[str]]:
    """A GLM for tables; for grids a linear map of their cells."""
    if learn.grid is None:
        return judge_linear(law, learn, test, judge=model._judge)
    if model.model_.network_name == Grid(masks=has_masks(learn)).linear_network:
        return judge_model(model, test, []), []
    return judge_linear_grid(law, learn, test, model._judge, model._seed())


def cross_validate(estimator: TableEstimator, job: Job, number: Rows) -> Scores:
    """Every row is judged once, by a model that never saw it; means over folds by weight.

    Example:
        >>> import inspect
        >>> from ansatz.fitting.scores import cross_validate
        >>> list(inspect.signature(cross_validate).parameters)
        ['estimator', 'job', 'number']
    """
    scores, weights = [], []
    for k in range(number.max() + 1):
        inside, outside = np.flatnonzero(number != k), np.flatnonzero(number == k)
        model = fresh(estimator)
        learn, test = take(job, inside), take(job, outside)
        model._fit_job(learn)
        scores.append(judge_all(model, learn, test))
        weights.append(float(model._plain(test).weight.sum()))
    messages = dict.fromkeys(message for score in scores for message in score.messages)
    return Scores(
        _mean([score.metrics for score in scores], weights),
        _mean([score.linear for score in scores], weights),
        _mean([score.constant for score in scores], weights),
        tuple(messages),
    )


def _said(model: TableEstimator) -> list[str]:
    """What the fit of a linear model had to say."""
    fits = getattr(model, "linear_", ())
    said = [
        message
        for fit in ([fits] if isinstance(fits, LinearFit) else fits)
        for message in fit.messages
    ]
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
