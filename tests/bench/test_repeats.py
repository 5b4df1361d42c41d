"""What a quality suite does again, and what it does not."""

import json

import pytest

from ansatz.bench.finding import BenchOptions
from ansatz.bench.record import repeated


class Fits:
    """Counts what it is asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, name, number):
        self.asked.append((name, number))
        return {"nll": float(len(self.asked))}


def run(fits, folder, *, names=("a", "b"), **options):
    return dict(repeated("suite", names, fits, BenchOptions(folder=folder, **options), times=2))


def test_every_set_and_seed_once_in_turn(tmp_path):
    fits = Fits()
    found = run(fits, tmp_path)
    assert fits.asked == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert [row["nll"] for row in found["b"]] == [3.0, 4.0]
    kept = [json.loads(line) for line in (tmp_path / "suite.jsonl").read_text().splitlines()]
    assert [(row["set"], row["seed"]) for row in kept] == fits.asked


def test_what_is_finished_is_not_done_again(tmp_path):
    fits = Fits()
    run(fits, tmp_path, splits=(1,))
    assert run(fits, tmp_path) == run(fits, tmp_path)
    assert sorted(fits.asked) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_a_killed_run_keeps_what_it_had_finished(tmp_path):
    def killed(name, number):
        if name == "b":
            raise KeyboardInterrupt
        return {}

    with pytest.raises(KeyboardInterrupt):
        run(killed, tmp_path)
    fits = Fits()
    run(fits, tmp_path)
    assert fits.asked == [("b", 0), ("b", 1)]


def test_fresh_does_again_what_is_asked_for_and_nothing_else(tmp_path):
    fits = Fits()
    run(fits, tmp_path)
    run(fits, tmp_path, names=("b",), splits=(1,), fresh=True)
    assert fits.asked[4:] == [("b", 1)]
    assert [row["nll"] for row in run(fits, tmp_path)["a"]] == [1.0, 2.0]


def test_rows_of_another_kind_are_others(tmp_path):
    fits, options = Fits(), BenchOptions(folder=tmp_path)
    for kind in ("point", "ensemble", "point"):
        list(repeated("s", ["a"], fits, options, times=1, by="split", inference=kind))
    assert len(fits.asked) == 2
