"""Worker processes that run claims in parallel, one claim at a time each.

A worker is ``python -c "...attempt.serve()"`` with a pipe to and from it. It does not import the
user's own program again. Ctrl-C reaches the first process alone, which ends the others.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

from ansatz.claims.attempt import Settings
from ansatz.claims.outcome import Outcome

_PROGRAM = "from ansatz.claims.attempt import serve; serve()"
_PATIENCE = 1.0  # seconds; on Windows, waiting for ever hides an interrupt


def run_in_processes(
    wanted: Sequence[str], settings: Settings, count: int
) -> Generator[Outcome, None, None]:
    """Runs claims in ``count`` processes and yields each outcome as it is ready.

    When a process dies, its claim counts as broken and a new process replaces it.
    """
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in wanted:
        todo.put(name)
    done: queue.Queue[Outcome] = queue.Queue()
    crew = [Worker(settings, todo, done) for _ in range(min(count, len(wanted)))]
    try:
        for worker in crew:
            worker.start()
        for _ in wanted:
            yield _next(done)
    finally:
        for worker in crew:
            worker.stop()


def _next(done: "queue.Queue[Outcome]") -> Outcome:
    while True:
        with suppress(queue.Empty):
            return done.get(timeout=_PATIENCE)


class Worker(threading.Thread):
    """A thread that gives claims to one process.

    Args:
        settings: of the runs.
        todo: names of claims, taken from here.
        done: outcomes, put there.
    """

    def __init__(
        self,
        settings: Settings,
        todo: "queue.SimpleQueue[str]",
        done: "queue.Queue[Outcome]",
    ) -> None:
        super().__init__(daemon=True)
        self.settings, self.todo, self.done = settings, todo, done
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def run(self) -> None:
        """Works until no claim is left."""
        try:
            while not self._is_stopped:
                name = self.todo.get_nowait()
                self.done.put(self._ask(name))
        except queue.Empty:
            return
        finally:
            self._end()

    def stop(self) -> None:
        """Ends the process at once, whatever it is doing."""
        self._is_stopped = True
        self._end()
        if self.ident is not None:  # it was started
            self.join()

    def _ask(self, name: str) -> Outcome:
        process = self._process()
        if process is None:
            return Outcome(name, 0.0, None, "it was stopped")
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(_line(name))
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # a broken pipe
            answer = b""
        if answer.endswith(b"\n"):
            return Outcome.of_message(json.loads(answer))
        status = process.wait()  # killed, or crashed below Python
        self._end()
        return Outcome(name, 0.0, None, f"its process ended with status {status}")

    def _process(self) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self.process is None and not self._is_stopped:
                self.process = _start()
                assert self.process.stdin is not None
                self.process.stdin.write(_line(self.settings._asdict()))
            return self.process

    def _end(self) -> None:
        with self._lock:
            if self.process is not None:
                self.process.kill()
                self.process.wait()
                with suppress(OSError):  # its unsent output is lost
                    self.process.__exit__(None, None, None)  # closes the pipes
                self.process = None


def _start() -> "subprocess.Popen[bytes]":
    apart: dict[str, Any] = {"start_new_session": True}  # Ctrl-C is the first process's affair
    if os.name == "nt":
        apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **apart,
    )


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
