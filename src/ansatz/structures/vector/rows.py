"""The rows of a table, with what its columns are."""

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data
from torch import Tensor

from ansatz.data import Column, DataWarning, Preprocessor, as_frame, infer_columns, is_frame
from ansatz.data.columns import plain_columns
from ansatz.data.keys import cell_keys
from ansatz.data.streams.available import available_memory
from ansatz.errors import DataError
from ansatz.spec import InputSpec

if TYPE_CHECKING:
    from ansatz.structures.vector.stream_rows import StreamPart

_LARGE = 256 * 2**20  # bytes of a dense copy that the user hears of
_COPIES = 3  # of the table, at the peak of a fit: as given, encoded, and a part of either


class TableRows:
    """Rows of a table: an array of numbers, or a frame whose columns have roles.

    Args:
        values: ``(N, D)`` numbers, or a frame.
        columns: the roles of a frame's columns; None for an array.
        names: of an array's columns, where they have some.
        stream: the rows on disk that these belong to; rows taken from these have none.
        formula: the terms of the design matrix; None takes every column.
    """

    spec = None  # how many features a network sees depends on levels and missing values

    def __init__(
        self,
        values: Any,
        columns: list[Column] | None = None,
        names: list[str] | None = None,
        stream: "StreamPart | None" = None,
        formula: str | None = None,
    ) -> None:
        self.values, self.columns, self.names, self.stream = values, columns, names, stream
        self.formula = formula

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Self:
        is_table = isinstance(self.values, pd.DataFrame)
        chosen = self.values.iloc[index] if is_table else self.values[index]
        return type(self)(chosen, self.columns, self.names, formula=self.formula)

    @property
    def has_features(self) -> bool:
        return self.columns is None or len(self.columns) > 0

    @property
    def named(self) -> pd.DataFrame:
        """The rows as a frame; the columns of an array are called x1, x2, ..."""
        if isinstance(self.values, pd.DataFrame):
            return self.values
        names = self.names or [f"x{k + 1}" for k in range(self.values.shape[1])]
        return pd.DataFrame(self.values, columns=names)

    @property
    def numbers(self) -> int:
        """The number of columns that hold numbers."""
        if self.columns is None:
            return int(self.values.shape[1])
        return sum(column.role == "numeric" for column in self.columns)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a frame; the columns of an array without names are called x1, x2, ..."""
        if isinstance(self.values, pd.DataFrame):
            return self.values
        names = self.names or [f"x{k}" for k in range(1, self.values.shape[1] + 1)]
        return pd.DataFrame(self.values, columns=names)

    def like(self, frame: pd.DataFrame) -> Self:
        """Rows with other values of the same columns."""
        is_array = self.columns is None
        values = frame.to_numpy(dtype=np.float64) if is_array else frame
        return type(self)(values, self.columns, self.names, formula=self.formula)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        return cell_keys(self.values, seed)

    def describe(self) -> dict[str, Any]:
        names = self.names
        if names is None and isinstance(self.values, pd.DataFrame) and self.values.shape[1]:
            names = [str(name) for name in self.values.columns]
        columns = self.columns
        dumped = None if columns is None else [c.model_dump(mode="json") for c in columns]
        return {"names": names, "count": int(self.values.shape[1]), "columns": dumped}


def read_table_rows(
    X: Any,
    *,
    estimator: Any,
    columns: list[Column] | None,
    reset: bool,
    roles: Mapping[str, str] | None = None,
) -> TableRows:
    """X as a float array, or as a frame where a column is not numeric.

    Names, number and order of columns are remembered by ``estimator`` when ``reset``, and compared
    otherwise. Missing values are allowed; infinities are refused. None, and a frame without
    columns, stand for rows of which nothing is known. A sparse matrix becomes one dense array:
    numbers are standardised, after which no cell is 0.
    """
    formula = getattr(estimator, "formula", None)
    if X is None:
        X = pd.DataFrame(index=[0])
    if is_frame(X) and not issparse(X):  # scipy's dictionary of keys is a mapping, too
        frame = as_frame(X)
        empty = frame.shape[1] == 0
        if (
            columns is not None
            or roles
            or empty
            or not all(_is_number(dtype) for dtype in frame.dtypes)
        ):
            _check_feature_names(estimator, frame, reset=reset)
            _check_n_features(estimator, frame, reset=reset)
            inferred = infer_columns(frame, roles=roles) if columns is None else columns
            return TableRows(plain_columns(frame, inferred), inferred, formula=formula)
        X = frame
    if issparse(X):
        X = _dense(X)
    values = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
        ensure_min_samples=1 if reset else 0,
    )
    names = getattr(estimator, "feature_names_in_", None)
    listed = None if names is None else [str(name) for name in names]
    return TableRows(values, None, listed, formula=formula)


def _dense(X: Any) -> NDArray[Any]:
    """One dense copy of a sparse matrix, in half the memory where its numbers allow it."""
    if X.dtype.kind not in "biuf":
        raise DataError(f"the sparse X holds {X.dtype}, not real numbers.")
    small = X.dtype.kind in "biu" and X.dtype.itemsize <= 2
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float32 if small else np.float64
    size, free = math.prod(X.shape) * np.dtype(kind).itemsize, available_memory()
    words = f"the sparse X of {X.shape[0]:,} x {X.shape[1]:,} becomes a dense table of"
    advice = "Fewer columns (TruncatedSVD, SelectKBest) or X.astype('float32') take less."
    if _COPIES * size > free:
        raise DataError(
            f"{words} {size / 2**30:.3g} GB, and its training takes some {_COPIES} times that: "
            f"{free / 2**30:.3g} GB are free. {advice}"
        )
    if size > _LARGE:
        warnings.warn(f"{words} {size / 2**20:,.0f} MB. {advice}", DataWarning, stacklevel=2)
    found: NDArray[Any] = X.astype(kind).toarray()
    return found


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "iuf"


class TableEncoder:
    """The preprocessing of a table: numbers standardised, levels coded, missing values filled.

    Predictions are computed in float64, whatever the training used, so that a row alone and the
    same row among others give the same number.
    """

    dtype = torch.float64

    def __init__(self, preprocessor: Preprocessor) -> None:
        self.preprocessor = preprocessor

    @property
    def spec(self) -> InputSpec:
        return self.preprocessor.spec

    @property
    def notes(self) -> list[str]:
        return self.preprocessor.notes

    @property
    def columns(self) -> list[Column]:
        return self.preprocessor.columns

    def inputs(self, rows: TableRows, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """Inputs for prediction: numbers far outside the training range are clipped."""
        found = self.preprocessor.transform(rows.values, clip=True, notes=notes)
        return tuple(t.double() if t.is_floating_point() else t for t in found)

    def state(self) -> dict[str, Any]:
        return self.preprocessor.state()


def bent_columns(options: Mapping[str, Any]) -> bool | list[str]:
    """Reads which columns are bent to normal scores: all, none, or those named."""
    given = options.get("quantile") or False
    return given if isinstance(given, bool) else list(given)
