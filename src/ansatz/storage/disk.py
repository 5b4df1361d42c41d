"""Reads and writes files on disk: whole or not at all, and reports what went wrong."""

import contextlib
import errno
import hashlib
import math
import os
import re
import shutil
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from ansatz.errors import AnsatzError, ModelError, ResourceError, UsageError


def is_alive(pid: int) -> bool:
    """Tests whether a process of that number runs on this machine."""
    if pid <= 0:
        return False
    if os.name == "nt":
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def host_digest() -> str:
    """Eight characters that tell this machine from another in a file's name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _is_alive_on_windows(pid: int) -> bool:
    # os.kill would end the process there, whatever the signal.
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return bool(kernel.GetLastError() == 5)  # access denied: it lives, and is not ours
    code = ctypes.c_ulong()
    known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return bool(known) and code.value == 259  # STILL_ACTIVE


_CHUNK = 2**24
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def read_bytes(
    path: str | Path, *, limit_bytes: int | None = None, name: str | None = None
) -> bytes:
    """Reads a regular file of a model; its absence is a ``ModelError``."""
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
    """Creates a new file, writes all of it and waits until the disk has it."""
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
    """Waits until the disk knows the folder's names; Windows has no such call."""
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
    """Refuses before writing what would not fit: 1.2 times the content must be free."""
    need, free = math.ceil(1.2 * content_bytes), shutil.disk_usage(folder).free
    if need > free:
        raise ResourceError(
            f"cannot write {target}: the disk is too full: needs {need} bytes, {free} are free. "
            "Free some space or choose another folder."
        )


def write_file(target: str | Path, content: bytes, *, overwrite: bool = False) -> Path:
    """Writes one file, whole or not at all: a temporary file beside it, synced, then renamed."""
    target = Path(target)
    try:
        _require_free(target, overwrite)
        if target.is_dir():
            raise UsageError(f"{target} is a folder; a file is to be written there.")
        check_space(target.parent, len(content), target)
        _replace(target, lambda temporary: write_bytes(temporary, content))
    except OSError as error:
        raise explain(error, target, len(content)) from error
    return target


def write_chunks(target: str | Path, chunks: Iterable[bytes], *, overwrite: bool = False) -> Path:
    """Writes chunks, made while they are written, as :func:`write_file` writes a whole file."""
    target = Path(target)
    _require_free(target, overwrite)

    def write(temporary: Path) -> None:
        with temporary.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    try:
        _replace(target, write)
    except OSError as error:
        raise explain(error, target) from error
    return target


def _require_free(target: Path, overwrite: bool) -> None:
    if os.path.lexists(target) and not overwrite:
        raise UsageError(f"{target} exists. Choose another name, or --overwrite to replace it.")


def _replace(target: Path, write: Callable[[Path], None]) -> None:
    """Lets ``write`` fill a temporary file, which then takes the target's name."""
    temporary = target.parent / new_name()
    try:
        write(temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    finally:
        forget(temporary.name)
    sync_folder(target.parent)


def explain(error: OSError, target: Path, content_bytes: int | None = None) -> AnsatzError:
    """Explains an error of the operating system while writing ``target``."""
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


_NAME = re.compile(r"\.tmp-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9a-f]{32}")
_DAY = 86_400.0

# What this very process is writing now: an earlier process may have had our process number.
_ours: set[str] = set()


def new_name() -> str:
    """A fresh ``.tmp-<host>-<process>-<uuid>``, so that a later process can tell who left it."""
    name = f".tmp-{host_digest()}-{os.getpid()}-{uuid.uuid4().hex}"
    _ours.add(name)
    return name


def forget(name: str) -> None:
    """Ends what :func:`new_name` began: whatever still carries the name is an orphan."""
    _ours.discard(name)


def is_orphan(path: Path) -> bool:
    """Tests whether ``path`` has a temporary name whose writer is dead.

    A writer on another host cannot be asked; what it left counts as orphaned after a day.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match["host"] != host_digest():
        return time.time() - path.stat().st_mtime > _DAY
    pid = int(match["pid"])
    return path.name not in _ours if pid == os.getpid() else not is_alive(pid)


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it; what is not there is not an error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Removes a folder so that a crash leaves an orphan, never half a folder under its name."""
    temporary = path.parent / new_name()
    try:
        os.rename(path, temporary)
        remove(temporary)
    finally:
        forget(temporary.name)


def remove_orphans(parent: Path) -> None:
    """Removes the temporary folders and files that dead writers left."""
    for path in sorted(parent.glob(".tmp-*")):
        # Another process may be cleaning too; and what cannot be removed harms nobody.
        with contextlib.suppress(OSError):
            if is_orphan(path):
                remove(path)


def new_aside(target: Path) -> Path:
    """The name under which ``target`` waits while it is replaced: ``.<name>.old-<n>`` beside it."""
    last = max((_number(path) for path in asides(target)), default=0)
    return target.parent / f".{target.name}.old-{last + 1}"


def asides(target: Path) -> list[Path]:
    """Earlier versions of ``target`` that wait beside it, the newest first."""
    pattern = re.compile(re.escape(f".{target.name}.old-") + "[0-9]{1,9}")
    try:
        names = [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((target.parent / name for name in names), key=_number, reverse=True)


def recover_folder(target: str | Path) -> Path | None:
    """Undoes a replacement that was interrupted: the earlier folder gets its name back.

    Between the two renames of a replacement there is an instant in which no folder has the name;
    a machine that stops there leaves the old one aside, whole. Returns the folder if there was
    something to undo; nothing happens while ``target`` exists.
    """
    target = Path(target)
    if os.path.lexists(target):
        return None
    for aside in asides(target):
        os.rename(aside, target)
        sync_folder(target.parent)
        return target
    return None


def _number(aside: Path) -> int:
    return int(aside.name.rpartition("-")[2])
