"""Runs one command in a forked process and sorts what became of it."""

import contextlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 30  # after which a command hangs
MEMORY = 4 * 2**30  # bytes of address space beyond what the parent has
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod"}
_CODE = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.fork"}
_TOUCHED = "touched.txt"
_BESIDE = ("ansatz: warning: ", "ansatz: note: ")

GOOD = ("accepted", "refused")
BAD = (
    *("unexpected", "escaped", "hang", "crash", "memory", "stray", "outside"),
    *("unnamed", "several lines"),
)
OUTCOMES = (*GOOD, *BAD)


class Result(NamedTuple):
    """What became of a command: its outcome, exit status, and the lines on standard error."""

    outcome: str
    status: int
    lines: tuple[str, ...]
    megabytes: int
    seconds: float


def run_forked(arguments: Sequence[str], work: Path, inputs: Sequence[str]) -> Result:
    """Runs a command of the command line in ``work``, which is all that it may write to.

    Args:
        arguments: of the command.
        work: its working folder, which exists.
        inputs: names of the damaged files, one of which a refusal must mention.
    """
    import time

    began = time.perf_counter()
    logs = work.parent / f"{work.name}.log"
    logs.mkdir()
    child = os.fork()
    if child == 0:
        _become(list(arguments), work, logs)
    _, status, usage = os.wait4(child, 0)
    lines = (logs / "err.txt").read_text(errors="replace").splitlines()
    touched = logs / _TOUCHED
    outside = touched.read_text(errors="replace").splitlines() if touched.exists() else []
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    outcome = "outside" if outside else sort(code, lines, inputs)
    return Result(
        outcome,
        code,
        tuple([*lines, *outside]),
        usage.ru_maxrss // 1024,
        time.perf_counter() - began,
    )


def sort(status: int, lines: Sequence[str], inputs: Sequence[str] = ()) -> str:
    """Names the outcome of a command by its exit status and what it wrote to standard error."""
    text = "\n".join(lines)
    if status == -signal.SIGALRM:
        return "hang"
    if status < 0:
        return "crash"
    if "Traceback (most recent call last)" in text:
        return "escaped"
    if any(not line.startswith("ansatz: ") for line in lines):
        return "stray"
    if "unexpected error" in text or status == 1:
        return "unexpected"
    if "out of memory" in text:
        return "memory"
    if status == 0:
        return "accepted"
    said = [line for line in lines if not line.startswith(_BESIDE)]
    if len(said) != 1:
        return "several lines"
    return "refused" if any(name in said[0] for name in inputs) else "unnamed"


def _become(arguments: list[str], work: Path, logs: Path) -> None:
    """Turns this process into the command; never returns."""
    status = 99
    try:
        for number, name in ((1, "out.txt"), (2, "err.txt")):
            file = os.open(logs / name, os.O_WRONLY | os.O_CREAT)
            os.dup2(file, number)
            os.close(file)
        sys.stdin = open(os.devnull)
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = open(
            2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
        )
        os.chdir(work)
        tempfile.tempdir = str(work)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        _limit_memory()
        _watch(work, logs)
        from ansatz.cli.main import run

        status = run(arguments)
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch(work: Path, logs: Path) -> None:
    """Writes down every change outside of ``work``, every connection and every new process."""
    inside = os.path.realpath(work)
    report = os.open(logs / _TOUCHED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def is_outside(path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return False
        found = os.path.realpath(os.fsdecode(path))
        return not (found == inside or found.startswith((inside + os.sep, "/dev/")))

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = flags & _WRITES if isinstance(flags, int) else mode and set(mode) & set("wax+")
            if not writes or not is_outside(path):
                return
        elif event in _CHANGES:
            if not any(is_outside(p) for p in arguments[:2] if isinstance(p, str | bytes | Path)):
                return
        elif event not in _CODE and event not in ("socket.connect", "socket.getaddrinfo"):
            return
        os.write(report, f"{event} {arguments!r}\n".encode(errors="replace"))

    sys.addaudithook(note)
