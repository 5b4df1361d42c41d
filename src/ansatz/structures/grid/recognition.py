"""Recognizes signals, images and volumes by a cheap look that loads no reader."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from ansatz.data.grids import is_grids
from ansatz.data.grids.listing import family
from ansatz.data.grids.path_table import image_columns


def recognizes_rows(X: Any) -> bool:
    """Tests whether X can only be signals, images or volumes: by its axes or its files' names."""
    if type(X).__module__.startswith("ansatz.data.grids."):
        return True
    if isinstance(X, str | PathLike):
        return is_grids(X)
    files = files_of(X)
    if files is not None:
        return family(Path(files[0])) is not None
    if is_list_of_images(X):
        return True
    return isinstance(X, np.ndarray | torch.Tensor) and X.ndim >= 3


def files_of(X: Any) -> list[Any] | None:
    """The paths in a list, an array or a column of them; None where X is anything else."""
    if isinstance(X, pd.DataFrame) and X.shape[1] == 1 and image_columns(X):
        X = X.iloc[:, 0]
    if isinstance(X, np.ndarray | pd.Series) and X.ndim == 1 and X.dtype.kind in "OUT":
        X = X.tolist()
    is_list = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], str | PathLike)
    return list(X) if is_list else None


def is_list_of_images(X: Any) -> bool:
    """Tests whether X is a sequence of arrays of two or more axes each; Pillow's images are."""
    if isinstance(X, np.ndarray) and (X.dtype != object or X.ndim != 1):
        return False
    if not isinstance(X, np.ndarray | list | tuple) or not len(X):
        return False
    return len(shape_of(X[0])) >= 2


def shape_of(example: Any) -> tuple[int, ...]:
    """The axes of one example; none for what is not an array."""
    if hasattr(example, "shape"):
        return tuple(example.shape)
    return np.asarray(example).shape if hasattr(example, "__array_interface__") else ()
