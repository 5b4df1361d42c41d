"""What the user handed over as X and beside it, checked as scikit-learn checks it."""

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    validate_data,
)

from ansatz.data import as_frame, is_frame
from ansatz.data.grids import Grids, GridTable, is_grids, read_grids
from ansatz.data.grids.layout import doubtful_images
from ansatz.data.grids.listing import family
from ansatz.data.grids.path_table import image_columns
from ansatz.errors import DataError, UsageError


def read_rows(estimator: Any, X: Any, *, reset: bool, as_table: bool = False) -> Any:
    """X as a float array, or as a pandas frame where a column is not numeric.

    ``as_table`` keeps a frame a frame, even if all of it is numeric.

    Arrays of three and more axes, lists of images as arrays, lists and arrays of image or array
    files, and what ``read_grids`` gives are grids; of an array of two axes they are where the
    estimator was made with ``x="grid"``: each row is a signal. Files to predict are brought to the
    fit's size; their folder will do, too.

    Names, number and order of columns are remembered when ``reset``, and compared otherwise.
    Missing values are allowed; infinities are refused. None, and a frame without columns, stand
    for rows of which nothing is known.

    Example:
        >>> from ansatz.estimators import Regressor
        >>> from ansatz.structures.vector.rows import read_rows
        >>> read_rows(Regressor(), [[1, 2], [3, 4]], reset=True).dtype
        dtype('float64')
    """
    if X is None:
        X = pd.DataFrame(index=[0])
    if _are_grids(estimator, X, reset=reset):
        return _read_grids(estimator, X, reset=reset)
    if is_frame(X) and not issparse(X):  # scipy's dictionary of keys is a mapping, too
        frame = as_frame(X)
        empty = frame.shape[1] == 0
        if as_table or empty or not all(_is_number(dtype) for dtype in frame.dtypes):
            _check_feature_names(estimator, frame, reset=reset)
            _check_n_features(estimator, frame, reset=reset)
            return frame
        X = frame
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
        ensure_min_samples=1 if reset else 0,
    )


def _are_grids(estimator: Any, X: Any, *, reset: bool) -> bool:
    structure = getattr(estimator, "x", "auto")
    if structure not in ("auto", "vector", "grid"):
        raise UsageError(f"x must be 'auto', 'vector' or 'grid', got {structure!r}.")
    if structure != "auto":
        return bool(structure == "grid")
    fitted = None if reset else getattr(estimator, "model_", None)
    of_grids = fitted is not None and fitted.preprocessor.spec.structure == "grid"
    return of_grids or looks_like_grids(X)


def _read_grids(estimator: Any, X: Any, *, reset: bool) -> Grids:
    if isinstance(X, Grids | GridTable):
        grids = X.grids if isinstance(X, GridTable) else X
    elif isinstance(X, str | PathLike) and reset:
        raise UsageError(
            f"X is the path '{X}': read it first, table = read_grids(X), and fit table.grids and a "
            "column of table.frame."
        )
    elif isinstance(X, str | PathLike) or (files := _files(X)) is not None:
        from ansatz.fitting.posing import read_like  # it poses problems

        named = X if isinstance(X, str | PathLike) else files
        table = read_grids(named) if reset else read_like(estimator, named, outcomes=False)
        grids = table.grids
    else:
        grids = _of_arrays(X, reset=reset)
    if reset:
        if not len(grids):
            raise ValueError("Found array with 0 sample(s), but a minimum of 1 is required.")
        estimator.n_features_in_ = int(np.prod(grids.shape))
        estimator.__dict__.pop("feature_names_in_", None)
    return grids


def _of_arrays(X: Any, *, reset: bool) -> Grids:
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if _is_list_of_images(values):
        values = _stacked(values)
    doubt = doubtful_images(np.shape(values)) if reset else None
    if doubt:
        warnings.warn(f"X {doubt}", stacklevel=2)
    return Grids.of(values)


def _is_list_of_images(X: Any) -> bool:
    """Whether X is a sequence of arrays of two or more axes each; Pillow's images are, too."""
    if isinstance(X, np.ndarray) and (X.dtype != object or X.ndim != 1):
        return False
    if not isinstance(X, np.ndarray | list | tuple) or not len(X):
        return False
    return len(_shape(X[0])) >= 2


def _shape(example: Any) -> tuple[int, ...]:
    if hasattr(example, "shape"):
        return tuple(example.shape)
    return np.asarray(example).shape if hasattr(example, "__array_interface__") else ()


def _stacked(X: Any) -> NDArray[Any]:
    arrays = [each.detach().cpu() if hasattr(each, "detach") else each for each in X]
    first = _shape(arrays[0])
    for place, each in enumerate(arrays):
        if _shape(each) != first:
            raise DataError(
                f"X holds examples of several shapes, {first} and {_shape(each)} at X[{place}]: "
                "bring them to one. Images in files are: give a list of their paths."
            )
    return np.stack([np.asarray(each) for each in arrays])


def looks_like_grids(X: Any) -> bool:
    """Whether X can only be signals, images or volumes: by its axes, or by its files' names.

    Example:
        >>> import numpy as np
        >>> from ansatz.structures.vector.rows import looks_like_grids
        >>> looks_like_grids(np.zeros((5, 8, 8))), looks_like_grids(np.zeros((5, 8)))
        (True, False)
    """
    if isinstance(X, Grids | GridTable):
        return True
    if isinstance(X, str | PathLike):
        return is_grids(X)
    files = _files(X)
    if files is not None:
        return family(Path(files[0])) is not None
    if _is_list_of_images(X):
        return True
    return isinstance(X, np.ndarray | torch.Tensor) and X.ndim >= 3


def _files(X: Any) -> list[Any] | None:
    """The paths in a list, an array or a column of them; None where X is anything else."""
    if isinstance(X, pd.DataFrame) and X.shape[1] == 1 and image_columns(X):
        X = X.iloc[:, 0]
    if isinstance(X, np.ndarray | pd.Series) and X.ndim == 1 and X.dtype.kind in "OUT":
        X = X.tolist()
    is_list = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], str | PathLike)
    return list(X) if is_list else None


def read_column(name: str, values: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    """One finite number per row, copied; None stays None.

    Example:
        >>> from ansatz.structures.vector.rows import read_column
        >>> read_column("offset", [0, 1], 3)
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: offset must have shape (3,), got (2,).
    """
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
    """One name per row, numbers or words; None stays None.

    Example:
        >>> from ansatz.structures.vector.rows import read_groups
        >>> read_groups(["ann", None, "bob"], 3)
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: groups is missing at row 1: give that row a group of its own.
    """
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
    """Frequency weights of the rows, copied, ones by default; not all of them may be zero.

    Example:
        >>> import numpy as np
        >>> from ansatz.structures.vector.rows import read_weights
        >>> read_weights([1, 2], np.zeros((2, 1))), read_weights(None, np.zeros((2, 1)))
        (array([1., 2.]), array([1., 1.]))
    """
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


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "iuf"
