"""Recognizes grids by a cheap look at the data."""

import gzip
import itertools
import re
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.data.bundles import IMAGE_BUNDLES
from ansatz.data.grids.arrays import is_cifar, is_idx
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.listing import family
from ansatz.data.grids.path_table import image_columns, local_name

_LOOKED_AT = 1000  # entries of a folder
_FOLDERS = 5  # of a folder
_HEAD = 2**14  # bytes of a table


def is_grids(data: Any) -> bool:
    """Tests whether ``data`` are images, signals or volumes rather than a table.

    That is: a folder with images in it or in its folders, an image, NIfTI, IDX or ``.npy`` file, an
    ``.npz`` file or mapping with an array of three or more axes, a CSV or Parquet table whose
    first row names an image file that is there, an image data set's name, an array of three or
    more axes, a list of image files.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids import is_grids
        >>> is_grids(np.zeros((5, 8, 8))), is_grids(np.zeros((5, 8))), is_grids("houses.csv")
        (True, False, False)
    """
    if isinstance(data, Grids | GridTable):
        return True
    if isinstance(data, str | PathLike):
        return _is_path_of_grids(Path(data), str(data))
    if hasattr(data, "columns"):
        return hasattr(data, "iloc") and _shows_images(data, Path())
    if isinstance(data, Mapping):
        return any(_axes(values) >= 3 for values in data.values())
    if isinstance(data, Sequence) and data and isinstance(data[0], str | PathLike):
        return family(Path(data[0])) is not None
    return _axes(data) >= 3


def _axes(values: Any) -> int:
    return int(getattr(values, "ndim", 0))


def _is_path_of_grids(path: Path, name: str) -> bool:
    try:
        if path.is_dir():
            return _has_images(path)
        if not path.is_file():
            return name in IMAGE_BUNDLES
        if family(path) or is_idx(path) or is_cifar(path):
            return True
        if path.suffix.lower() == ".npz":
            return _largest_axes(path) >= 3
        if path.suffix.lower() in (".parquet", ".pq"):
            return _has_image_column(path)
        name = path.name.lower().removesuffix(".gz")
        return name.endswith((".csv", ".tsv", ".txt")) and _names_images(path)
    except Exception:
        return False  # the reader of tables says what is wrong with it


def _has_images(folder: Path, depth: int = 2) -> bool:
    """In it, in its first folders, or in theirs (train/cat/1.png)."""
    folders: list[Path] = []
    for entry in itertools.islice(folder.iterdir(), _LOOKED_AT):
        if entry.name.startswith("."):
            continue
        if family(entry):
            return True
        if depth and len(folders) < _FOLDERS and entry.is_dir():
            folders.append(entry)
    return any(_has_images(each, depth - 1) for each in folders)


def _largest_axes(path: Path) -> int:
    """Axes of the largest array, from the headers."""
    found = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist()[:100]:
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0
                if version != (1, 0):
                    header = np.lib.format.read_array_header_2_0
                found = max(found, len(header(file)[0]))
    return found


def _has_image_column(path: Path) -> bool:
    """Tests whether a column of a Parquet file begins with names of images that are there."""
    try:
        from pyarrow import parquet
    except ImportError:
        return False  # the reader says what is missing
    with parquet.ParquetFile(path) as file:
        text = [f.name for f in file.schema_arrow if str(f.type).endswith("string")]
        rows = next(file.iter_batches(batch_size=20, columns=text), None) if text else None
    return rows is not None and _shows_images(rows.to_pandas(), path.parent)


def _shows_images(frame: Any, folder: Path) -> bool:
    """A name that leads nowhere is a word: the table stays a table."""
    cells = [str(frame[name].iloc[0]) for name in image_columns(frame)]
    return any((folder / local_name(folder, cell)).is_file() for cell in cells)


def _names_images(path: Path) -> bool:
    """Tests whether a cell of the second line is the name of an image that is there."""
    packed = path.suffix.lower() == ".gz"
    with gzip.open(path) if packed else path.open("rb") as file:
        lines = file.read(_HEAD).decode("utf-8", errors="replace").splitlines()
    cells = re.split(r"[,;\t]", lines[1]) if len(lines) > 1 else []
    found = [Path(local_name(path.parent, cell.strip("\"' "))) for cell in cells]
    return any(family(cell) is not None and (path.parent / cell).is_file() for cell in found)
