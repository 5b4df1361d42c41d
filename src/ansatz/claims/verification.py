"""Runs claims, one after the other here or in parallel processes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from ansatz.claims.attempt import Settings, attempt
from ansatz.claims.claim import Scale
from ansatz.claims.crew import run_in_processes
from ansatz.claims.outcome import Outcome
from ansatz.claims.registry import get, names
from ansatz.errors import UsageError


def verify(
    *chosen: str,
    scale: Scale = "quick",
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    figures: str | None = None,
    workers: int = 1,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Runs claims; one that breaks does not stop the others.

    Args:
        chosen: names of claims; all by default.
        scale: ``"quick"`` or ``"full"``.
        seed: of each claim's random numbers.
        parameters: values other than those of the scale; every chosen claim must know them.
        figures: ``"png"``, ``"svg"`` or ``"pdf"`` draws the figure of each claim that has one.
        workers: number of processes, of one thread each; 1 runs the claims here.
        on_outcome: called with each outcome as it comes.

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
        if settings.parameters or name not in names():  # a broken file becomes an outcome
            _check_parameters(name, settings)
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    count = min(workers, len(wanted))
    found = {}
    running = _here(wanted, settings) if count < 2 else run_in_processes(wanted, settings, count)
    with closing(running):  # an interrupt anywhere ends the processes
        for outcome in running:
            found[outcome.id] = outcome
            on_outcome(outcome)
    return [found[name] for name in wanted]


def _check_parameters(name: str, settings: Settings) -> None:
    known = get(name).parameters(settings.scale)
    for parameter in settings.parameters:
        if parameter not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"claim '{name}' has no parameter '{parameter}'. Known: {listed}.")


def _here(wanted: Sequence[str], settings: Settings) -> Generator[Outcome, None, None]:
    for name in wanted:
        yield attempt(name, settings)
