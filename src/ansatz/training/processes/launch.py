"""Starts the processes of a run, and lets them find each other."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from types import FrameType
from typing import IO, Any, NamedTuple

import torch.distributed as dist

_GRACE = 15.0  # seconds in which the others end by themselves once one has failed


class Meeting:
    """The place where processes find each other: a port of the loopback interface, held from here.

    The system chooses the port, and it is ours before any process knows it, so that no other
    program can take it in between. Nothing listens on other interfaces.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        self.port = int(listener.getsockname()[1])
        self._store = dist.TCPStore(
            "127.0.0.1",
            self.port,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )

    def environment(self, rank: int) -> dict[str, str]:
        """The variables that make a process number ``rank``, as torchrun sets them."""
        threads = max(1, (os.cpu_count() or 1) // self.size)
        loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
        defaults = {"OMP_NUM_THREADS": str(threads)}
        if loopback:
            defaults["GLOO_SOCKET_IFNAME"] = loopback[0]
        return {
            **defaults,
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is there: connect, do not open one
            "TORCHELASTIC_RESTART_COUNT": "0",
        }


class Ending(NamedTuple):
    """The end of all processes: exit status, and what went wrong."""

    status: int  # 0, or that of the first process or of the one that failed first
    killed: tuple[int, int] | None  # the process that a signal ended, and the signal
    words: str  # the errors of processes other than the first
    first_failed: bool = False  # the first process has then reported why itself


def launch(command: Sequence[str], size: int) -> Ending:
    """Runs ``command`` in ``size`` processes and waits for all of them.

    The first one has this process's standard output and error. A signal that arrives here is
    passed on to all, once each time. When one fails, the others have 15 seconds to end by
    themselves. If this process is killed, their standard input closes, and they stop.
    """
    meeting = Meeting(size)
    children: list[subprocess.Popen[str]] = []
    with _Forwarding(children):
        try:
            for rank in range(size):
                children.append(_start(command, meeting, rank))
            first_to_fail = _watch(children)
        finally:
            _stop(children)
    return _ending(children, first_to_fail)


def follow_parent(pipe: IO[Any] | None = None) -> None:
    """Ends this process when the one that launched it is gone, which closes ``pipe`` (stdin)."""
    import threading

    def watch() -> None:
        (pipe or sys.stdin).read()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE)
        os._exit(143)

    threading.Thread(target=watch, daemon=True).start()


class _Forwarding:
    """Passes on SIGINT and SIGTERM to processes that the terminal does not reach."""

    def __init__(self, children: Sequence["subprocess.Popen[str]"]) -> None:
        self._children, self._before = children, {}  # type: ignore[var-annotated]

    def __enter__(self) -> "_Forwarding":
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._pass_on)
        except ValueError:  # only the main thread may
            pass
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        for child in self._children:
            if child.poll() is None:
                child.send_signal(number)


def _start(command: Sequence[str], meeting: Meeting, rank: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        list(command),
        env=meeting.environment(rank),
        stdin=subprocess.PIPE,
        stdout=None if rank == 0 else subprocess.DEVNULL,
        stderr=None if rank == 0 else subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches them through this process only
    )


def _watch(children: Sequence["subprocess.Popen[str]"]) -> int | None:
    """Waits until all have ended, or some time after one failed; returns which was the first."""
    failed, end = None, float("inf")
    while any(child.poll() is None for child in children) and time.monotonic() < end:
        if failed is None and (failed := _first_to_fail(children)) is not None:
            end = time.monotonic() + _GRACE
        time.sleep(0.05)
    return _first_to_fail(children) if failed is None else failed


def _first_to_fail(children: Sequence["subprocess.Popen[str]"]) -> int | None:
    """Of those that have failed by now, one that a signal ended: the others left because of it."""
    failed = [rank for rank, child in enumerate(children) if child.poll()]
    return min(failed, key=lambda rank: children[rank].returncode > 0, default=None)


def _stop(children: Sequence["subprocess.Popen[str]"]) -> None:
    for ask in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for child in children:
            if child.poll() is None:
                ask(child)
        end = time.monotonic() + 5
        while any(child.poll() is None for child in children) and time.monotonic() < end:
            time.sleep(0.05)


def _ending(children: Sequence["subprocess.Popen[str]"], failed: int | None) -> Ending:
    words = [child.communicate()[1] or "" for child in children][1:]
    if failed is None:
        return Ending(0, None, "")
    killed = next(((r, -c.returncode) for r, c in enumerate(children) if c.returncode < 0), None)
    if killed is not None and killed[0] != failed:
        killed = None  # by us, because another had failed
    status = children[0].returncode or children[failed].returncode
    errors = next((w for w in words if w), "")
    status = status if status > 0 else 128 - status
    return Ending(status, killed, errors, first_failed=children[0].returncode != 0)


_PAUSE = 0.01  # seconds between two looks


def open_store(rank: int, size: int, timeout: timedelta) -> Any:
    """The store of this start of the processes, at ``MASTER_ADDR:MASTER_PORT``.

    torchrun keeps one store over all restarts, and the addresses of processes that have died are
    still in it. So the first process gives each start a name of its own, under which all talk: each
    process leaves a number that nobody else can know, and whoever answers to it is alive.
    """
    is_there = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        size,
        is_master=rank == 0 and not is_there,
        timeout=timeout,
        wait_for_workers=False,
    )
    end = time.monotonic() + timeout.total_seconds()
    name = _lead(store, size, end) if rank == 0 else _follow(store, rank, end)
    return dist.PrefixStore(f"ansatz/{name}", store)


def _lead(store: Any, size: int, end: float) -> str:
    """Answers every number that is left until all processes have heard the name."""
    name, answered = uuid.uuid4().hex, set()
    waiting = set(range(1, size))
    while waiting:
        for rank in tuple(waiting):
            hello = f"ansatz/hello/{rank}"
            if store.check([hello]) and (number := store.get(hello)) not in answered:
                store.set(f"ansatz/answer/{number.decode()}", name)
                answered.add(number)
            if store.check([f"ansatz/{name}/ready/{rank}"]):
                waiting.discard(rank)
        _pause(end, sorted(waiting))
    return name


def _follow(store: Any, rank: int, end: float) -> str:
    number = uuid.uuid4().hex
    store.set(f"ansatz/hello/{rank}", number)
    answer = f"ansatz/answer/{number}"
    while not store.check([answer]):
        _pause(end, [0])
    name: str = store.get(answer).decode()
    store.set(f"ansatz/{name}/ready/{rank}", "")
    return name


def _pause(end: float, missing: list[int]) -> None:
    if time.monotonic() > end:
        who = ", ".join(map(str, missing))
        raise RuntimeError(f"waited in vain for process {who}.")
    time.sleep(_PAUSE)
