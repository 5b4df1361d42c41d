import statistics

import numpy as np
import pytest
import torch

from ansatz.bench.race import Quartiles, Race, Time, limited_threads, race


def at_once(run):
    """Measures without collecting garbage first, which takes longer than what is tested."""
    run()
    return Time(1.0, 1.0)


def test_everyone_runs_once_to_warm_up_and_then_once_per_round():
    calls = []
    found = race(
        {name: lambda n=name: calls.append(n) for name in "abc"},
        rounds=4,
        seed=0,
        measure=at_once,
    )
    assert calls[:3] == list("abc")
    rounds = [calls[k : k + 3] for k in range(3, len(calls), 3)]
    assert [sorted(each) for each in rounds] == [list("abc")] * 4
    assert all(len(times) == 4 for times in found.times.values())


def test_the_order_within_a_round_is_shuffled_and_repeats_with_the_seed():
    def order(seed):
        calls = []
        runs = {n: lambda n=n: calls.append(n) for n in "abcd"}
        race(runs, rounds=6, seed=seed, measure=at_once)
        return calls[4:]

    assert order(1) == order(1) != order(2)
    assert len({tuple(order(1)[k : k + 4]) for k in range(0, 24, 4)}) > 1


def test_a_slow_round_moves_no_ratio():
    slow = [1.0, 1.0, 50.0, 1.0]  # what else the machine did
    times = {
        "ours": [Time(2 * s, 2 * s) for s in slow],
        "theirs": [Time(6 * s, 6 * s) for s in slow],
    }
    assert Race(times).ratio("theirs", "ours") == Quartiles(3.0, 3.0, 3.0)


def test_the_spread_is_that_of_numpys_quartiles():
    values = np.random.default_rng(0).gamma(2.0, size=11)
    found = Quartiles.of(values.tolist())
    assert found.median == statistics.median(values)
    np.testing.assert_allclose([found.lower, found.upper], np.quantile(values, [0.25, 0.75]))


@pytest.mark.parametrize("threads", [1, 2])
def test_all_are_measured_on_the_same_threads_and_their_number_comes_back(threads):
    before = torch.get_num_threads()
    runs = {name: torch.get_num_threads for name in "ab"}
    found = race(runs, rounds=1, seed=0, measure=at_once, threads=threads)
    assert found.results == {"a": threads, "b": threads} and found.threads == threads
    assert torch.get_num_threads() == before
    with limited_threads():
        assert torch.get_num_threads() == 1


def test_a_part_of_a_race_keeps_its_rounds():
    times = {name: [Time(1.0, 1.0), Time(2.0, k)] for k, name in enumerate("abc", 1)}
    part = Race(times, {"a": 5, "b": 6}, threads=2).among("ac")
    assert list(part.times) == ["a", "c"] and part.results == {"a": 5} and part.threads == 2
    assert part.ratio("c", "a", "wall").upper == Race(times).ratio("c", "a", "wall").upper


def test_a_failing_contestant_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        race({"a": lambda: 1 / 0}, rounds=1, seed=0)
