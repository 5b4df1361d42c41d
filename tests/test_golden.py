"""Small fits of every kind give the numbers on record (python benchmarks/golden.py --record)."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RECORD = json.loads((BENCHMARKS / "results" / "golden.json").read_text(encoding="utf-8"))["results"]


@pytest.fixture(scope="module")
def golden():
    sys.path.append(str(BENCHMARKS))
    try:
        import golden
    finally:
        sys.path.remove(str(BENCHMARKS))
    return golden


def test_every_case_is_on_record(golden):
    assert sorted(golden.CASES) == sorted(RECORD)


@pytest.mark.parametrize("name", RECORD)
def test_the_numbers_are_those_on_record(golden, name):
    found, wanted = golden.run_case(name), RECORD[name]
    assert (found["likelihood"], found["rows"]) == (wanted["likelihood"], wanted["rows"])
    # Not the weights: between processors the last bits differ, in float32 by some 1e-7 of a number
    # of size 1.
    assert found["numbers"] == {
        key: value if isinstance(value, str | None) else pytest.approx(value, rel=1e-6, abs=1e-6)
        for key, value in wanted["numbers"].items()
    }
