"""Processes on this machine: which of them still live."""

import hashlib
import os
import socket


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs on this machine."""
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
