import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_one_line_per_row_in_the_order_of_the_file(command, model, table_of):
    done = command("predict", model, "new.csv")
    assert (done.status, done.err) == (0, "")
    table = table_of(done.out)
    assert list(table.index) == [0, 1] and list(table.columns) == ["prediction"]


def test_an_interval_surrounds_the_prediction(command, model, table_of):
    narrow = table_of(command("predict", model, "new.csv", "--interval", "0.5").out)
    wide = table_of(command("predict", model, "new.csv", "--interval", "0.9").out)
    assert (wide.lower < narrow.lower).all() and (narrow.lower < narrow.prediction).all()
    assert (wide.upper > narrow.upper).all() and (narrow.upper > narrow.prediction).all()


def test_reordered_columns_change_nothing(command, model, tmp_path):
    (tmp_path / "other.csv").write_text("town,area\nJena,1.5\nWeimar,2.5\n")
    assert command("predict", model, "other.csv").out == command("predict", model, "new.csv").out


def test_an_extra_column_is_ignored_and_said(command, model, tmp_path):
    (tmp_path / "more.csv").write_text("area,town,colour\n1.5,Jena,red\n2.5,Weimar,blue\n")
    done = command("predict", model, "more.csv")
    assert done.out == command("predict", model, "new.csv").out and "colour" in done.err


def test_a_column_that_the_model_does_not_use_may_be_missing(command, tmp_path, table_of):
    lines = "".join(f"{k},{7},{k / 2 + k % 2}\n" for k in range(60))
    (tmp_path / "a.csv").write_text("x,same,y\n" + lines)
    options = ("--target", "y", "--likelihood", "normal", "--network", "linear")
    assert command("fit", "a.csv", *options).status == 0
    (tmp_path / "new.csv").write_text("x\n3\n")
    done = command("predict", "a-model", "new.csv")
    assert done.status == 0 and len(table_of(done.out)) == 1, done.err


def test_a_column_that_was_dropped_may_hold_anything(command, tmp_path, table_of):
    lines = "".join(f"{k},{'none' if k == 7 else k},{k / 2 + k % 2}\n" for k in range(60))
    (tmp_path / "a.csv").write_text("x,code,y\n" + lines)
    options = ("--target", "y", "--likelihood", "normal", "--network", "linear", "--drop", "code")
    assert command("fit", "a.csv", *options).status == 0
    done = command("predict", "a-model", "a.csv")
    assert done.status == 0 and len(table_of(done.out)) == 60, done.err
    assert command("evaluate", "a-model", "a.csv").status == 0


def test_the_target_may_be_there(command, model, tmp_path):
    (tmp_path / "old.csv").write_text("area,town,price\n1.5,Jena,9\n2.5,Weimar,9\n")
    done = command("predict", model, "old.csv")
    assert done.out == command("predict", model, "new.csv").out and done.err == ""


def test_a_renamed_column_is_named(command, model, tmp_path):
    (tmp_path / "bad.csv").write_text("aera,town\n1.5,Jena\n")
    done = command("predict", model, "bad.csv")
    assert done.status == 3 and done.out == ""
    assert "no column 'area', which the model needs. Is it 'aera'?" in done.err


def test_a_retyped_column_is_named(command, model, tmp_path):
    (tmp_path / "bad.csv").write_text("area,town\nlarge,Jena\nsmall,Jena\n")
    done = command("predict", model, "bad.csv")
    assert done.status == 3 and "area" in done.err and done.out == ""


@pytest.mark.filterwarnings("always")
def test_an_unseen_category_gets_a_prediction_and_a_warning(command, model, tmp_path, table_of):
    (tmp_path / "far.csv").write_text("area,town\n1.5,Erfurt\n")
    done = command("predict", model, "far.csv")
    assert done.status == 0 and table_of(done.out).prediction.notna().all()
    assert "ansatz: warning: column 'town'" in done.err and "Erfurt" in done.err


def test_no_rows_in_no_rows_out(command, model, tmp_path):
    (tmp_path / "none.csv").write_text("area,town\n")
    done = command("predict", model, "none.csv", "--interval", "0.9")
    assert (done.status, done.out) == (0, "row,prediction,lower,upper\n")


def test_a_file_is_written_whole_and_replaced_only_when_reported(command, model, tmp_path):
    out = tmp_path / "p.csv"
    assert command("predict", model, "new.csv", "--out", out).status == 0
    text = out.read_text()
    assert text == command("predict", model, "new.csv").out
    refused = command("predict", model, "new.csv", "--interval", "0.9", "--out", out)
    assert refused.status == 2 and "--overwrite" in refused.err and out.read_text() == text
    done = command("predict", model, "new.csv", "--interval", "0.9", "--out", out, "--overwrite")
    assert done.status == 0 and "lower" in out.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"houses-model", "new.csv", "p.csv"}


