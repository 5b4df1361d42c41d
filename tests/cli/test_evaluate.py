import io
import json

import pandas as pd
import pytest


def test_evaluates_rows_with_their_target(command, model, tmp_path, table_of, rows):
    (tmp_path / "later.csv").write_text(rows)
    done = command("evaluate", model, "later.csv", "--json")
    metrics = json.loads(done.out)
    frame = pd.read_csv(io.StringIO(rows))
    predicted = table_of(command("predict", model, "later.csv").out).prediction
    rmse = ((predicted - frame.price) ** 2).mean() ** 0.5
    assert metrics["rmse"] == pytest.approx(rmse)
    assert "rmse" in command("evaluate", model, "later.csv").out


def test_leaves_out_rows_without_the_target_and_says_so(command, model, tmp_path, rows):
    (tmp_path / "later.csv").write_text(rows + "3.3,Jena,\n")
    (tmp_path / "known.csv").write_text(rows)
    done = command("evaluate", model, "later.csv", "--json")
    assert "rows without the target, which were left out: 1." in done.err
    assert json.loads(done.out) == json.loads(command("evaluate", model, "known.csv", "--json").out)


def test_without_the_target_is_bad_data(command, model):
    done = command("evaluate", model, "new.csv")
    assert done.status == 3 and "price" in done.err
