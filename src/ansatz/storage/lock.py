"""One writer at a time in a run's folder."""

import contextlib
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import filelock

from ansatz.errors import BusyError, ModelError
from ansatz.storage.disk import explain
from ansatz.storage.json_file import encode_json, read_json
from ansatz.storage.process import is_alive

_LIMIT_BYTES = 4096


class RunLock:
    """Keeps a folder for this process while the ``with`` block runs.

    The lock is the operating system's, on ``<folder>.lock`` beside the folder (which need not exist
    yet): it ends with the process however that ends, so no stale lock can bar the way. The file
    says who holds it. What a dead process left there is taken over, and ``note`` says so.

    Args:
        folder: what is locked.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        absolute = Path(os.path.abspath(self.folder))
        self.path = absolute.with_name(f"{absolute.name}.lock")
        self.note: str | None = None
        self._lock = filelock.FileLock(self.path, timeout=0, thread_local=False)

    def acquire(self) -> "RunLock":
        """Takes the lock, or raises :class:`BusyError` naming process and host at once."""
        try:
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except filelock.Timeout:
            raise BusyError(
                f"{self.folder} is in use by {_describe(self._holder())}: "
                "wait for it to end, or choose another folder"
            ) from None
        except OSError as error:
            raise explain(error, self.path) from error
        try:
            self._take_over()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise explain(error, self.path) from error
            raise
        return self

    def release(self) -> None:
        """Gives the lock back; safe to call twice."""
        if not self._lock.is_locked:
            return
        # Unlinked while still held: whoever waits sees that the file is gone and makes its own.
        # Windows cannot unlink an open file: there it goes after the release, if nobody waits.
        if os.name != "nt":
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self._lock.release()
        if os.name == "nt":
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def __enter__(self) -> "RunLock":
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _take_over(self) -> None:
        before = self._holder()
        if before is not None:
            local = before["host"] == socket.gethostname()
            dead = " (no longer running)" if local and not is_alive(before["pid"]) else ""
            self.note = f"took over the lock of {self.folder} left by {_describe(before)}{dead}"
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        # The first byte stays blank: on Windows it is the locked one, which nobody else may read.
        file = os.open(self.path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            os.lseek(file, 1, os.SEEK_SET)
            content = encode_json(holder)
            os.write(file, content)
            os.ftruncate(file, 1 + len(content))
        finally:
            os.close(file)

    def _holder(self) -> dict[str, Any] | None:
        """What the lock file says about its holder; None if it says nothing that makes sense."""
        try:
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                os.lseek(file, 1, os.SEEK_SET)
                content = os.read(file, _LIMIT_BYTES)
            finally:
                os.close(file)
            holder = read_json(content.lstrip(b"\0"))
        except (OSError, ModelError):
            return None
        types = {"pid": int, "host": str, "since": str}
        if not isinstance(holder, dict) or {k: type(v) for k, v in holder.items()} != types:
            return None
        return holder


def _describe(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "another process"
    return f"process {holder['pid']} on {holder['host'][:80]!r} since {holder['since'][:40]}"
