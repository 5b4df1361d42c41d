"""Measures contestants in turns, in random order, on the same number of threads."""

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

Clock = Literal["processor", "wall"]


class Time(NamedTuple):
    """The time of one run, in seconds."""

    processor: float  # of all threads of this process
    wall: float  # elapsed, with the load of the machine


class Quartiles(NamedTuple):
    """The median over rounds and its quartiles."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quartiles":
        """Computes the three quartiles; of one value, that value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)


class Race:
    """The times of all contestants by round.

    Ratios are taken within a round, where both met the same load, and summarised by median and
    quartiles.

    Args:
        times: contestant -> its time in each round.
        results: contestant -> its return value in the warm-up.
        threads: number of threads.
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
        """Selects some contestants."""
        times = {name: self.times[name] for name in names}
        results = {name: self.results[name] for name in times if name in self.results}
        return Race(times, results, threads=self.threads)

    def seconds(self, name: str, clock: Clock = "processor") -> Quartiles:
        """Summarises the times of a contestant."""
        return Quartiles.of([getattr(time, clock) for time in self.times[name]])

    def ratio(self, above: str, below: str, clock: Clock = "processor") -> Quartiles:
        """Summarises the ratio of two times."""
        pairs = zip(self.times[above], self.times[below], strict=True)
        return Quartiles.of([getattr(a, clock) / getattr(b, clock) for a, b in pairs])


def race(
    contestants: Mapping[str, Callable[[], Any]],
    *,
    rounds: int,
    seed: int,
    measure: Callable[[Callable[[], Any]], Time] | None = None,
    notify: Callable[[str], None] | None = None,
    threads: int = 1,
) -> Race:
    """Runs every contestant once to warm up, then ``rounds`` times in random order.

    Args:
        contestants: name -> function.
        rounds: number of measurements.
        seed: of the order within a round.
        measure: times one run; by default the clocks of this process.
        notify: called with messages about the progress.
        threads: number of threads; beyond one use wall time, since waiting threads use processor
            time.
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
    """Times one call, after a garbage collection."""
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
