"""ansatz tune, as a user runs it."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

WORDS = ("--target", "y", "--likelihood", "normal", "--trials", "2", "--folds", "2")
FAST = ("--set", "epochs=2", "--space", "width=4..8", "--space", "depth=1", "--out", "m")


@pytest.fixture
def waves(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=150)
    frame = pd.DataFrame({"x": x, "y": np.sin(x) + 0.3 * rng.normal(size=150)})
    frame.to_csv(tmp_path / "waves.csv", index=False)
    return "waves.csv"


def test_a_search_prints_its_trials_and_a_verdict(command, waves, tmp_path):
    done = command("tune", waves, *WORDS, *FAST)
    assert done.status == 0, done.err
    assert "default" in done.out and "width" in done.out and "model: m" in done.out
    assert "trial 2 of 2: best so far" in done.err
    assert not (tmp_path / "m.tuning").exists()
    assert command("inspect", "m").status == 0
    assert command("tune", waves, *WORDS, *FAST).status == 2  # m is there
    again = command("tune", waves, *WORDS, *FAST, "--resume", "--json")
    assert "nothing to do" in json.loads(again.out)["notes"][-1]


def test_the_document_and_nothing_else(command, waves):
    done = command("tune", waves, *WORDS, *FAST, "--json", "--quiet")
    document = json.loads(done.out)
    assert done.err == "" and len(document["trials"]) == 3
    assert document["space"]["width"] == "4..8"


def test_an_interrupted_search_says_how_to_go_on(command, waves, monkeypatch):
    from ansatz.tuning.inner_folds import InnerFolds

    judge = InnerFolds.scores

    def scores(self, parameters, deadline=None):
        if parameters:
            raise KeyboardInterrupt
        return judge(self, parameters, deadline)

    monkeypatch.setattr(InnerFolds, "scores", scores)
    done = command("tune", waves, *WORDS, *FAST, "--quiet")
    assert done.status == 130
    assert done.err == "ansatz: interrupted. To go on: the same command with --resume.\n"
    monkeypatch.setattr(InnerFolds, "scores", judge)
    assert command("tune", waves, *WORDS, *FAST, "--quiet", "--resume").status == 0


def test_wrong_usage_is_one_line(command, waves, monkeypatch):
    assert command("tune", waves).status == 2
    done = command("tune", waves, "--target", "y", "--space", "wdth=1..2", "--out", "n")
    assert done.status == 2 and "unknown option 'wdth'" in done.err
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = command("tune", waves, *WORDS)
    assert done.status == 2 and "pip install 'ansatz-learn[tune]'" in done.err
    assert done.err.count("\n") == 1
