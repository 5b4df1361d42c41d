"""Claims put to the test: one after the other here, or side by side in processes of their own."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from ansatz.claims.claim import Scale
from ansatz.claims.outcome import Outcome
from ansatz.claims.picture import render
from ansatz.claims.registry import get, names, run
from ansatz.errors import UsageError
from ansatz.training.threads import using_threads


class Settings(NamedTuple):
    """How claims are run.

    Example:
        >>> from ansatz.claims.verification import Settings
        >>> Settings(seed=3).scale
        'quick'
    """

    scale: Scale = "quick"
    seed: int = 0
    parameters: Mapping[str, Any] = {}
    form: str | None = None  # of the figure; None draws none


def verify(
    *chosen: str,
    scale: Scale = "quick",
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    figures: str | None = None,
    workers: int = 1,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Runs claims; one that breaks does not stop the others.

    Args:
        chosen: names of claims; all by default.
        scale: ``"quick"`` or ``"full"``.
        seed: of everything random in each of them.
        parameters: values other than those of the scale; every chosen claim must know them.
        figures: ``"png"``, ``"svg"`` or ``"pdf"`` draws the figure of each claim that has one.
        workers: processes, of one thread each; 1 runs them here. A script that asks for more needs
            ``if __name__ == "__main__":``.
        tell: called with each outcome as it comes.

    Returns:
        One outcome per claim, in the order in which they were chosen.

    Example:
        >>> from ansatz import claims
        >>> [outcome] = claims.verify("xor")
        >>> outcome.holds, outcome.verdict
        (True, 'holds')
    """
    settings = Settings(scale, seed, dict(parameters or {}), figures)
    wanted = list(dict.fromkeys(chosen or names()))
    for name in wanted:
        _check_parameters(name, settings)
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    count = min(workers, len(wanted))
    found = {}
    for outcome in _here(wanted, settings) if count < 2 else _beside(wanted, settings, count):
        found[outcome.id] = outcome
        tell(outcome)
    return [found[name] for name in wanted]


def _check_parameters(name: str, settings: Settings) -> None:
    known = get(name).parameters(settings.scale)
    for parameter in settings.parameters:
        if parameter not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"claim '{name}' has no parameter '{parameter}'. Known: {listed}.")


def _here(wanted: Sequence[str], settings: Settings) -> Iterator[Outcome]:
    for name in wanted:
        yield _outcome(name, settings)


def _outcome(name: str, settings: Settings) -> Outcome:
    """One claim on one thread."""
    start = time.perf_counter()
    try:
        get(name)  # imports what it needs, which is not its own time
        with using_threads(1):
            start = time.perf_counter()
            finding = run(name, settings.scale, seed=settings.seed, **settings.parameters)
            seconds = time.perf_counter() - start
            drawn = None
            if settings.form is not None and get(name).draw is not None:
                drawn = render(name, finding, settings.form)
    except Exception as error:
        return _broken(name, time.perf_counter() - start, error)
    return Outcome(name, seconds, replace(finding, data={}), figure=drawn)


def _broken(name: str, seconds: float, error: Exception) -> Outcome:
    words = " ".join(f"{type(error).__name__}: {error}".split())
    trace = "".join(traceback.format_exception(error))
    return Outcome(name, seconds, None, words, trace=trace)


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


def _beside(wanted: Sequence[str], settings: Settings, count: int) -> Iterator[Outcome]:
    """Each worker is given one claim at a time; one that dies is replaced."""
    todo = deque(wanted)
    busy: dict[Connection, tuple[_Worker, str]] = {}

    def give(worker: _Worker) -> None:
        if todo:
            name = todo.popleft()
            worker.pipe.send(name)
            busy[worker.pipe] = worker, name

    started: list[_Worker] = []

    def start() -> None:
        started.append(_start(settings))
        give(started[-1])

    try:
        for _ in range(count):
            start()
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker, name = busy.pop(pipe)
                try:
                    yield pipe.recv()
                    give(worker)
                except EOFError:  # killed, or crashed below Python
                    worker.process.join()
                    words = f"its process ended with status {worker.process.exitcode}"
                    yield Outcome(name, 0.0, None, words)
                    if todo:
                        start()
    finally:
        for worker in started:
            worker.process.kill()
        for worker in started:
            worker.process.join()
            worker.pipe.close()


def _start(settings: Settings) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, settings), daemon=True)
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # read when its libraries are loaded
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    theirs.close()
    return _Worker(process, ours)


def _work(pipe: Connection, settings: Settings) -> None:
    """Runs the claims whose names come, until none comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    sys.stdout = sys.stderr  # results are printed by the first process
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        outcome = _outcome(name, settings)
        try:
            pipe.send(outcome)
        except Exception as error:  # what cannot be sent: a table that holds a function
            pipe.send(_broken(name, outcome.seconds, error))
