"""Contestants measured side by side: in turns, in a new order each round, on the same threads."""

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

Clock = Literal["processor", "wall"]


class Time(NamedTuple):
    """What one run took, in seconds."""

    processor: float  # of all threads of this process
    wall: float  # on the clock, with whatever else the machine did meanwhile


class Spread(NamedTuple):
    """The median over rounds, and the quartiles around it."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The three quartiles; of one value, three times that value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)


class Race:
    """The times of all contestants, round by round.

    A ratio is taken within a round, where the machine was the same for both, and summarised over
    rounds by its median and quartiles: a slow minute moves both sides of a round and no ratio.

    Args:
        times: contestant -> its time in each round.
        results: contestant -> what it returned in the round that warms up.
        threads: that each was allowed.
    """

    def __init__(
        self,
        times: Mapping[str, Sequence[Time]],
        results: Mapping[str, Any] | None = None,
        *,
        threads: int = 1,
    ) -> None:
        self.times, self.results, self.threads = times, results or {}, threads

    def among(self, names: Iterable[str]) -> "Race":
        """The same race, of some contestants."""
        times = {name: self.times[name] for name in names}
        return Race(
            times, {n: r for n, r in self.results.items() if n in times}, threads=self.threads
        )

    def seconds(self, name: str, clock: Clock = "processor") -> Spread:
        """What a contestant took."""
        return Spread.of([getattr(time, clock) for time in self.times[name]])

    def ratio(self, above: str, below: str, clock: Clock = "processor") -> Spread:
        """The time of ``above`` in units of that of ``below``."""
        pairs = zip(self.times[above], self.times[below], strict=True)
        return Spread.of([getattr(a, clock) / getattr(b, clock) for a, b in pairs])


def race(
    contestants: Mapping[str, Callable[[], Any]],
    *,
    rounds: int,
    seed: int,
    measure: Callable[[Callable[[], Any]], Time] | None = None,
    notify: Callable[[str], None] | None = None,
    threads: int = 1,
) -> Race:
    """Runs everyone once to warm up, then ``rounds`` times in turns, shuffled by ``seed``.

    Args:
        contestants: name -> what it does.
        rounds: how often each is measured.
        seed: of the order within a round.
        measure: how one run is timed; by default this process's clocks.
        notify: called with sentences about the progress.
        threads: that each may use; beyond one the clock on the wall is the one to evaluate by,
            since threads that wait for each other burn processor time.
    """
    order, shuffled = list(contestants), random.Random(seed)
    times: dict[str, list[Time]] = {name: [] for name in contestants}
    with limited_threads(threads):
        results = {name: run() for name, run in contestants.items()}
        for number in range(rounds):
            if notify:
                notify(f"round {number + 1} of {rounds}")
            shuffled.shuffle(order)
            for name in order:
                times[name].append((measure or measured)(contestants[name]))
    return Race(times, results, threads=threads)


def measured(run: Callable[[], Any]) -> Time:
    """The time of one call; garbage of whoever ran before is collected first."""
    gc.collect()
    processor, wall = time.process_time(), time.perf_counter()
    run()
    return Time(time.process_time() - processor, time.perf_counter() - wall)


@contextmanager
def limited_threads(count: int = 1) -> Iterator[None]:
    """Limits the threads of torch and of every library that threadpoolctl knows."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)
