"""The quality suite of texts on a small stand-in."""

import json

import pandas as pd
import pytest

from ansatz.bench import text_quality
from ansatz.bench.finding import BenchOptions
from ansatz.bench.text_quality import Case
from ansatz.data import Dataset


@pytest.fixture
def reviews(monkeypatch):
    """Texts whose last word is their label, each of them twice."""
    texts = [f"film {k} was {('bad', 'fine')[k % 2]}" for k in range(60)] * 2
    frame = pd.DataFrame({"label": ["neg", "pos"] * 60, "text": texts})
    monkeypatch.setattr("ansatz.data.load", lambda name: Dataset(name, frame, "label", "", ""))
    toy = Case("toy", {"steps": 60}, 0.9, 2)
    monkeypatch.setattr(
        text_quality, "CASES", {"toy": toy, "toy-frozen": toy._replace(pretrained=True)}
    )
    monkeypatch.setattr(text_quality, "WEIGHTS", "no_such_package")


def test_a_tenth_evaluates_and_a_stopped_run_goes_on(reviews, tmp_path):
    options = {"folder": tmp_path, "only": ("toy",)}
    (first,) = text_quality.quality_text(BenchOptions(splits=(0,), **options))
    assert first.holds and first.ours > 0.9 and first.facts["standard_error"] is None
    (both,) = text_quality.quality_text(BenchOptions(**options))
    rows = [json.loads(line) for line in (tmp_path / "quality-text.jsonl").read_text().splitlines()]
    assert [row["seed"] for row in rows] == [0, 1] and both.facts["accuracies"][0] == first.ours


def test_weights_that_are_not_installed_are_named(reviews):
    (found,) = text_quality.quality_text(BenchOptions(only=("toy-frozen",)))
    assert found.missing == ["no-such-package"] and found.ours is None
