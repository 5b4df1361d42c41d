"""Reads point clouds: folders by class, tables of paths, arrays of a file, the named solids."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.points.clouds import Clouds
from ansatz.data.points.files import ENDINGS, read_points
from ansatz.data.points.recognition import files_of
from ansatz.data.points.solids import solids
from ansatz.data.table import read_table
from ansatz.errors import DataError, UsageError
from ansatz.fitting.tensor_structure import Read

CLASS, FILE = "class", "file"


def read_clouds(data: Any, reader: Mapping[str, Any]) -> Read | None:
    """Clouds of files, or the named ones; None for arrays.

    Args:
        data: a folder, a table of paths or where it is, or ``"solids"``.
        reader: options of a table's reader; ``labels`` names the labels of points.
    """
    reader = dict(reader)
    labels, drop = reader.pop("labels", None), reader.pop("drop", ())
    if isinstance(data, str) and data == "solids" and not Path(data).exists():
        clouds, names = solids()
        return Read("solids", clouds, pd.DataFrame({CLASS: names}), CLASS)
    path = Path(data) if isinstance(data, str | PathLike) else None
    if path is not None and path.is_dir():
        files = files_of(path)
        if not files:
            raise DataError(f"{path} holds no point clouds ({', '.join(ENDINGS)}).")
        frame = pd.DataFrame({FILE: [str(f.relative_to(path)) for f in files]})
        by_class = files[0].parent != path
        if by_class:
            frame[CLASS] = [f.parent.name for f in files]
        target = CLASS if by_class and labels is None else None
        return of_files(str(path), files, frame, target, labels)
    if path is not None and path.suffix.lower() in (".npy", ".npz"):
        return None
    if path is None and not hasattr(data, "columns"):
        return None
    origin, folder = ("the table", Path()) if path is None else (str(path), path.parent)
    frame = data if path is None else read_table(data, **reader).frame
    frame = pd.DataFrame(frame).drop(columns=[c for c in drop if c in frame])
    column = next((c for c in frame if is_path(frame[c])), None)
    if column is None:
        raise UsageError(f"{origin}: no column names point clouds ({', '.join(ENDINGS)}).")
    files = [folder / str(name) for name in frame[column]]
    return of_files(origin, files, frame.reset_index(drop=True), None, labels)


def is_path(column: Any) -> bool:
    """Tests whether a column names files of point clouds."""
    first = column.dropna()
    return len(first) > 0 and str(first.iloc[0]).lower().endswith(ENDINGS)


def of_files(
    origin: str, files: list[Path], frame: pd.DataFrame, target: str | None, labels: str | None
) -> Read:
    """The clouds of files; with labels, their points."""
    found = [read_points(file, labels) for file in files]
    width = found[0][0].shape[1]
    for file, (points, _) in zip(files, found, strict=True):
        if points.shape[1] != width:
            raise DataError(f"{file}: {points.shape[1]} numbers per point, {files[0]} has {width}.")
        bad = np.flatnonzero(~np.isfinite(points).all(1))
        if len(bad):
            raise DataError(f"{file}, point {bad[0] + 1}: a number is not finite.")
    sizes = [len(points) for points, _ in found]
    values, names = np.concatenate([points for points, _ in found]), np.array(list(map(str, files)))
    clouds = Clouds(values, np.cumsum([0, *sizes]), None, names).checked()
    if labels is None:
        return Read(origin, clouds, frame, target)
    each = frame.iloc[np.repeat(np.arange(len(files)), sizes)].reset_index(drop=True)
    each[labels] = np.concatenate([label for _, label in found])
    each["set"] = np.repeat(np.arange(len(files)), sizes)
    return Read(origin, clouds.elements(), each[[labels, "set"]], labels)
