"""Signals, images and volumes as a user hands them over."""

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from ansatz.data.grids import Grids, GridTable, is_grids, read_grids
from ansatz.data.grids.layout import doubtful_images
from ansatz.data.grids.listing import family
from ansatz.data.grids.path_table import image_columns
from ansatz.errors import DataError, UsageError
from ansatz.structures.grid.reading import read_like


def grids_of(X: Any, *, face: Any, reset: bool) -> Grids:
    """What a user handed to an estimator as X, as grids.

    Arrays of three and more axes, lists of images as arrays, lists and arrays of image or array
    files, and what ``read_grids`` gives are grids; an array of two axes holds signals. Files to
    predict are brought to the fit's size; their folder will do, too.

    Args:
        X: the examples.
        face: the estimator that they were handed to.
        reset: whether these are the data of a fit.
    """
    if isinstance(X, Grids | GridTable):
        grids = X.grids if isinstance(X, GridTable) else X
    elif isinstance(X, str | PathLike) and reset:
        raise UsageError(
            f"X is the path '{X}': read it first, table = read_grids(X), and fit table.grids and a "
            "column of table.frame."
        )
    elif isinstance(X, str | PathLike) or (files := _files(X)) is not None:
        named = X if isinstance(X, str | PathLike) else files
        table = read_grids(named) if reset else read_like(face.model_, named, outcomes=False)
        grids = table.grids
    else:
        grids = _of_arrays(X, reset=reset)
    if reset:
        if not len(grids):
            raise ValueError("Found array with 0 sample(s), but a minimum of 1 is required.")
        face.n_features_in_ = int(np.prod(grids.shape))
        face.__dict__.pop("feature_names_in_", None)
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
    """Whether X can only be signals, images or volumes: by its axes, or by its files' names."""
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
