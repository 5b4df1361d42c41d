"""One run of one claim, here or in a worker process."""

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ansatz.claims.claim import Scale
from ansatz.claims.outcome import Outcome
from ansatz.claims.picture import render
from ansatz.claims.registry import get, run
from ansatz.training.machine import using_threads


class Settings(NamedTuple):
    """Options of a run.

    Args:
        scale: ``"quick"`` or ``"full"``.
        seed: of everything random.
        parameters: values other than those of the scale.
        form: of the figure, ``"png"``, ``"svg"`` or ``"pdf"``; None draws none.
    """

    scale: Scale = "quick"
    seed: int = 0
    parameters: Mapping[str, Any] = {}
    form: str | None = None


def attempt(name: str, settings: Settings) -> Outcome:
    """Runs a claim on one thread; an error becomes an outcome too."""
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
        words = " ".join(f"{type(error).__name__}: {error}".split())
        trace = "".join(traceback.format_exception(error))
        return Outcome(name, time.perf_counter() - start, None, words, trace=trace)
    return Outcome(name, seconds, replace(finding, data={}), figure=drawn)


def serve() -> None:
    """Runs the claims whose names come in by standard input, until it closes.

    The first line has the settings; every line is JSON, and so is every answer.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a claim's own prints are not answers
    settings = Settings(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        outcome = attempt(json.loads(line), settings)
        try:
            answers.write(json.dumps(outcome.to_message()) + "\n")
            answers.flush()
        except BrokenPipeError:  # nobody listens any more
            os._exit(0)
