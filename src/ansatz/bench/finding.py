"""Holds one measured claim: our number, those of the peers, and the bars."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ansatz.bench.race import Clock, Quartiles, Race
from ansatz.errors import UsageError


def _silent(message: str) -> None:
    """Ignores a message."""


@dataclass(frozen=True)
class BenchOptions:
    """The options of all suites."""

    rounds: int | None = None  # number of measurements; None for the default of the suite
    seed: int = 0  # of data, weights and order
    splits: tuple[int, ...] | None = None  # splits or seeds of the quality suites; None for all
    inference: str = "ensemble"  # of the quality suites of tables
    only: tuple[str, ...] | None = None  # cases or data sets of a suite; None for all
    examples: int | None = None  # number of images of the speed suite; None for its default
    threads: int | None = None  # of the speed suite of images; None for the default of torch
    folder: Path | None = None  # of finished rows, so that a run can resume; None for none
    fresh: bool = False  # compute finished rows again
    notify: Callable[[str], None] = _silent  # called with messages about the progress

    def pick(self, names: Iterable[str]) -> list[str]:
        """Selects the cases of a suite."""
        known = list(names)
        for name in self.only or ():
            if name not in known:
                raise UsageError(f"no case is called '{name}'. Known: {', '.join(known)}.")
        return [name for name in known if self.only is None or name in self.only]


class Bound(NamedTuple):
    """A lower or upper bound of a number, or both."""

    at_least: float | None = None  # the smallest number that passes; None for any
    at_most: float | None = None  # the largest number that passes; None for any

    def met(self, value: float | None) -> bool:
        """Tests whether ``value`` passes; None and nan do not."""
        if value is None or math.isnan(value):
            return False
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)

    def to_dict(self) -> dict[str, float]:
        """Returns the bounds that are set."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else "any"


@dataclass
class Finding:
    """The result of a case.

    A ratio under a bar *at least* is their number over ours (our speedup); under a bar *at most* it
    is ours over theirs. A bar called ``"ours"`` bounds our number itself.
    """

    name: str  # the case
    unit: str  # of ``ours`` and ``peers``
    ours: float | None = None  # our number; None if it could not be measured
    peers: dict[str, float] = field(default_factory=dict)  # the others' numbers
    ratio: dict[str, Quartiles] = field(default_factory=dict)  # peer -> quartiles over rounds
    limit: dict[str, Bound] = field(default_factory=dict)  # peer, or ``"ours"`` -> what must hold
    missing: list[str] = field(default_factory=list)  # peers that are not installed
    facts: dict[str, Any] = field(default_factory=dict)  # further entries of the record

    @classmethod
    def of(
        cls,
        name: str,
        race: Race,
        limit: dict[str, Bound],
        *,
        us: str = "ours",
        clock: Clock = "processor",
        missing: list[str] | None = None,
        facts: dict[str, Any] | None = None,
    ) -> "Finding":
        """Makes a finding of a race against ``us``; bars of peers that did not run are dropped."""
        others = [other for other in race.times if other != us]
        ratios = {other: _ratio(race, other, us, limit.get(other), clock) for other in others}
        found = cls(
            name,
            f"seconds of {clock} time",
            race.seconds(us, clock).median,
            {other: race.seconds(other, clock).median for other in others},
            ratios,
            {peer: bar for peer, bar in limit.items() if peer in ratios},
            list(missing or []),
            dict(facts or {}),
        )
        second: Clock = "wall" if clock == "processor" else "processor"
        found.facts[f"{second} ratio"] = {
            other: round(_ratio(race, other, us, limit.get(other), second).median, 3)
            for other in others
        }
        found.facts["rounds"] = len(race.times[us])
        found.facts["threads"] = race.threads
        return found

    @property
    def met(self) -> dict[str, bool]:
        """Whether each bar is met by the median."""
        return {name: bar.met(self._value(name)) for name, bar in self.limit.items()}

    @property
    def holds(self) -> bool:
        """Whether every bar is met."""
        return all(self.met.values())

    def _value(self, name: str) -> float | None:
        if name == "ours":
            return self.ours
        return self.ratio[name].median if name in self.ratio else None

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry of ``ansatz bench --json``."""
        return {
            "name": self.name,
            "ours": self.ours,
            "peers": self.peers,
            "limit": {name: bar.to_dict() for name, bar in self.limit.items()},
            "unit": self.unit,
            "ratio": {name: ratio.median for name, ratio in self.ratio.items()},
            "spread": {name: [ratio.lower, ratio.upper] for name, ratio in self.ratio.items()},
            "met": self.met,
            "holds": self.holds,
            "missing": self.missing,
            **self.facts,
        }


def _ratio(race: Race, other: str, us: str, bar: Bound | None, clock: Clock) -> Quartiles:
    shorter = bar is not None and bar.at_most is not None
    return race.ratio(us, other, clock) if shorter else race.ratio(other, us, clock)
