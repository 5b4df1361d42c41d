"""What a run of the benchmarks is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _silent(message: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Options:
    """The same for every suite; each takes what concerns it.

    Args:
        rounds: how often contestants are measured; None for the suite's own number.
        seed: of data, weights and order.
        splits: which splits or seeds of the quality suites; None for all.
        inference: of the quality suites.
        folder: where finished parts are kept, so that a stopped run goes on; None for nowhere.
        fresh: begin anew, although there are finished parts.
        tell: is told what is going on.

    Example:
        >>> from ansatz.bench import Options
        >>> Options(rounds=3).seed
        0
    """

    rounds: int | None = None
    seed: int = 0
    splits: tuple[int, ...] | None = None
    inference: str = "ensemble"
    folder: Path | None = None
    fresh: bool = False
    tell: Callable[[str], None] = _silent
