"""ansatz tune, as a user runs it."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ansatz
from ansatz.fitting.provenance import provenance_of

WORDS = ("--target", "y", "--likelihood", "normal", "--searches", "2", "--folds", "2")
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
    assert "trials: 2 of 2; best so far" in done.err
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

    evaluate = InnerFolds.scores

    def scores(self, parameters, deadline=None):
        if parameters:
            raise KeyboardInterrupt
        return evaluate(self, parameters, deadline)

    monkeypatch.setattr(InnerFolds, "scores", scores)
    done = command("tune", waves, *WORDS, *FAST, "--quiet")
    assert done.status == 130
    assert done.err == "ansatz: interrupted. To go on: the same command with --resume.\n"
    monkeypatch.setattr(InnerFolds, "scores", evaluate)
    assert command("tune", waves, *WORDS, *FAST, "--quiet", "--resume").status == 0


def test_wrong_usage_is_one_line(command, waves, monkeypatch):
    assert command("tune", waves).status == 2
    done = command("tune", waves, "--target", "y", "--space", "wdth=1..2", "--out", "n")
    assert done.status == 2 and "unknown option 'wdth'" in done.err
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = command("tune", waves, *WORDS)
    assert done.status == 2 and "pip install 'ansatz-learn[tune]'" in done.err
    assert done.err.count("\n") == 1


@pytest.fixture
def stripes(tmp_path):
    """A folder of images by class, a table of their paths, and masks of their bright cells."""
    rng, rows = np.random.default_rng(0), []
    for k in range(30):
        kind = ("dark", "light")[k % 2]
        image = rng.integers(0, 100, (8, 8)) + 80 * (k % 2)
        files = f"stripes/{kind}/{k}.png", f"masks/{k}.png"
        for file, values in zip(files, (image, 255 * (image > 90)), strict=True):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values.astype(np.uint8)).save(tmp_path / file)
        rows.append({"file": files[0], "cells": files[1], "count": rng.poisson(2)})
    pd.DataFrame(rows).to_csv(tmp_path / "counts.csv", index=False)
    return "stripes"


IMAGES = ("--network", "linear", "--set", "epochs=2", "--searches", "1", "--folds", "2", "--quiet")


def test_a_folder_of_images_is_searched_like_a_table(command, stripes):
    rate = ("--space", "learning_rate=0.01..0.03")
    done = command("tune", stripes, *IMAGES, *rate, "--out", "m", "--json")
    document = json.loads(done.out)
    assert done.status == 0 and done.err == "" and document["best"]["number"] == 1
    assert document["fit"]["structure"] == "grid" and document["comparison"]["a"] == "tuned"
    assert document["space"]["augment"] == "True, False"
    again = command("tune", stripes, *IMAGES, *rate, "--out", "m", "--resume")
    assert again.status == 0 and "nothing to do" in again.err


def test_a_table_of_paths_and_the_options_of_images_reach_the_fits(command, stripes):
    words = ("--target", "count", "--image", "file", "--size", "10", "--channels", "1", "--stream")
    done = command("tune", "counts.csv", *IMAGES, *words, "--likelihood", "poisson", "--out", "m")
    assert done.status == 0, done.err
    assert provenance_of(ansatz.load("m").model_).asked.reader() == {
        "image": "file",
        "size": [10],
        "channels": 1,
    }


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ("counts.csv", "--masks", "cells", "--likelihood", "dice"),
            "a loss, not a likelihood of masks",
        ),
        (("stripes", "--space", "network=unet,lenet5"), "unet labels every pixel"),
        (("stripes", "--delimiter", ";"), "'delimiter' is an option of tables"),
        (("stripes", "--x", "vector"), "leave out --x vector"),
        (("stripes", "--pretrained", "no.pth"), "no such file of weights"),
        (("stripes", "--freeze", "front"), "freeze must be backbone"),
        (("counts.csv",), "--target COLUMN is missing"),
        (("counts.csv", "--target", "count", "--x", "vector", "--size", "8"), "option of images"),
        (("counts.csv", "--target", "count", "--x", "vector", "--stream"), "a table at once"),
    ],
)
def test_what_images_and_tables_do_not_take_is_one_line(command, stripes, words, said):
    done = command("tune", *words, "--out", "m", "--quiet")
    assert done.status in (2, 4) and said in done.err and done.err.count("\n") == 1


def test_a_search_without_trials_is_not_counted():
    from ansatz.tuning.journal import Trial
    from ansatz.tuning.tune import _verdict

    best = Trial(number=0, parameters={})
    assert _verdict(best, 0, None).startswith("No trial was made")
    assert _verdict(best, 1, None).startswith("The one trial did not beat")
    assert _verdict(best, 3, None).startswith("None of 3 trials beat")
