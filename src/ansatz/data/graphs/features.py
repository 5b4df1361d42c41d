"""Features of nodes, of edges and of pairs: a table, an array, or a sparse matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from ansatz.data.frames import as_frame, is_frame
from ansatz.data.keys import cell_keys, mix
from ansatz.errors import DataError

Features = Any  # a frame, an array (N, D), or csr_matrix (N, D)


def read_features(x: Any, count: int | None, what: str) -> Features:
    """Features with a row for each of ``count`` nodes; ``(N, 0)`` numbers where there are none.

    Example:
        >>> from ansatz.data.graphs.features import read_features
        >>> read_features([[1], [2]], 2, "node").shape
        (2, 1)
    """
    if x is None:
        return np.zeros((count or 0, 0))
    if issparse(x):
        found: Any = csr_matrix(x).astype(np.float64)
        values = found.data
    elif is_frame(x):
        found = as_frame(x).reset_index(drop=True).rename(columns=str)
        values = found.select_dtypes("number").to_numpy(dtype=np.float64, na_value=0.0)
    else:
        found = _as_array(x, what)
        values = np.zeros(0) if found.dtype.kind == "f" else found
    if np.isinf(np.asarray(values, dtype=np.float64)).any():
        raise DataError(f"the {what} features hold an infinite number.")
    if count is not None and found.shape[0] != count:
        raise DataError(f"{found.shape[0]} rows of {what} features for {count} {what}s.")
    return found


def _as_array(x: Any, what: str) -> NDArray[Any]:
    try:
        found = np.asarray(x)
    except ValueError:
        raise DataError(f"the {what} features are of unequal length.") from None
    if found.dtype.kind not in "biuf":
        raise DataError(f"the {what} features hold {found.dtype}, not numbers: give a frame.")
    found = found.reshape(len(found), -1) if found.ndim != 2 else found
    if np.isinf(found).any():
        bad = int(np.flatnonzero(np.isinf(found).any(1))[0])
        raise DataError(f"the features of {what} {bad} hold an infinite number.")
    return found


def take(x: Features, rows: Any) -> Features:
    """The features of some rows."""
    if hasattr(x, "iloc"):
        return x.iloc[rows].reset_index(drop=True)
    return x[rows]


def stack(parts: Sequence[Features], what: str) -> Features:
    """Features one behind the other."""
    if all(hasattr(each, "iloc") for each in parts):
        import pandas as pd

        names = list(parts[0].columns)
        odd = [k for k, each in enumerate(parts) if list(each.columns) != names]
        if odd:
            raise DataError(f"graph {odd[0]}: its {what} features have other columns than graph 0.")
        return pd.concat(parts, ignore_index=True)
    if any(hasattr(each, "iloc") for each in parts):
        raise DataError(f"the {what} features are tables in some graphs and arrays in others.")
    odd = [k for k, each in enumerate(parts) if each.shape[1] != parts[0].shape[1]]
    if odd:
        raise DataError(
            f"graph {odd[0]}: {parts[odd[0]].shape[1]} {what} features, graph 0 has "
            f"{parts[0].shape[1]}."
        )
    if any(issparse(each) for each in parts):
        return csr_matrix(vstack(parts))
    return np.concatenate(list(parts))


def feature_keys(x: Features, seed: int) -> NDArray[np.uint64]:
    """A hash of each row of features."""
    if not x.shape[1]:
        return np.zeros(x.shape[0], dtype=np.uint64)
    if not issparse(x):
        return cell_keys(x, seed)
    cells = mix(x.indices.astype(np.uint64) + mix((x.data + 0.0).view(np.uint64)))
    total = np.concatenate([np.zeros(1, np.uint64), cells.cumsum(dtype=np.uint64)])
    return mix(total[x.indptr[1:]] - total[x.indptr[:-1]] + np.uint64(seed % 2**63))


def names_of(x: Features) -> list[str] | None:
    """The names of the columns of a table; None for numbers."""
    return [str(name) for name in x.columns] if hasattr(x, "iloc") else None
