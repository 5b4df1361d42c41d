"""The two models that a network must beat: the same law, linear in x, and constant."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.data import Batch
from ansatz.fitting.training import build_objective
from ansatz.fitting.job import Job
from ansatz.structures.vector.linear_model import (
    Dispersion,
    fit_linear_model,
    varies,
    with_dispersion,
)
from ansatz.estimators.predictions import judge_raw
from ansatz.fitting.model import TableModel
from ansatz.likelihoods import Cox, Likelihood
from ansatz.linear import LinearFit

Metrics = dict[str, float | None]
Judge = Callable[[Likelihood, Tensor, Tensor, Tensor | None], Metrics]


def judge_constant(law: Likelihood, learn: Job, test: Job, judge: Judge = judge_raw) -> Metrics:
    """Metrics of the maximum-likelihood constant model of ``learn`` on ``test``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.baselines import judge_constant
        >>> from ansatz.likelihoods import Normal
        >>> job = Regressor()._read(np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 4.0]))
        >>> round(judge_constant(Normal(), job, job)["rmse"], 4)
        1.118
    """
    fitted, raw = constant_raw(law, learn, test)
    return judge(fitted, raw, test.y, test.weight)


def constant_raw(law: Likelihood, learn: Job, test: Job) -> tuple[Likelihood, Tensor]:
    """The maximum-likelihood constant model of ``learn``: its law, and its numbers for ``test``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.baselines import constant_raw
        >>> from ansatz.likelihoods import Poisson
        >>> job = Regressor()._read(np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 4.0]))
        >>> fitted, raw = constant_raw(Poisson(), job, job)
        >>> round(fitted.point(raw)[0].item(), 4)
        2.5
    """
    rows = Batch.of(torch.empty(len(learn.y), 0), learn.y, learn.weight, learn.offset)
    objective = build_objective(law, rows)
    assert objective.shift is not None
    raw = objective.attach(torch.zeros(len(test.y), objective.shift.numel()).double(), test.offset)
    if isinstance(objective.likelihood, Cox):
        objective.likelihood.set_baseline(torch.zeros(len(learn.y)), learn.y, learn.weight)
    return objective.likelihood, raw.detach()


def judge_linear(
    law: Likelihood, learn: Job, test: Job, judge: Judge = judge_raw
) -> tuple[Metrics | None, list[str]]:
    """Metrics of the linear model of the same law on ``test``, and what its fit had to say.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.baselines import judge_linear
        >>> from ansatz.likelihoods import Poisson
        >>> job = Regressor()._read(np.arange(6.0).reshape(-1, 1), np.array([0, 1, 1, 2, 4, 5.0]))
        >>> metrics, messages = judge_linear(Poisson(), job, job)
        >>> metrics["nll"] < 1.5
        True
    """
    model, messages = best_linear(law, learn)
    raw = model.raw(test.rows, test.offset, notes=[])  # the network's own say the same
    return judge(model.objective.likelihood, raw, test.y, test.weight), messages


def best_linear(law: Likelihood, learn: Job) -> tuple[TableModel, list[str]]:
    """The linear model of a law, and what its fit had to say.

    With a law that has a dispersion it is fitted twice, dispersion constant and linear in x; the
    lower AIC on the rows it learned from wins, corrected for few rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.baselines import best_linear
        >>> from ansatz.likelihoods import Poisson
        >>> job = Regressor()._read(np.arange(6.0).reshape(-1, 1), np.array([0, 1, 1, 2, 4, 5.0]))
        >>> best_linear(Poisson(), job)[0].network_name
        'linear'

    References:
        Hurvich and Tsai (1989), Regression and time series model selection in small samples.
    """
    tried = [
        fit_linear_model(
            with_dispersion(law, "predicted"), learn, dispersion=dispersion, null=False
        )
        for dispersion in _dispersions(law)
    ]
    model, fits = min(tried, key=lambda pair: sum(_aic(fit) for fit in pair[1]))
    said = [message for fit in fits for message in fit.messages]
    if model is not tried[0][0]:
        said.append("its dispersion is linear in x, too, which has the lower AICc.")
    return model, list(dict.fromkeys(f"linear model: {sentence}" for sentence in said))


def _dispersions(law: Likelihood) -> tuple[Dispersion, ...]:
    return ("constant", "predicted") if varies(law) else ("constant",)


def _aic(fit: LinearFit) -> float:
    """AIC + 2 k (k + 1) / (n - k - 1), infinite where no rows are left over.

    AIC alone takes a spread with a coefficient per column whenever columns are many.
    """
    k, left = fit.parameters, fit.observations - fit.parameters - 1
    return math.inf if fit.aic is None or left <= 0 else fit.aic + 2 * k * (k + 1) / left
