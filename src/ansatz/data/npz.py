"""Arrays in NumPy's ``.npz``, never unpickled."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def read_npz(path: Path, limit_bytes: int) -> "pd.DataFrame":
    """Arrays of one length as columns; a matrix ``a`` of K columns becomes a1, ..., aK.

    A matrix called ``X`` or ``x`` gives its columns the names in ``feature_names``, if that is
    among the arrays, else x1, ..., xK. An array of Python objects is refused: reading it would
    run code from the file.
    """
    arrays = load_npz(path, limit_bytes)
    labels = arrays.pop("feature_names", None)
    columns: dict[str, np.ndarray] = {}
    for name, values in arrays.items():
        for label, column in _columns(name, values, labels, path):
            if label in columns:
                raise DataError(f"{path}: two columns would be called '{label}'. Rename an array.")
            columns[label] = column
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in arrays.items())
        raise DataError(f"{path}: expected arrays of one length, got {shapes or 'none'}.")
    import pandas as pd

    return pd.DataFrame(columns)


def _columns(
    name: str, values: np.ndarray, labels: np.ndarray | None, path: Path
) -> list[tuple[str, np.ndarray]]:
    if values.ndim == 1:
        return [(name, values)]
    if values.ndim != 2:
        raise DataError(
            f"{path}: array '{name}' has shape {values.shape}; expected (N,) or (N, D)."
        )
    if name in ("X", "x") and labels is not None and len(labels) == values.shape[1]:
        names = [str(label) for label in labels]
    else:
        stem = "x" if name == "X" else name
        names = [f"{stem}{k}" for k in range(1, values.shape[1] + 1)]
    return list(zip(names, values.T, strict=True))


def load_npz(path: Path, limit_bytes: int) -> dict[str, np.ndarray]:
    """The arrays in a file by name; those of Python objects are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > limit_bytes:
                raise DataError(f"{path} unpacks to {size:,} bytes, more than {limit_bytes:,}.")
            for member in archive.infolist():
                _check_size(archive, member, path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise DataError(
                f"{path} holds Python objects, which are never loaded. Save plain arrays."
            ) from None
        raise DataError(f"{path} is not a readable .npz file: {error}.") from None


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> None:
    """The shape in an array's header is allocated before its bytes are read: it must fit them."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = reader(file)
    if (
        not dtype.hasobject
        and int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size
    ):
        raise DataError(f"{path}: '{member.filename}' claims shape {shape}, more than it holds.")