@pytest.mark.parametrize("how", ["--no-stream", "--stream"])
def test_json_is_a_list_of_the_rows_of_the_csv(command, model, table_of, how):
    words = ("predict", model, "new.csv", "--interval", "0.9", how)
    table = table_of(command(*words).out).reset_index()
    done = command(*words, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out) == table.to_dict("records")
    told = json.loads(command(*words, "--json", "--out", "p.json").out)
    assert told == {"predictions": 2, "out": "p.json"}
    assert Path("p.json").read_text() == done.out


def test_json_of_no_rows_is_an_empty_list(command, model, tmp_path):
    (tmp_path / "none.csv").write_text("area,town\n")
    assert json.loads(command("predict", model, "none.csv", "--json").out) == []


@pytest.mark.parametrize(
    "name, words, said",
    [
        ("p.json", (), "predictions are CSV; name the file something.csv, or add --json."),
        ("p.csv", ("--json",), "predictions are JSON; name the file something.json."),
    ],
)
def test_a_file_is_called_like_what_is_in_it(command, model, name, words, said):
    done = command("predict", model, "new.csv", "--out", name, *words)
    assert done.status == 2 and said in done.err and not Path(name).exists()


def test_a_parquet_name_for_csv_is_refused(command, model):
    done = command("predict", model, "new.csv", "--out", "p.parquet")
    assert done.status == 2 and "CSV" in done.err


@pytest.mark.parametrize("level", ["0", "1", "2", "-0.5", "nan"])
def test_an_impossible_interval_is_refused(command, model, level):
    done = command("predict", model, "new.csv", "--interval", level)
    assert done.status == 2 and "--interval must be in (0, 1)" in done.err


def test_classes_have_their_probabilities_and_no_formula_runs(command, tmp_path, table_of):
    rows = "".join(f"{k},{'=cmd()' if k > 30 else 'no'}\n" for k in range(60))
    (tmp_path / "c.csv").write_text("a,y\n" + rows)
    words = ["--target", "y", "--network", "linear"]
    assert command("fit", "c.csv", *words).status == 0
    table = table_of(command("predict", "c-model", "c.csv").out)
    assert list(table.columns) == ["prediction", "p_=cmd()", "p_no"]
    assert set(table.prediction) == {"'=cmd()", "no"}
    assert abs(table["p_=cmd()"] + table.p_no - 1).max() < 1e-6
    asked = command("predict", "c-model", "c.csv", "--interval", "0.9")
    assert list(table_of(asked.out).columns) == list(table.columns)
    assert "classes have no interval" in asked.err
    raw = table_of(command("predict", "c-model", "c.csv", "--raw").out)
    assert set(raw.prediction) == {"=cmd()", "no"}


def test_exposure_counts_in_predictions(command, tmp_path, table_of):
    rows = "".join(f"{k % 5},{1 + k % 3},{(1 + k % 3) * 2 + k % 2}\n" for k in range(90))
    (tmp_path / "claims.csv").write_text("a,years,count\n" + rows)
    words = ["--target", "count", "--likelihood", "poisson", "--exposure", "years"]
    assert command("fit", "claims.csv", *words, "--network", "linear").status == 0
    (tmp_path / "new.csv").write_text("a,years\n1,1\n1,2\n")
    one, two = table_of(command("predict", "claims-model", "new.csv").out).prediction
    assert two == pytest.approx(2 * one)
    (tmp_path / "without.csv").write_text("a\n1\n")
    done = command("predict", "claims-model", "without.csv")
    assert done.status == 3 and "years" in done.err


@pytest.mark.slow  # test_main closes the pipe of a command that starts without torch
def test_a_pipe_that_closes_early_ends_quietly(saved, tmp_path):
    rows = "".join(f"{k / 100},Jena\n" for k in range(20_000))
    (tmp_path / "many.csv").write_text("area,town\n" + rows)
    words = [sys.executable, "-m", "ansatz", "predict", str(saved), "many.csv"]
    running = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "row,prediction\n"
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait(timeout=120) == 0
    running.stderr.close()


def test_works_without_home_in_a_read_only_folder_with_an_ascii_locale(
    process, saved, tmp_path, table_of
):
    (tmp_path / "neu für alle.csv").write_text("area,town\n1.5,Jena\n")
    keep = {"PATH", "PYTHONPATH", "SYSTEMROOT", "OMP_NUM_THREADS"}  # the code under test
    bare = {key: value for key, value in os.environ.items() if key in keep}
    tmp_path.chmod(0o500)
    try:
        done = process(
            "predict", saved, "neu für alle.csv", environment={**bare, "LANG": "C", "LC_ALL": "C"}
        )
    finally:
        tmp_path.chmod(0o700)
    assert done.status == 0 and done.err == "", done.err
    assert len(table_of(done.out)) == 1
