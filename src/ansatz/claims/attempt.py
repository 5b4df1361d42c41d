"""One run of one claim: what it finds, or what it breaks on."""

import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ansatz.claims.claim import Scale
from ansatz.claims.outcome import Outcome
from ansatz.claims.picture import render
from ansatz.claims.registry import get, run
from ansatz.training.device import using_threads


class Settings(NamedTuple):
    """How claims are run.

    Args:
        scale: ``"quick"`` or ``"full"``.
        seed: of everything random.
        parameters: values other than those of the scale.
        form: of the figure, as :func:`ansatz.claims.render` has it; None draws none.

    Example:
        >>> from ansatz.claims.attempt import Settings
        >>> Settings(seed=3).scale
        'quick'
    """

    scale: Scale = "quick"
    seed: int = 0
    parameters: Mapping[str, Any] = {}
    form: str | None = None


def attempt(name: str, settings: Settings) -> Outcome:
    """Runs a claim on one thread; an error is an outcome too.

    Example:
        >>> from ansatz.claims.attempt import Settings, attempt
        >>> attempt("xor", Settings()).verdict
        'holds'
    """
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
