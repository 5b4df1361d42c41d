"""The quality suites on small stand-ins: the numbers are those of the model's own verbs."""

import numpy as np
import pandas as pd
import pytest

from ansatz.bench import tables
from ansatz.bench.finding import BenchOptions
from ansatz.data import Dataset
from ansatz.data import load as really_load


def table(rows=120, **options):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((rows, 3)), columns=list("abc"))
    frame["y"] = 10 + 3 * frame["a"] + random.standard_normal(rows)
    cut = rows * 3 // 4
    splits = ((np.arange(cut), np.arange(cut, rows)), (np.arange(rows - cut, rows), np.arange(30)))
    return Dataset("toy", frame, "y", "", "", "normal", splits=splits, **options)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("ansatz.data.load", lambda name: table())


def test_uci_runs_in_parts_and_goes_on(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "NLL", {"concrete": 2.0})
    first = tables.quality_uci(BenchOptions(splits=(0,), inference="point", folder=tmp_path))
    both = tables.quality_uci(BenchOptions(splits=(0, 1), inference="point", folder=tmp_path))
    lines = (tmp_path / "quality-uci.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert first[0].ours != both[0].ours and both[0].facts["splits"] == 2
    nll, coverage, seconds = both
    assert 1.2 < nll.ours < 2.5 and 0.6 < coverage.ours <= 1  # the noise has nll 1.42
    assert nll.peers == {"deep ensembles, published": 3.06} and seconds.ours > 0


def test_tables_are_compared_with_trees_and_the_linear_model(toy, monkeypatch):
    monkeypatch.setattr(tables, "TABLES", ("toy",))
    error, nll = tables.quality_tables(BenchOptions(splits=(0,), inference="point"))
    assert error.ratio[tables.TREES].median == pytest.approx(error.ours / error.peers[tables.TREES])
    assert nll.limit["ours"].at_most == nll.peers["linear"]


def test_rows_with_a_time_are_tested_on_the_latest():
    data = table()
    days = pd.date_range("2011-01-01", periods=len(data.frame)).astype(str)
    frame = data.frame.assign(dteday=days[::-1])
    train, test = tables.rows_of(Dataset("b", frame, "y", "", ""), 0)
    assert frame["dteday"].iloc[train].max() < frame["dteday"].iloc[test].min()


def test_survival_is_the_mean_over_seeds_with_the_paired_difference_to_cox():
    cox = {"c_index": 0.63, "uno_c": 0.65, "integrated_brier": 0.19}
    rows = [
        {"network": {**cox, "c_index": c}, "cox": cox, "seconds": 1.0, "commit": "abc"}
        for c in (0.64, 0.66)
    ]
    found = tables._survival_finding("metabric", 0.640, rows)
    assert found.ours == pytest.approx(0.65) and found.holds and found.peers == {"cox": 0.63}
    assert found.facts["difference to cox"]["mean"] == pytest.approx(0.02)
    assert found.facts["difference to cox"]["sd"] == pytest.approx(0.02 / 2**0.5)


@pytest.mark.slow
def test_survival_is_compared_with_our_own_cox_model(monkeypatch):
    random = np.random.default_rng(0)
    x = random.standard_normal((160, 2))
    time = random.exponential(np.exp(-x[:, 0]))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(time=time, event=1)
    data = Dataset("m", frame, ("time", "event"), "", "", splits=((range(120), range(120, 160)),))
    monkeypatch.setattr("ansatz.data.load", lambda name: data)
    monkeypatch.setattr(tables, "HARRELL", {"metabric": 0.6})
    (found,) = tables.quality_survival(BenchOptions(splits=(0,), inference="point"))
    difference = found.facts["difference to cox"]["mean"]
    assert found.ours - found.peers["cox"] == pytest.approx(difference) and found.ours > 0.6


def test_the_stand_ins_leave_the_real_ones_alone():
    assert really_load("iris").target == "species"
