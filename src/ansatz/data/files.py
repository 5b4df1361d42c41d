"""Files on disk, read within limits: paths, bytes, .npz archives."""

import difflib
import gzip
import re
import stat
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ansatz.data.bundles import ROWS
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

LIMIT_BYTES = 8 * 2**30  # more than a machine that would train on the table has memory for
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_RATIO = 200  # tables shrink 3 to 50 times; deflate's own limit, the mark of a bomb, is 1032
_FREE_BYTES = 16 * 2**20  # below this any ratio is harmless
_CHUNK = 2**20


def checked_path(path: str | PathLike[str]) -> Path:
    """Returns the path of a regular, readable file, or raises an error that names the cause."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(path)):
        raise DataError(f"{path} is an address; ansatz reads local files. Download it first.")
    if "\0" in str(path):
        raise DataError(f"{str(path)!r} is not a file name: it contains a NUL character.")
    found = Path(path)
    try:
        mode = found.stat().st_mode
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.{_nearest(found)}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}.") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a folder; expected one file with a table.")
    if not stat.S_ISREG(mode):
        # A pipe blocks until somebody writes and cannot be read twice.
        raise DataError(f"{path} is a pipe or device, not a file. Save its contents to a file.")
    return found


def read_bytes(path: Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """The contents of a file, unpacked if it is gzipped, whatever its name.

    Unpacking stops with an error as soon as more than ``limit_bytes`` come out, or more than 200
    times the packed size: a file of 48 kB can otherwise fill the memory.
    """
    try:
        with path.open("rb") as file:
            if file.read(2) == _GZIP_MAGIC:
                return _gunzip(path, limit_bytes)
            file.seek(0)
            return file.read()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _gunzip(path: Path, limit_bytes: int) -> bytes:
    packed, parts, size = path.stat().st_size, [], 0
    try:
        with gzip.open(path) as file:
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                if size > limit_bytes or (size > _FREE_BYTES and size > _MAX_RATIO * packed):
                    raise DataError(
                        f"{path} unpacks to more than {size:,} bytes from {packed:,}, which is "
                        "refused. If you trust it, unpack it first (gunzip)."
                    )
                parts.append(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}. Fetch it again.") from None
    return b"".join(parts)


def _nearest(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f" Neither does the folder {path.parent}."
    near = difflib.get_close_matches(path.name, names, n=1)
    if near:
        return f" Did you mean {path.with_name(near[0])}?"
    near = difflib.get_close_matches(str(path).lower(), ROWS, n=1)
    return f" Did you mean the data set {near[0]}?" if near else ""


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
