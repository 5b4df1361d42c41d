"""Signals, images and volumes as a user hands them over."""

import warnings
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.grids import Grids, GridTable, read_grids
from ansatz.data.grids.layout import doubtful_images
from ansatz.errors import DataError, UsageError
from ansatz.structures.grid.reading import read_like
from ansatz.structures.grid.recognition import files_of, is_list_of_images, shape_of


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
    elif isinstance(X, str | PathLike) or (files := files_of(X)) is not None:
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
    if is_list_of_images(values):
        values = _stacked(values)
    doubt = doubtful_images(np.shape(values)) if reset else None
    if doubt:
        warnings.warn(f"X {doubt}", stacklevel=2)
    return Grids.of(values)


def _stacked(X: Any) -> NDArray[Any]:
    arrays = [each.detach().cpu() if hasattr(each, "detach") else each for each in X]
    first = shape_of(arrays[0])
    for place, each in enumerate(arrays):
        if shape_of(each) != first:
            raise DataError(
                f"X holds examples of several shapes, {first} and {shape_of(each)} at X[{place}]: "
                "bring them to one. Images in files are: give a list of their paths."
            )
    return np.stack([np.asarray(each) for each in arrays])
