"""Records of benchmarks that were run in parts: what is computed again, and what is not."""

import json

import pytest

from ansatz.bench.finding import BenchOptions
from ansatz.bench.record import Ledger, among_earlier, repeated
from ansatz.errors import DataError

NOW = {"commit": "b2", "date": "today", "load": 0.1}


def test_cases_that_were_not_measured_stay_and_all_are_dated(tmp_path):
    path = tmp_path / "bench-a.json"
    earlier = {"commit": "a1", "date": "then", "results": [{"name": "x"}, {"name": "y", "ours": 1}]}
    path.write_text(json.dumps(earlier))
    assert among_earlier(path, [{"name": "y", "ours": 2}, {"name": "z"}], NOW) == [
        {"name": "x", "commit": "a1", "date": "then"},
        {"name": "y", "ours": 2, "commit": "b2", "date": "today"},
        {"name": "z", "commit": "b2", "date": "today"},
    ]


def test_the_date_of_a_case_is_its_own_after_a_third_run(tmp_path):
    path = tmp_path / "bench-a.json"
    for number, name in enumerate("xyx"):
        now = {"commit": f"c{number}", "date": f"day {number}"}
        rows = among_earlier(path, [{"name": name}], now)
        path.write_text(json.dumps({**now, "results": rows}))
    assert [(row["name"], row["date"]) for row in rows] == [("x", "day 2"), ("y", "day 1")]


def count(calls):
    return lambda: calls.append(1) or {"nll": len(calls)}


def test_a_finished_part_is_not_done_again_by_the_next_run(tmp_path):
    calls, path = [], tmp_path / "a.jsonl"
    for _ in range(2):
        ledger = Ledger(path)
        for split in range(3):
            ledger.part({"split": split}, count(calls))
    assert len(calls) == 3
    assert [json.loads(line)["split"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_a_line_cut_by_a_kill_is_done_again(tmp_path):
    calls, path = [], tmp_path / "a.jsonl"
    ledger = Ledger(path)
    for split in range(2):
        ledger.part({"split": split}, count(calls))
    path.write_text(path.read_text()[:-9])
    assert Ledger(path).part({"split": 1}, count(calls))["nll"] == 3
    assert len(path.read_text().splitlines()) == 2


def test_a_part_can_be_forgotten_while_others_stay(tmp_path):
    calls, path = [], tmp_path / "a.jsonl"
    ledger = Ledger(path)
    for split in range(3):
        ledger.part({"set": "a", "split": split}, count(calls))
    ledger.forget([{"set": "a", "split": 1}, {"set": "b", "split": 2}])
    assert [json.loads(line)["split"] for line in path.read_text().splitlines()] == [0, 2]
    ledger.part({"set": "a", "split": 1}, count(calls))
    assert len(calls) == 4 and len(Ledger(path).rows) == 3


def test_another_inference_is_another_part(tmp_path):
    calls, ledger = [], Ledger(tmp_path / "a.jsonl")
    ledger.part({"split": 0, "inference": "point"}, count(calls))
    ledger.part({"split": 0, "inference": "ensemble"}, count(calls))
    assert len(calls) == 2


def test_a_spoiled_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"split": 0}\n{oops\n{"split": 2}\n')
    with pytest.raises(DataError, match=r"line 2: not JSON.*Delete"):
        Ledger(path)


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
