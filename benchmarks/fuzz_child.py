"""Runs commands in forked processes and sorts what became of them."""

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 30  # of the processor, after which a command hangs
_WAITED = 300  # seconds by the clock, on a machine that does other things too
MEMORY = 4 * 2**30  # bytes of address space beyond what the parent has
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod"}
_FOREIGN = {  # events that no command on a file may cause
    *("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.fork"),
    *("socket.connect", "socket.getaddrinfo"),
}
_HANGS = (signal.SIGALRM, signal.SIGPROF)
_AT_ONCE = 25  # inputs per process: forking costs as much as a command
Row = dict[str, Any]
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


def run_forked(count: int, one: Callable[[int], Row], lost: Callable[[int, str], Row]) -> list[Row]:
    """Runs ``one(0), ..., one(count - 1)`` in forked processes, up to 25 in each.

    Args:
        count: number of inputs.
        one: makes an input, runs its command by :func:`run_here`, and gives its row.
        lost: the row of an input whose process ended: ``lost(number, outcome)``.
    """
    rows: list[Row] = []
    while len(rows) < count:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _serve(writer, range(len(rows), min(count, len(rows) + _AT_ONCE)), one)
        os.close(writer)
        wanted = min(count, len(rows) + _AT_ONCE)
        with os.fdopen(reader) as file:
            rows += [json.loads(line) for line in file if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        if len(rows) < wanted:
            rows.append(lost(len(rows), "hang" if status in _HANGS else "crash"))
    return rows


def _serve(writer: int, numbers: range, one: Callable[[int], Row]) -> None:
    """Runs the inputs of one process; never returns."""
    try:
        for number in _HANGS:
            signal.signal(number, signal.SIG_DFL)
        _limit_memory()
        sys.addaudithook(_note)
        for number in numbers:
            os.write(writer, (json.dumps(one(number)) + "\n").encode())
    finally:
        os._exit(0)


def run_here(arguments: Sequence[str], work: Path, inputs: Sequence[str]) -> Result:
    """Runs a command in this process, in ``work``, which is all that it may write to.

    Args:
        arguments: of the command.
        work: its working folder, which exists.
        inputs: names of the damaged files, one of which a refusal must mention.
    """
    began = time.process_time()
    logs = Path(f"{work}.log")
    logs.mkdir()
    saved = os.dup(1), os.dup(2)
    os.chdir(work)
    tempfile.tempdir, _Watch.touched = str(work), []
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        file = os.open(logs / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    _Watch.inside = os.path.realpath(work)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(_WAITED)
    try:
        status = _run(list(arguments))
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _Watch.inside = None
        os.chdir("/")
        for number, old in zip((1, 2), saved, strict=True):
            os.dup2(old, number)
            os.close(old)
    lines = (logs / "err.txt").read_text(errors="replace").splitlines()
    outcome = "outside" if _Watch.touched else sort(status, lines, inputs)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    seconds = round(time.process_time() - began, 3)
    return Result(outcome, status, (*lines, *_Watch.touched), megabytes, seconds)


def _run(arguments: list[str]) -> int:
    from ansatz.cli.main import run

    options: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace", "closefd": False}
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = open(1, "w", **options), open(2, "w", buffering=1, **options)
    try:
        return run(arguments)
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams


def sort(status: int, lines: Sequence[str], inputs: Sequence[str] = ()) -> str:
    """Names the outcome of a command by its exit status and what it wrote to standard error."""
    text = "\n".join(lines)
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


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Watch:
    inside: str | None = None  # the folder that a command may write to, while one runs
    touched: list[str] = []  # noqa: RUF012


def _is_outside(path: Any) -> bool:
    if isinstance(path, int) or path is None:
        return False
    found = os.path.realpath(os.fsdecode(path))
    return not (found == _Watch.inside or found.startswith((f"{_Watch.inside}/", "/dev/")))


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Writes down every change outside of the folder, every connection and every new process."""
    if _Watch.inside is None:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = flags & _WRITES if isinstance(flags, int) else mode and set(mode) & set("wax+")
        if not writes or not _is_outside(path):
            return
    elif event in _CHANGES:
        if not any(_is_outside(p) for p in arguments[:2] if isinstance(p, str | bytes | Path)):
            return
    elif event not in _FOREIGN:
        return
    _Watch.touched.append(f"{event} {arguments!r}")
