"""Temporary names beside the real ones, and the removal of what dead writers left under them."""

import contextlib
import os
import re
import shutil
import time
import uuid
from pathlib import Path

from ansatz.storage.process import host_digest, is_alive

_NAME = re.compile(r"\.tmp-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-[0-9a-f]{32}")
_DAY = 86_400.0

# What this very process is writing now: an earlier process may have had our process number.
_ours: set[str] = set()


def new_name() -> str:
    """A fresh ``.tmp-<host>-<process>-<uuid>``, so that a later process can tell who left it.

    Example:
        >>> from ansatz.storage.temporary import new_name
        >>> new_name().startswith(".tmp-")
        True
    """
    name = f".tmp-{host_digest()}-{os.getpid()}-{uuid.uuid4().hex}"
    _ours.add(name)
    return name


def forget(name: str) -> None:
    """Ends what :func:`new_name` began: whatever still carries the name is an orphan.

    Example:
        >>> from ansatz.storage.temporary import forget, new_name
        >>> forget(new_name())
    """
    _ours.discard(name)


def is_orphan(path: Path) -> bool:
    """Whether ``path`` has a temporary name whose writer is dead.

    A writer on another host cannot be asked; what it left counts as orphaned after a day.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.temporary import is_orphan, new_name
        >>> is_orphan(pathlib.Path(new_name()))
        False
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match["host"] != host_digest():
        return time.time() - path.stat().st_mtime > _DAY
    pid = int(match["pid"])
    return path.name not in _ours if pid == os.getpid() else not is_alive(pid)


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it; what is not there is no error.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.temporary import remove
        >>> remove(pathlib.Path("no/such/file"))
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Removes a folder so that a crash leaves an orphan, never half a folder under its name.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage.temporary import remove_folder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     (folder := pathlib.Path(parent, "step-1")).mkdir()
        ...     remove_folder(folder)
        ...     folder.exists()
        False
    """
    temporary = path.parent / new_name()
    try:
        os.rename(path, temporary)
        remove(temporary)
    finally:
        forget(temporary.name)


def remove_orphans(parent: Path) -> None:
    """Removes the temporary folders and files that dead writers left.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage.temporary import remove_orphans
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     remove_orphans(pathlib.Path(parent))
    """
    for path in sorted(parent.glob(".tmp-*")):
        # Another process may be cleaning too; and what cannot be removed harms nobody.
        with contextlib.suppress(OSError):
            if is_orphan(path):
                remove(path)
