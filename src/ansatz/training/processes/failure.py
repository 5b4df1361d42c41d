"""The message of a failed process to the others, as plain text: nothing is unpickled."""

import json
import os
import signal
import socket
from typing import NamedTuple

from ansatz import errors
from ansatz.errors import AnsatzError, Interrupted, MissingExtraError, ResourceError, UsageError


class ProcessError(AnsatzError):
    """Another process of the run failed in a way that has no name of its own (exit status 1)."""


class LostProcess(ProcessError):
    """Another process stopped answering without a word (exit status 5)."""

    exit_status = 5

    @classmethod
    def of(cls, error: BaseException) -> "LostProcess":
        """From the error of a message that did not get through."""
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "timed out" in text.lower() or "timeout" in text.lower():
            return cls(
                "another process has not answered in time (ANSATZ_PROCESS_TIMEOUT seconds): it "
                "hangs, or the network does. Continue with resume from the last checkpoint."
            )
        return cls(
            "lost contact with another process: it was killed, or its machine or network failed. "
            "If memory ran out, use fewer processes; continue with resume from the last checkpoint."
        )


class ProcessFailure(NamedTuple):
    """An error as it travels between processes."""

    kind: str
    message: str
    rank: int
    signal: int = 0
    step: int = 0

    @classmethod
    def of(cls, error: BaseException, rank: int) -> "ProcessFailure":
        """An error of this process."""
        number = int(getattr(error, "signal", signal.SIGINT if _is_interrupt(error) else 0) or 0)
        step = int(getattr(error, "step", 0) or 0)
        return cls(type(error).__name__, str(error), rank, number, step)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str | bytes) -> "ProcessFailure":
        """From text."""
        return cls(**json.loads(text))

    def rebuild(self) -> BaseException:
        """The same error in another process; one that is not ours keeps its name as text."""
        if self.signal:
            return Interrupted(self.signal, self.step)
        kind = getattr(errors, self.kind, None)
        if kind is MissingExtraError:
            kind = UsageError
        if isinstance(kind, type) and issubclass(kind, AnsatzError):
            return kind(self.message)
        if self.kind == LostProcess.__name__:
            return LostProcess(self.message)
        return ProcessError(f"process {self.rank}: {self.kind}: {self.message}")


def require_interface() -> None:
    """Refuses a ``GLOO_SOCKET_IFNAME`` that names no network interface of this machine."""
    known = [name for _, name in socket.if_nameindex()]
    for name in filter(None, os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")):
        if name not in known:
            raise ResourceError(
                f"there is no network interface '{name}' (GLOO_SOCKET_IFNAME) on this machine. "
                f"It has {', '.join(known)}."
            )


def explain_start(error: Exception) -> str:
    """Why processes did not find each other, in one line."""
    text = " ".join(str(error).split())
    where = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return (
            f"the port of the processes, MASTER_PORT ({where}), is in use. Choose another: "
            "torchrun --master-port N, or --standalone to have a free one chosen."
        )
    return (
        f"the processes did not find each other at {where}: {text[:200]} "
        "Check MASTER_ADDR, MASTER_PORT and that all processes have started."
    )


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, KeyboardInterrupt)
