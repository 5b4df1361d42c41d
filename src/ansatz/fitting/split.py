"""The rows of one fit in parts: to learn from, to stop by, to judge by."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data import fold_numbers, row_keys, split_rows
from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.job import take as take
from ansatz.estimators.table_estimator import TableEstimator

Rows = NDArray[np.intp]


class Parts(NamedTuple):
    """Row numbers of a split.

    Example:
        >>> from ansatz.fitting.split import Parts
        >>> Parts._fields
        ('learn', 'valid', 'test')
    """

    learn: Rows  # rows that the model may see
    valid: Rows  # positions within learn that stop the training
    test: Rows

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are learned from, stop the training, and judge."""
        valid = len(self.valid)
        return {"train": len(self.learn) - valid, "valid": valid, "test": len(self.test)}


def split(
    job: Job, estimator: TableEstimator, test: float, seed: int, *, given: bool = False
) -> Parts:
    """Parts by the hash of the rows' content, their group or their time; or those given.

    Args:
        job: the rows.
        estimator: tells which share of them stops the training.
        test: share of the rows for the test.
        seed: of the hash.
        given: take the parts that the data come in (``job.part``).

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.split import split
        >>> job = Regressor()._read(np.arange(50.0).reshape(-1, 1), np.arange(50.0))
        >>> len(split(job, Regressor(), 0.2, seed=0).test)
        10
    """
    keys = row_keys(job.rows, _outcomes(job, estimator), seed=seed)
    job = estimator._plain(job)  # shares are of rows, whatever their classes weigh
    if given:
        return _given(job, estimator, keys, seed)
    valid = holdout_share(job, estimator, test) * (1 - test)
    try:
        found = split_rows(
            keys,
            seed=seed,
            test=test,
            valid=valid,
            group=job.group,
            time=job.time,
            weight=job.weight.numpy(),
        )
    except DataError as error:
        raise DataError(f"{error}{_on_pieces(job)}") from None
    learn = np.sort(np.concatenate([found.train, found.valid]))
    return Parts(learn, np.searchsorted(learn, np.sort(found.valid)), found.test)


def _given(job: Job, estimator: TableEstimator, keys: NDArray[Any], seed: int) -> Parts:
    """The data's own test; of the other rows those for validation, or a share, stop the fit."""
    assert job.part is not None
    test, learn = np.flatnonzero(job.part == "test"), np.flatnonzero(job.part != "test")
    valid = np.flatnonzero(job.part[learn] == "validation")
    if not len(valid):
        share = holdout_share(job, estimator, len(test) / len(job.part))
        rest = take(job, learn)
        found = split_rows(
            keys[learn],
            seed=seed,
            test=0.0,
            valid=share,
            group=rest.group,
            time=rest.time,
            weight=rest.weight.numpy(),
        )
        valid = np.sort(found.valid)
    return Parts(learn, valid, test)


def _outcomes(job: Job, estimator: TableEstimator) -> NDArray[Any]:
    """Outcomes in one form for all laws, so that all have the same test rows.

    Cox and discrete hazards take (time, cause, entry), other laws of times (lower, upper, entry).
    """
    y: NDArray[Any] = job.y.numpy()
    if estimator._law_name() not in ("cox", "discrete_hazard"):
        return y
    time, cause, entry = y.T
    return np.stack([time, np.where(cause > 0, time, np.inf), entry], axis=1)


def holdout_share(job: Job, estimator: TableEstimator, test: float) -> float:
    """Which share of the rows to learn from stops the training: none for a linear model.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.split import holdout_share
        >>> job = Regressor()._read(np.arange(50.0).reshape(-1, 1), np.arange(50.0))
        >>> holdout_share(job, Regressor(holdout=0.25), test=0.2)
        0.25
    """
    if job.grid is None and (estimator.network == "linear" or not estimator._has_features(job)):
        return 0.0
    if estimator.holdout is not None:
        return estimator.holdout
    total = float(job.weight.sum()) * (1 - test)
    return estimator._default_recipe(total, job.target, job.grid).holdout


def folds_of(job: Job, folds: int, seed: int) -> Rows:
    """The fold of each row, copies and groups in one.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.split import folds_of
        >>> job = Regressor()._read(np.arange(50.0).reshape(-1, 1), np.arange(50.0))
        >>> sorted(set(folds_of(job, 5, seed=0).tolist()))
        [0, 1, 2, 3, 4]
    """
    keys = row_keys(job.rows, job.y.numpy(), seed=seed)
    try:
        return fold_numbers(keys, folds, seed=seed, group=job.group, weight=job.weight.numpy())
    except UsageError as error:
        raise UsageError(f"{error}{_on_pieces(job)}") from None


def _on_pieces(job: Job) -> str:
    """How too few examples become more, where they have masks and no column tells them apart."""
    is_of_masks = job.grid is not None and job.target.shape == job.grid.size
    if not is_of_masks or job.group is not None or job.time is not None:
        return ""
    return " Examples with masks can be cut into several: --pieces 5 (pieces=5)."
