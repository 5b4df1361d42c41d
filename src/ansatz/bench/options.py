"""What a run of the benchmarks is asked for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ansatz.errors import UsageError


def _silent(message: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Options:
    """The same for every suite; each takes what concerns it.

    Args:
        rounds: how often contestants are measured; None for the suite's own number.
        seed: of data, weights and order.
        splits: which splits or seeds of the quality suites; None for all.
        inference: of the quality suites of tables.
        only: which cases or data sets of a suite; None for all.
        examples: images of the speed suite; None for its own number.
        threads: of the speed suite of images; None for torch's own number.
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
    only: tuple[str, ...] | None = None
    examples: int | None = None
    threads: int | None = None
    folder: Path | None = None
    fresh: bool = False
    tell: Callable[[str], None] = _silent

    def pick(self, names: Iterable[str]) -> list[str]:
        """Those of a suite's cases that are asked for."""
        known = list(names)
        for name in self.only or ():
            if name not in known:
                raise UsageError(f"no case is called '{name}'. Known: {', '.join(known)}.")
        return [name for name in known if self.only is None or name in self.only]
