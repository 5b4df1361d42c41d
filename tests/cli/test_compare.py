"""ansatz compare, as a user runs it."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def folders(command, tmp_path):
    """Two fits of one table: prices by area, and by noise."""
    rng = np.random.default_rng(0)
    area = rng.uniform(20, 200, size=600)
    frame = pd.DataFrame(
        {
            "area": area,
            "noise": rng.normal(size=600),
            "street": rng.integers(0, 150, size=600),
            "price": area + 20 * rng.normal(size=600),
        }
    )
    frame.to_csv(tmp_path / "houses.csv", index=False)
    words = ("--target", "price", "--likelihood", "normal", "--network", "linear")
    for name, gone in (("by-area", "noise"), ("by-noise", "area")):
        done = command(
            *("fit", "houses.csv", *words, "--group", "street", "--drop", gone, "--out", name)
        )
        assert done.status == 0, done.err
    return "by-area", "by-noise"


def test_names_the_better_model_with_the_evidence(command, folders):
    done = command("compare", *folders)
    assert done.status == 0 and done.err == ""
    assert "by-area is better: its log score is higher by" in done.out
    assert "clustered" in done.out and "what differs" in done.out
    assert "\x1b" not in done.out


def test_the_document_has_the_numbers_of_the_table(command, folders):
    document = json.loads(command("compare", *folders, "--json").out)
    assert document["better"] == "by-area"
    first = document["scores"][0]
    assert first["difference"] == pytest.approx(first["a"] - first["b"])
    assert first["difference"] > 2 * first["standard_error"]
    names = [setting["name"] for setting in document["differs"]]
    assert names == ["columns", "drop"]


def test_refits_compare_the_methods(command, folders):
    words = ("--refit", "--folds", "3", "--repeats", "1")
    done = command("compare", *folders, *words)
    assert done.status == 0 and "by-area is the better method" in done.out
    assert "refitted to 3 folds of 600 rows" in done.out
    assert "refits: 6 of 6" in done.err
    quiet = command("compare", *folders, *words, "--quiet", "--json")
    assert quiet.err == "" and json.loads(quiet.out)["methods"]["folds"] == 3


def test_equal_models_are_no_failure(command, folders, tmp_path):
    words = ("--target", "price", "--likelihood", "normal", "--network", "linear")
    command(*("fit", "houses.csv", *words, "--group", "street", "--drop", "noise", "--out", "c"))
    done = command("compare", "by-area", "c")
    assert done.status == 0 and "Not distinguishable" in done.out


def test_other_test_rows_and_changed_files_are_bad_data(command, folders, tmp_path):
    words = ("--target", "price", "--likelihood", "normal", "--network", "linear")
    command("fit", "houses.csv", *words, "--seed", "1", "--group", "street", "--out", "other")
    done = command("compare", "by-area", "other")
    assert done.status == 3 and "different test rows" in done.err and done.err.count("\n") == 1
    (tmp_path / "houses.csv").rename(tmp_path / "moved.csv")
    done = command("compare", *folders)
    assert done.status == 3 and "--data FILE" in done.err
    assert command("compare", *folders, "--data", "moved.csv").status == 0
    with (tmp_path / "moved.csv").open("a") as file:
        file.write("1,2,3,4\n")
    done = command("compare", *folders, "--data", "moved.csv")
    assert done.status == 3 and "it had 600 rows with an outcome, now 601" in done.err


def test_one_model_or_none_is_wrong_usage(command, folders):
    assert command("compare", "by-area").status == 2
    assert command("compare", "by-area", "by-area").status == 2
    assert command("compare", "by-area", "no-such-model").status == 4
