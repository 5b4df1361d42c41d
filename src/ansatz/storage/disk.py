"""The few calls that touch the disk: write all, sync, rename, and say what went wrong."""

import contextlib
import errno
import math
import os
import shutil
import stat
from pathlib import Path

from ansatz.errors import AnsatzError, ModelError, ResourceError, UsageError
from ansatz.storage.temporary import forget, new_name

_CHUNK = 2**24
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def read_bytes(
    path: str | Path, *, limit_bytes: int | None = None, name: str | None = None
) -> bytes:
    """The content of a regular file that a model is made of; its absence is a ``ModelError``.

    Example:
        >>> from ansatz.storage.disk import read_bytes
        >>> read_bytes("no/weights.safetensors")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: weights.safetensors: missing
    """
    name = name or Path(path).name
    try:
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelError(f"{name}: not a regular file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if limit_bytes is not None and size > limit_bytes:
                raise ModelError(f"{name}: {size} bytes, at most {limit_bytes} are read")
            return file.read(size)
    except FileNotFoundError:
        raise ModelError(f"{name}: missing") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, AnsatzError):
            raise
        raise ModelError(f"{name}: cannot be read: {_reason(error)}") from None


def write_bytes(path: Path, content: bytes) -> None:
    """Creates a new file, writes all of it and waits until the disk has it.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage.disk import write_bytes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_bytes(pathlib.Path(folder, "a"), b"abc")
        ...     pathlib.Path(folder, "a").read_bytes()
        b'abc'
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest[:_CHUNK]) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Waits until the disk knows the folder's names; Windows has no such call.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.disk import sync_folder
        >>> sync_folder(pathlib.Path("."))
    """
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a folder at all; that is not a failed write.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def check_space(folder: Path, content_bytes: int, target: Path) -> None:
    """Refuses before writing what would not fit: 1.2 times the content must be free.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.disk import check_space
        >>> check_space(pathlib.Path("."), 2**70, pathlib.Path("model"))
        Traceback (most recent call last):
        ...
        ansatz.errors.ResourceError: cannot write model: the disk is too full: needs ... bytes, ...
    """
    need, free = math.ceil(1.2 * content_bytes), shutil.disk_usage(folder).free
    if need > free:
        raise ResourceError(
            f"cannot write {target}: the disk is too full: needs {need} bytes, {free} are free. "
            "Free some space or choose another folder."
        )


def write_file(target: str | Path, content: bytes, *, overwrite: bool = False) -> Path:
    """Writes one file, whole or not at all: a temporary file beside it, synced, then renamed.

    Example:
        >>> import tempfile
        >>> from ansatz.storage import write_file
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(folder + "/a.csv", b"x,y").read_bytes()
        b'x,y'
    """
    target = Path(target)
    try:
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists. Choose another name, or --overwrite to replace it.")
        if target.is_dir():
            raise UsageError(f"{target} is a folder; a file is to be written there.")
        check_space(target.parent, len(content), target)
        temporary = target.parent / new_name()
        try:
            write_bytes(temporary, content)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            forget(temporary.name)
        sync_folder(target.parent)
    except OSError as error:
        raise explain(error, target, len(content)) from error
    return target


def explain(error: OSError, target: Path, content_bytes: int | None = None) -> AnsatzError:
    """The user's sentence for an error of the operating system while writing ``target``.

    Example:
        >>> import errno, pathlib
        >>> from ansatz.storage.disk import explain
        >>> str(explain(OSError(errno.EROFS, "read-only"), pathlib.Path("/cd/model")))
        'cannot write /cd/model: read-only. Choose a folder that you may write to.'
    """
    if isinstance(error, AnsatzError):
        return error
    where = f"cannot write {target}"
    if error.errno in _FULL:
        need = "" if content_bytes is None else f": needs {math.ceil(1.2 * content_bytes)} bytes"
        return ResourceError(f"{where}: the disk is full{need}{_free(target)}. Free some space.")
    if error.errno in _FORBIDDEN:
        return ResourceError(f"{where}: {_reason(error)}. Choose a folder that you may write to.")
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(f"{where}: the path is too long. Choose a shorter name.")
    if error.errno == errno.ELOOP:
        return UsageError(f"{where}: its path is a loop of symbolic links.")
    if error.errno == errno.ENOENT and not target.parent.is_dir():
        return UsageError(f"{where}: the folder {target.parent} does not exist.")
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY):
        return UsageError(f"{where}: {_reason(error)}. Choose another name.")
    return ResourceError(f"{where}: {_reason(error)}.")


def _free(target: Path) -> str:
    with contextlib.suppress(OSError):
        return f", {shutil.disk_usage(target.parent).free} are free"
    return ""


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
