import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansatz.cli.output import forget_notes, print_note
from ansatz.fitting.options import FitCommand, declared

DOCUMENT = {
    "model", "structure", "network", "parameters", "likelihood", "inference", "rows", "metrics",
    "linear", "constant", "epochs", "seconds", "seed", "candidates", "log_likelihood",
    "baselines",
}  # fmt: skip


def houses(folder: Path, rows: int = 120, name: str = "houses.csv") -> Path:
    """price = 3 area + a premium by town + noise."""
    draw = random.Random(0)
    with (folder / name).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["area", "town", "price"])
        for _ in range(rows):
            area, town = draw.uniform(1, 9), draw.choice(["Jena", "Weimar"])
            price = 3 * area + (5 if town == "Jena" else 0) + draw.gauss(0, 1)
            table.writerow([round(area, 3), town, round(price, 3)])
    return folder / name


@pytest.fixture
def fitted(command, tmp_path):
    houses(tmp_path)
    done = command(
        "fit", "houses.csv", "--target", "price", "--likelihood", "normal", "--network", "linear"
    )
    assert done.status == 0, done.err
    return done


def test_prints_columns_metrics_beside_simpler_models_and_what_is_next(fitted, tmp_path):
    lines = fitted.out.splitlines()
    assert ["area", "numeric"] in [line.split()[:2] for line in lines]
    assert ["town", "categorical"] in [line.split()[:2] for line in lines]
    assert ["metric", "model", "linear", "constant"] in [line.split() for line in lines]
    assert any(line.startswith("model: houses-model") for line in lines)
    assert any("ansatz predict houses-model" in line for line in lines)
    assert (tmp_path / "houses-model" / "weights.safetensors").exists()


def test_json_is_one_document_and_nothing_else(command, tmp_path):
    houses(tmp_path)
    done = command(
        "fit",
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
        "--json",
        "--seed",
        "3",
    )
    document = json.loads(done.out)
    assert set(document) == DOCUMENT
    assert document["rows"]["train"] + document["rows"]["valid"] + document["rows"]["test"] == 120
    assert document["seed"] == 3 and document["likelihood"] == "normal"
    assert document["metrics"]["rmse"] < document["constant"]["rmse"]


def test_an_existing_model_is_kept_unless_reported_otherwise(command, fitted, tmp_path):
    before = (tmp_path / "houses-model" / "manifest.json").read_bytes()
    again = [
        "fit",
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
    ]
    done = command(*again, "--seed", "1")
    assert done.status == 2 and "houses-model' exists" in done.err and "--overwrite" in done.err
    assert (tmp_path / "houses-model" / "manifest.json").read_bytes() == before
    assert command(*again, "--seed", "1", "--overwrite").status == 0
    assert (tmp_path / "houses-model" / "manifest.json").read_bytes() != before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_finished_run_has_nothing_to_resume(command, fitted, tmp_path):
    before = (tmp_path / "houses-model" / "manifest.json").read_bytes()
    again = [
        "fit",
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
        "--resume",
    ]
    done = command(*again)
    assert done.status == 0 and "nothing to do" in done.err
    assert (tmp_path / "houses-model" / "manifest.json").read_bytes() == before


def test_a_dry_run_says_what_would_be_done_and_does_nothing(command, tmp_path):
    houses(tmp_path)
    done = command("fit", "houses.csv", "--target", "price", "--likelihood", "normal", "--dry-run")
    assert done.status == 0 and "120 rows, likelihood normal" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


def test_the_printed_configuration_repeats_the_fit(command, tmp_path):
    houses(tmp_path)
    words = [
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
        "--role",
        "town=categorical",
    ]
    printed = command("fit", *words, "--print-config")
    (tmp_path / "fit.json").write_text(printed.out)
    first = command("fit", *words, "--json", "--out", "a")
    second = command("fit", "--config", "fit.json", "--json", "--out", "b")
    one, two = json.loads(first.out), json.loads(second.out)
    assert one["metrics"] == two["metrics"] and one["metrics"] is not None


