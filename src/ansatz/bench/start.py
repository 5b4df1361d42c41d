"""How long the command takes to answer at all."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.race import Time

# The least that a command made with typer can be, with a help page of the same kind.
EMPTY = """
import typer
app = typer.Typer(rich_markup_mode="rich")

@app.command()
def hello(name: str = "you") -> None:
    '''Say hello.'''

app()
"""
OURS = "from ansatz.cli.main import main; main()"


def start(options: Options) -> list[Finding]:
    """``ansatz --help`` beside the help of an empty typer application, each a new process.

    Example:
        >>> from ansatz.bench.start import EMPTY
        >>> "typer.Typer" in EMPTY
        True
    """
    from ansatz.bench.race import race

    runs: dict[str, Callable[[], Any]] = {
        "ours": partial(_help, OURS),
        "empty typer application": partial(_help, EMPTY),
    }
    rounds = options.rounds or 15
    found = race(runs, rounds=rounds, seed=options.seed, measure=measured_child, tell=options.tell)
    limit = {"empty typer application": Bar(at_most=1.4)}
    return [Finding.of("start", found, limit)]


def measured_child(run: Callable[[], Any]) -> Time:
    """The time of the processes that ``run`` starts and waits for.

    Where the system does not count it, processor time is the time on the clock.

    Example:
        >>> import subprocess, sys
        >>> from ansatz.bench.start import measured_child
        >>> measured_child(lambda: subprocess.run([sys.executable, "-c", ""])).processor > 0
        True
    """
    used, began = _child_seconds(), time.perf_counter()
    run()
    wall = time.perf_counter() - began
    after = _child_seconds()
    return Time(wall if used is None or after is None else after - used, wall)


def _child_seconds() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _help(code: str) -> None:
    subprocess.run([sys.executable, "-c", code, "--help"], check=True, stdout=subprocess.DEVNULL)
