"""Files on disk: what may be opened, and how many bytes may come out of it."""

import difflib
import gzip
import re
import stat
import zlib
from os import PathLike
from pathlib import Path

from ansatz.errors import DataError

LIMIT_BYTES = 8 * 2**30  # more than a machine that would train on the table has memory for
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_RATIO = 200  # tables shrink 3 to 50 times; deflate's own limit, the mark of a bomb, is 1032
_FREE_BYTES = 16 * 2**20  # below this any ratio is harmless
_CHUNK = 2**20


def checked_path(path: str | PathLike[str]) -> Path:
    """The path, if it is a regular file that can be read; otherwise an error that says what it is."""
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
    return f" Did you mean {path.with_name(near[0])}?" if near else ""
