"""Reads what is given beside X, as scikit-learn does: weights, offsets and groups."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from ansatz.errors import DataError


def read_column(name: str, values: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    """One finite number per row, copied; None stays None."""
    if values is None:
        return None
    column = np.array(values, dtype=np.float64)
    if column.shape != (count,):
        raise DataError(f"{name} must have shape ({count},), got {column.shape}.")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(f"{name} must be finite, got {column[bad[0]]} at row {bad[0]}.")
    return column


def read_groups(groups: ArrayLike | None, count: int) -> NDArray[Any] | None:
    """One name per row, numbers or words; None stays None."""
    if groups is None:
        return None
    # As objects first: a list of words would have its nan read as the word.
    given = np.asarray(groups, dtype=object)
    if given.shape != (count,):
        raise DataError(f"groups must have shape ({count},), one per row, got {given.shape}.")
    missing = np.flatnonzero(pd.isna(given))
    if len(missing):
        raise DataError(f"groups is missing at row {missing[0]}: give that row a group of its own.")
    return np.array(groups)


def read_weights(sample_weight: ArrayLike | None, rows: Any) -> NDArray[np.float64]:
    """Frequency weights of the rows, copied, ones by default; not all of them may be zero."""
    # scikit-learn's own check wants an array; a frame's first column has the same length.
    like = rows if isinstance(rows, np.ndarray) else np.empty((len(rows), 1))
    try:
        weight: NDArray[np.float64] = np.array(
            _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
        )
    except ValueError as error:
        raise DataError(str(error)) from None
    if weight.sum() == 0:  # scikit-learn < 1.8 lets them pass
        raise DataError("Sample weights are all zero: there is no row to learn from.")
    return weight
