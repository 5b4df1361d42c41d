"""Who writes there, and whether that process still lives: names for temporary folders."""

import hashlib
import os
import re
import socket
import time
import uuid
from pathlib import Path

_NAME = re.compile(r"\.tmp-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-(?P<id>[0-9a-f]{32})")
_DAY = 86_400.0

# What this very process is writing now: an earlier process may have had our process number.
_ours: set[str] = set()


def new_name() -> str:
    """A fresh ``.tmp-<host>-<process>-<uuid>``, so that a later process can tell who left it.

    Example:
        >>> from ansatz.storage.owner import is_orphan, new_name
        >>> new_name().startswith(".tmp-")
        True
    """
    name = f".tmp-{_host()}-{os.getpid()}-{uuid.uuid4().hex}"
    _ours.add(name)
    return name


def forget(name: str) -> None:
    """Ends what :func:`new_name` began: whatever still carries the name is an orphan.

    Example:
        >>> from ansatz.storage.owner import forget, new_name
        >>> forget(new_name())
    """
    _ours.discard(name)


def is_orphan(path: Path) -> bool:
    """Whether ``path`` has a temporary name whose writer is dead.

    A writer on another host cannot be asked; what it left counts as orphaned after a day.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.owner import is_orphan, new_name
        >>> is_orphan(pathlib.Path(new_name()))
        False
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match["host"] != _host():
        return time.time() - path.stat().st_mtime > _DAY
    pid = int(match["pid"])
    return path.name not in _ours if pid == os.getpid() else not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs on this machine.

    Example:
        >>> import os
        >>> from ansatz.storage.owner import is_alive
        >>> is_alive(os.getpid())
        True
    """
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


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