def test_the_command_line_wins_over_the_configuration(command, tmp_path):
    (tmp_path / "fit.toml").write_text(
        'data = "a.csv"\ntarget = "y"\nseed = 3\n[options]\nwidths = [8]\nepochs = 2\n'
    )
    words = ["--config", "fit.toml", "--seed", "4", "--set", "epochs=5", "--set", "activation=relu"]
    printed = json.loads(command("fit", *words, "--print-config").out)
    assert printed["seed"] == 4 and printed["data"] == "a.csv" and printed["target"] == ["y"]
    assert printed["options"] == {"widths": [8], "epochs": 5, "activation": "relu"}


@pytest.mark.parametrize(
    "words, status, says",
    [
        (["nowhere.csv", "--target", "price", "--likelihood", "normal"], 3, "nowhere.csv"),
        (["houses.csv", "--target", "cost"], 3, "cost"),
        (["houses.csv"], 2, "--target"),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--likelihood", "poison"],
            2,
            "'poisson'",
        ),
        (
            [
                "houses.csv",
                "--target",
                "price",
                "--likelihood",
                "normal",
                "--likelihood",
                "poisson",
            ],
            3,
            "row",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--network", "mpl"],
            2,
            "'mlp'",
        ),
        (["houses.csv", "--target", "price", "--likelihood", "normal", "--x", "graf"], 2, "graf"),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--set", "widths"],
            2,
            "KEY=VALUE",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--role", "town"],
            2,
            "COL=ROLE",
        ),
        (["houses.csv", "--target", "price", "--likelihood", "normal", "--test", "1.5"], 2, "test"),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--out", "houses.csv"],
            2,
            "exists",
        ),
        (
            [
                "houses.csv",
                "--target",
                "price",
                "--likelihood",
                "normal",
                "--out",
                "houses.csv/model",
            ],
            2,
            "is a file",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--config", "no.toml"],
            2,
            "no.toml",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--device", "gpu"],
            2,
            "gpu",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--weights", "area2"],
            3,
            "area2",
        ),
        (
            [
                "houses.csv",
                "--target",
                "price",
                "--likelihood",
                "normal",
                "--set",
                "lerning_rate=1",
            ],
            2,
            "lerning_rate",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--set", "widths=64"],
            2,
            "[64, 64]",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--set", "widths=abc"],
            2,
            "[64, 64]",
        ),
        (
            ["houses.csv", "--target", "price", "--likelihood", "normal", "--set", "epochs=abc"],
            2,
            "epochs",
        ),
        (["empty.csv", "--target", "price", "--likelihood", "normal"], 3, "empty.csv"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else str(value),
)
def test_a_wrong_request_is_one_line_with_its_status(command, tmp_path, words, status, says):
    houses(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = command("fit", *words)
    assert done.status == status, done.err
    line = done.err.splitlines()[-1]
    assert line.startswith("ansatz: ") and says in line and "Traceback" not in done.err
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_without_test_rows_there_is_no_table_of_metrics(command, tmp_path):
    houses(tmp_path)
    done = command(
        "fit",
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
        "--test",
        "0",
    )
    assert done.status == 0 and "metric" not in done.out, done.out


def test_names_from_a_file_cannot_steer_the_terminal(command, tmp_path):
    text = houses(tmp_path).read_text().replace("area", "\x1b[31marea\u202e")
    (tmp_path / "evil.csv").write_text(text, encoding="utf-8")
    done = command(
        "fit", "evil.csv", "--target", "price", "--likelihood", "normal", "--network", "linear"
    )
    assert "\x1b" not in done.out + done.err and "\u202e" not in done.out + done.err


def test_a_network_is_fitted_with_the_options_of_set(command, tmp_path):
    houses(tmp_path)
    words = ["--set", "widths=[4]", "--set", "epochs=2", "--quiet", "--json"]
    done = command("fit", "houses.csv", "--target", "price", "--likelihood", "normal", *words)
    document = json.loads(done.out)
    assert document["network"] == "mlp" and document["epochs"] <= 2 and done.status == 0
    # 2 features (area, Jena or not) or 3 to 4 units, then to mean and spread
    assert document["parameters"] < 100


@pytest.mark.slow  # test_run of the estimators stops a command and lets it go on
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to deliver")
@pytest.mark.parametrize(
    "number, status",
    [(signal.SIGINT, 130), (signal.SIGTERM, 143)],
)
def test_a_stopped_training_says_how_to_go_on(tmp_path, number, status):
    houses(tmp_path, rows=400)
    words = [
        sys.executable,
        "-m",
        "ansatz",
        "fit",
        "houses.csv",
        "--target",
        "price",
        "--likelihood",
        "normal",
    ]
    words += ["--set", "epochs=20000"]
    running = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    checkpoints = tmp_path / "houses-model.training"
    for _ in range(600):
        if checkpoints.exists() or running.poll() is not None:
            break
        time.sleep(0.1)
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    assert running.returncode == status, err
    assert "--resume" in err.splitlines()[-1] and out == ""
    assert not (tmp_path / "houses-model").exists() and checkpoints.exists()


def test_a_data_set_brings_its_own_target(command):
    done = command("fit", "iris", "--network", "linear", "--quiet")
    assert done.status == 0, done.err
    assert "species: categorical likelihood, linear" in done.out
    assert "next:  ansatz report iris-model --open" in done.out
    again = command("fit", "iris", "--dry-run")
    assert again.status == 0 and "needs --overwrite to replace iris-model" in again.out


@pytest.mark.parametrize(
    "words, hint",
    [
        (("fit", "iriss"), "Did you mean the data set iris?"),
        (("fit", "iris", "--network", "mpl"), "Did you mean 'mlp'?"),
        (("fit", "iris", "--likelihood", "categorial"), "Did you mean 'categorical'?"),
        (("fit", "iris", "--inference", "ensembel"), "Did you mean 'ensemble'?"),
        (("fit", "iris", "--target", "specis"), "Did you mean 'species'?"),
        (("fit", "iris", "--set", "widhts=[8]"), "Did you mean 'widths'?"),
        (("fit", "iris", "--likelyhood", "gamma"), "Did you mean '--likelihood'?"),
        (("ftt", "iris"), "Did you mean 'fit'?"),
        (("data", "show", "iriss"), "Did you mean 'iris'?"),
    ],
    ids=str,
)
def test_a_wrong_name_is_corrected(words, hint, command):
    done = command(*words, *(["--dry-run"] if words[0] == "fit" else []))
    assert done.status in (2, 3) and hint in done.err
    assert len(done.err.splitlines()) == 1


def test_the_short_help_shows_the_common_options_and_the_long_help_all(command):
    def flags(word):
        done = command("fit", word)
        assert done.status == 0
        return set(re.findall(r"(--[a-z][a-z-]*)[ ,]", done.out.split("Arguments")[1]))

    short, whole = flags("--help"), flags("--help-all")
    asked = {"--target", "--likelihood", "--network", "--inference", "--out", "--time-limit"}
    assert short == asked | {"--help", "--help-all"}
    every = {o.option.flag(n) for n, o in declared(FitCommand).items() if o.option.panel}
    assert {flag.split("/")[0] for flag in every} <= whole and len(whole) > 50
    assert "More options: ansatz fit --help-all" in command("fit", "--help").out


def test_a_note_is_printed_once(command, capsys):
    forget_notes()
    for text in ("note: it rains.", "warning: it rains.", "it rains.", "it rains."):
        print_note(text)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["ansatz: note: it rains.", "ansatz: it rains.", "ansatz: it rains."]
