"""Proposals are functions of the past alone, stay in the space, and find the better half of it."""

import sys

import numpy as np
import pytest

from ansatz.errors import MissingExtraError
from ansatz.tuning.journal import Trial
from ansatz.tuning.search import STARTUP, next_point
from ansatz.tuning.space import parse_space

SPACE = parse_space(
    ["dropout=0..0.5", "width=16..256", "activation=relu,tanh", "depth=2", "rate=1e-3..1e-1"]
)


def run(score, trials, seed=0, past=()):
    done = list(past)
    for number in range(len(done), trials):
        point = next_point(SPACE, done, number, seed)
        done.append(Trial(number=number, parameters=point, scores=[score(point)]))
    return done


def score(point):
    """Best at dropout 0.1 and rate 0.01, with tanh."""
    near = -abs(point["dropout"] - 0.1) - abs(np.log10(point["rate"]) + 2)
    return near + (point["activation"] == "tanh")


def test_points_lie_in_the_space():
    for trial in run(score, 15):
        for name, dimension in SPACE.items():
            assert dimension.holds(trial.parameters[name]), name
        assert trial.parameters["depth"] == 2


def test_a_search_goes_on_as_if_it_had_not_stopped():
    whole = run(score, 16)
    assert run(score, 16, past=whole[:13]) == whole
    assert run(score, 16, past=whole[:4]) == whole
    assert run(score, 16, seed=1) != whole


def test_the_search_learns_where_it_is_better():
    trials = run(score, 45)
    first = [trial.score for trial in trials[:STARTUP]]
    last = [trial.score for trial in trials[-15:]]
    assert np.mean(last) > np.mean(first) + 2 * np.std(first) / np.sqrt(len(first))


def test_failed_trials_teach_nothing_and_break_nothing():
    past = [Trial(number=0, parameters={}, state="failed", reason="nan")]
    assert set(next_point(SPACE, past, 1, seed=0)) == set(SPACE)


def test_a_missing_optuna_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ansatz-learn\[tune\]'"):
        next_point(SPACE, [], 0, seed=0)
