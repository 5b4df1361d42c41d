"""Files on disk, read within limits: paths, bytes, .npz archives."""

import difflib
import gzip
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.bundles import ROWS
from ansatz.errors import DataError
from ansatz.storage.decoding import decoding

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
    try:
        return b"".join(_unpacked(path, gzip.open, limit_bytes))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}. Fetch it again.") from None


def _unpacked(path: Path, opener: Callable[..., Any], limit_bytes: int) -> Iterator[bytes]:
    packed, size = path.stat().st_size, 0
    with opener(path) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > limit_bytes or _is_bomb(size, packed):
                raise DataError(
                    f"{path} unpacks to more than {size:,} bytes from {packed:,}, which is "
                    "refused. If you trust it, unpack it first (gunzip)."
                )
            yield chunk


def _is_bomb(size: int, packed: int) -> bool:
    return size > _FREE_BYTES and size > _MAX_RATIO * packed


def check_unpacked(path: Path, opener: Callable[..., Any], limit_bytes: int) -> None:
    """Refuses a packed file that unpacks to too much; nothing of it is kept."""
    for _ in _unpacked(path, opener, limit_bytes):
        pass


def check_zip(path: Path, limit_bytes: int) -> list[zipfile.ZipInfo]:
    """The members of an archive, refused if they say that they unpack to too much."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for size, packed in [
        (sum(m.file_size for m in members), path.stat().st_size),
        *((m.file_size, m.compress_size) for m in members),
    ]:
        if size > limit_bytes or _is_bomb(size, packed):
            raise DataError(
                f"{path} unpacks to {size:,} bytes from {packed:,}, which is refused. If you trust "
                "it, unpack it first."
            )
    return members


_MEMBER = re.compile(r"(.+\.(?:zip|xlsx|xls|rdata|rda))!(.+)", re.IGNORECASE | re.DOTALL)
_TABLES = {
    *(".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".pq", ".arrow", ".feather", ".npz"),
    *(".xlsx", ".xls", ".dta", ".sav", ".sas7bdat", ".xpt", ".rds", ".rdata", ".rda", ".gz"),
}


def split_member(path: str | PathLike[str]) -> tuple[str, str | None]:
    """The file and what is named in it: ``archive.zip!table.csv``, ``book.xlsx!Sheet2``."""
    found = _MEMBER.fullmatch(str(path))
    if found is None or Path(path).exists():
        return str(path), None
    return found[1], found[2]


def read_member(path: Path, member: str | None, limit_bytes: int) -> tuple[str, bytes]:
    """The name and the bytes of one file in a zip archive; nothing is written to disk.

    Without a name, the archive must hold one file, or one that is called like a table.
    """
    try:
        members = [m for m in check_zip(path, limit_bytes) if not m.is_dir()]
        names = [m.filename for m in members if not _is_junk(m.filename)]
        if member is None:
            tables = [n for n in names if Path(n).suffix.lower() in _TABLES]
            chosen = names if len(names) == 1 else tables
            if len(chosen) != 1:
                listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
                raise DataError(
                    f"{path} holds {len(names)} files: {listed or 'none'}. Name the one to read: "
                    f"'{path.name}!FILE'."
                )
            member = chosen[0]
        if member not in names:
            near = difflib.get_close_matches(member, names, n=1)
            hint = f" Did you mean '{path.name}!{near[0]}'?" if near else ""
            raise DataError(f"{path} holds no file '{member}'.{hint}")
        with zipfile.ZipFile(path) as archive:
            return member, archive.read(member)
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{path} is a damaged zip archive: {error}. Fetch it again.") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, an unknown compression
        raise DataError(f"{path} cannot be unpacked: {error}. Unpack it first.") from None


def _is_junk(name: str) -> bool:
    return name.startswith("__MACOSX/") or Path(name).name.startswith(".")


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
    with decoding(path, ".npz file"):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > limit_bytes:
                raise DataError(f"{path} unpacks to {size:,} bytes, more than {limit_bytes:,}.")
            for member in archive.infolist():
                _check_size(archive, member, path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


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
    if dtype.hasobject:
        raise DataError(f"{path} holds Python objects, which are never loaded. Save plain arrays.")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
        raise DataError(f"{path}: '{member.filename}' claims shape {shape}, more than it holds.")
