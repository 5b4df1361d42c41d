"""Damaged files of every format are refused in one line (python benchmarks/fuzz.py for more)."""

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RECORD = json.loads((BENCHMARKS / "results" / "fuzz.json").read_text(encoding="utf-8"))["results"]
SLOW = "export and report"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def fuzz():
    sys.path.append(str(BENCHMARKS))
    try:
        import fuzz
    finally:
        sys.path.remove(str(BENCHMARKS))
    return fuzz


def test_the_record_counts_each_input_once_and_nothing_escaped(fuzz):
    assert {"all"} < set(RECORD) <= {"all", *fuzz.FORMATS}
    for counts in RECORD.values():
        assert counts["inputs"] == sum(counts[name] for name in fuzz.OUTCOMES)
        assert not any(counts[name] for name in ("escaped", "crash", "hang", "stray", "outside"))


@pytest.mark.filterwarnings("default")  # the command shows them, each on a line
@pytest.mark.parametrize("count", [90, pytest.param(300, marks=pytest.mark.slow)])
def test_a_sample_of_damaged_files_is_accepted_or_refused_in_one_line(
    fuzz, tmp_path, monkeypatch, count
):
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    corpus = fuzz.prepare(tmp_path / "fuzz")
    todo = fuzz.jobs(count, [form for form in fuzz.FORMATS if form != SLOW])
    rows = fuzz.run_all(todo, corpus, tmp_path / "fuzz", seed=1, processes=1)
    bad = [row for row in rows if row["outcome"] in fuzz.BAD]
    assert not bad, bad[0]
    counts = Counter(row["outcome"] for row in rows)
    assert len(rows) >= 0.96 * count
    assert counts["accepted"] > count / 10 and counts["refused"] > count / 3


def escape(arguments):
    raise RuntimeError("nobody caught this")


def stray(arguments):
    os.write(2, b"TIFFReadDirectory: Failed\n")
    return 3


def outside(arguments):
    Path("../elsewhere").touch()
    return 0


def unnamed(arguments):
    print("ansatz: the header is damaged.", file=sys.stderr)
    return 3


def refused(arguments):
    print("ansatz: note: read as text.\nansatz: a.csv: the header is damaged.", file=sys.stderr)
    return 3


@pytest.mark.parametrize(
    "command, outcome",
    [
        (escape, "escaped"),
        (stray, "stray"),
        (outside, "outside"),
        (unnamed, "unnamed"),
        (refused, "refused"),
        (lambda arguments: 0, "accepted"),
        (lambda arguments: 1, "unexpected"),
        (lambda arguments: 3, "several lines"),
        (lambda arguments: os.kill(os.getpid(), signal.SIGKILL), "crash"),
        (lambda arguments: time.sleep(60), "hang"),
    ],
)
def test_each_outcome_is_seen(fuzz, tmp_path, monkeypatch, command, outcome):
    import fuzz_child

    monkeypatch.setattr("ansatz.cli.main.run", command)
    monkeypatch.setattr(fuzz_child, "_WAITED", 1)
    work = tmp_path / "work"
    work.mkdir()
    (row,) = fuzz_child.run_forked(
        1,
        lambda number: {"outcome": fuzz_child.run_here([], work, ("a.csv",)).outcome},
        lambda number, outcome: {"outcome": outcome},
    )
    assert row["outcome"] == outcome
