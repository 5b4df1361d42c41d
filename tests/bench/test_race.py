import statistics

import numpy as np
import pytest
import torch

from ansatz.bench.race import Race, Spread, Time, one_thread, race


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
    assert Race(times).ratio("theirs", "ours") == Spread(3.0, 3.0, 3.0)


def test_the_spread_is_that_of_numpys_quartiles():
    values = np.random.default_rng(0).gamma(2.0, size=11)
    found = Spread.of(values.tolist())
    assert found.median == statistics.median(values)
    np.testing.assert_allclose([found.lower, found.upper], np.quantile(values, [0.25, 0.75]))


def test_all_are_measured_on_one_thread_and_the_number_comes_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_a_failing_contestant_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        race({"a": lambda: 1 / 0}, rounds=1, seed=0)
