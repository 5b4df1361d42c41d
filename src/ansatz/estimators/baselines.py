"""The two models that a network must beat: the same law, linear in x, and constant."""

import math
from typing import Literal

import torch

from ansatz.data import Batch, Preprocessor
from ansatz.estimators.fitting import build_objective
from ansatz.estimators.predictions import judge_raw
from ansatz.estimators.table_estimator import Job
from ansatz.likelihoods import Likelihood
from ansatz.linear import fit_linear

Metrics = dict[str, float | None]


def judge_constant(law: Likelihood, learn: Job, test: Job) -> Metrics:
    """Metrics of the maximum-likelihood constant model of ``learn`` on ``test``.

    Example:
        >>>         >>> from ansatz import Regressor
        >>> from ansatz.estimators.baselines import judge_constant
        >>> from ansatz.likelihoods import Normal
        >>> job = Regressor()._read(np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 4.0]))
        >>> round(judge_constant(Normal(), job, job)["rmse"], 4)
        1.118
    """
    rows = Batch.of(torch.empty(len(learn.y), 0), learn.y, learn.weight, learn.offset)
    objective = build_objective(law, rows)
    assert objective.shift is not None
    raw = objective.attach(torch.zeros(len(test.y), objective.shift.numel()).double(), test.offset)
    return judge_raw(objective.likelihood, raw.detach(), test.y, test.weight)


def judge_linear(law: Likelihood, learn: Job, test: Job) -> tuple[Metrics | None, list[str]]:
    """Metrics of the linear model of the same law on ``test``, and what its fit had to say.

    With a law that has a dispersion it is fitted twice, dispersion constant and linear in x; the
    lower AIC on the rows it learned from wins.

    Example:
        >>>         >>> from ansatz import Regressor
        >>> from ansatz.estimators.baselines import judge_linear
        >>> from ansatz.likelihoods import Poisson
        >>> job = Regressor()._read(np.arange(6.0).reshape(-1, 1), np.array([0, 1, 1, 2, 4, 5.0]))
        >>> metrics, messages = judge_linear(Poisson(), job, job)
        >>> metrics["nll"] < 1.5
        True
    """
    weight = learn.weight.numpy()
    preprocessor = Preprocessor.fit(learn.rows, learn.columns, weight=weight, purpose="linear")
    (design,) = preprocessor.transform(learn.rows)
    (new,) = preprocessor.transform(test.rows)
    fits = [
        fit_linear(
            law,
            design.double(),
            learn.y,
            weight=learn.weight,
            offset=learn.offset,
            feature_names=preprocessor.feature_names,
            dispersion=dispersion,
        )
        for dispersion in _dispersions(law)
    ]
    best = min(fits, key=lambda fit: math.inf if fit.aic is None else fit.aic)
    raw = best.predict_raw(new.double(), test.offset)
    return judge_raw(best.likelihood, raw, test.y, test.weight), [
        f"linear model: {message}" for message in best.messages
    ]


def _dispersions(law: Likelihood) -> tuple[Literal["constant", "predicted"], ...]:
    has_dispersion = any(name.endswith("floor") for name, _ in law.named_buffers())
    return ("constant", "predicted") if has_dispersion else ("constant",)
