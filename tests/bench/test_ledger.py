import json

import pytest

from ansatz.bench.record import Ledger
from ansatz.errors import DataError


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
