"""The same estimator fitted again, to rows that leave some out."""

from typing import Any, NamedTuple

import torch
from sklearn.base import clone
from torch import Tensor

from ansatz.fitting.job import Job
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.fitting.split import take
from ansatz.estimators.table_estimator import TableEstimator

FOLDS = 5


def fresh(estimator: TableEstimator) -> Any:
    """An unfitted copy that has read the rows as ``estimator`` has: classes, names, causes.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.fitting.refits import fresh
        >>> model = Classifier(network="linear").fit(np.arange(4.0).reshape(-1, 1), list("abab"))
        >>> fresh(model).classes_.tolist()
        ['a', 'b']
    """
    model = clone(estimator).set_params(warm_start=False, verbose=0)
    for name, value in vars(estimator).items():
        if (name.endswith("_") or name.startswith("_")) and name != "model_":
            setattr(model, name, value)
    return model


class Refit(NamedTuple):
    """What a model says that learned from the rows ``inside`` and not from those ``outside``.

    Example:
        >>> from ansatz.fitting.refits import Refit
        >>> Refit._fields
        ('inside', 'outside', 'raw')
    """

    inside: Tensor
    outside: Tensor
    raw: Tensor  # (N, P), of all rows


def out_of_fold(estimator: TableEstimator, job: Job, folds: int = FOLDS) -> list[Refit]:
    """Raw numbers of rows by models that did not learn from them.

    Args:
        estimator: fitted; it is not changed.
        job: the rows.
        folds: how many refits.

    Returns:
        One per fold; none where the rows cannot be parted.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.refits import out_of_fold
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> len(out_of_fold(model, model._read(x, x[:, 0]), folds=4))
        4
    """
    found: list[Refit] = []
    for inside, outside in choose_folds(job, folds, estimator._seed()):
        if not len(inside) or not len(outside):
            continue
        part = take(job, inside)._replace(valid=None, trainer_options={})
        model = fresh(estimator)
        TableEstimator._fit_job(model, part)  # without what a kind adds: that asks for refits
        raw = model.model_.raw(job.rows, job.offset, notes=[])
        found.append(Refit(torch.from_numpy(inside), torch.from_numpy(outside), raw))
    return found
