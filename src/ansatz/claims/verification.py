"""Claims put to the test: one after the other here, or side by side in processes of their own."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from ansatz.claims.attempt import Settings, attempt
from ansatz.claims.claim import Scale
from ansatz.claims.crew import beside
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
        if settings.parameters or name not in names():  # a file that is broken is an outcome
            _check_parameters(name, settings)
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    count = min(workers, len(wanted))
    found = {}
    running = _here(wanted, settings) if count < 2 else beside(wanted, settings, count)
    with closing(running):  # an interrupt anywhere ends the processes
        for outcome in running:
            found[outcome.id] = outcome
            tell(outcome)
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
