"""Rows that the user brings to stop the training of ansatz.fit."""

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz.errors import DataError, UsageError
from ansatz.fitting.replay import replay

QUICK = {"target": "y", "likelihood": "normal", "options": {"epochs": 3, "widths": [4]}}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, level = rng.normal(size=160), rng.choice(["low", "mid", "high"], 160)
    y = np.sin(2 * a) + (level == "low") + 0.1 * rng.normal(size=160)
    return pd.DataFrame({"a": a, "level": level, "y": y})


@pytest.fixture
def files(table, tmp_path):
    table[:120].to_csv(tmp_path / "train.csv", index=False)
    table[120:].to_csv(tmp_path / "valid.csv", index=False)
    return str(tmp_path / "train.csv"), str(tmp_path / "valid.csv")


def test_the_rows_stop_the_training_and_are_never_tested(table):
    fit = ansatz.fit(table[:120], validation_data=table[120:], inference="point", **QUICK)
    assert fit.rows == {"train": 96, "valid": 40, "test": 24}
    assert [column.name for column in fit.columns] == ["a", "level"]
    parts = replay(fit).parts
    np.testing.assert_array_equal(parts.learn[parts.valid], np.arange(120, 160))
    assert parts.test.max() < 120
    assert any("40 rows of validation_data stop the training" in note for note in fit.notes)


def test_a_pair_is_the_table(table):
    pair = (table[["a", "level"]][120:], table["y"][120:])
    one = ansatz.fit(table[:120], validation_data=pair, inference="point", **QUICK)
    two = ansatz.fit(table[:120], validation_data=table[120:], inference="point", **QUICK)
    assert one.metrics == two.metrics


def test_other_validation_rows_stop_elsewhere(table):
    """With noise as its outcome the validation loss is best at the first evaluation."""
    noise = table[120:].assign(y=np.random.default_rng(1).normal(size=40) * 100)
    long = QUICK | {"options": {"epochs": 60, "widths": [16], "evaluations": 20}}
    good = ansatz.fit(table[:120], validation_data=table[120:], inference="point", **long)
    bad = ansatz.fit(table[:120], validation_data=noise, inference="point", **long)
    assert bad.fitted.history.best_step < good.fitted.history.best_step


def test_a_saved_model_finds_both_files_again(files, tmp_path):
    train, valid = files
    fit = ansatz.fit(train, validation_data=valid, out=tmp_path / "m", inference="point", **QUICK)
    again = replay(tmp_path / "m")
    np.testing.assert_array_equal(again.parts.valid, replay(fit).parts.valid)
    assert again.provenance.validation.path == valid
    assert f"--validation {valid}" in again.provenance.asked.command("train.csv")
    (tmp_path / "valid.csv").write_text("a,level,y\n1,low,2\n")
    with pytest.raises(DataError, match=r"it had 160 rows with an outcome, now 121"):
        replay(tmp_path / "m")
    (tmp_path / "valid.csv").unlink()
    with pytest.raises(DataError, match=r"valid\.csv: the table that .* is no longer there"):
        replay(tmp_path / "m")


def test_validation_rows_in_memory_are_said_to_be_gone(files, table, tmp_path):
    more = table[120:]
    ansatz.fit(files[0], validation_data=more, out=tmp_path / "m", inference="point", **QUICK)
    with pytest.raises(DataError, match=r"the rows that stopped the training of .* were in memory"):
        replay(tmp_path / "m")


def test_ordered_levels_keep_their_order(table):
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    ordered = table.assign(level=table["level"].astype(kind))
    fit = ansatz.fit(ordered[:120], validation_data=table[120:], inference="point", **QUICK)
    assert fit.columns[1].role == "ordered"
    assert list(fit.columns[1].levels) == ["low", "mid", "high"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"network": "linear", "options": {}}, "a linear model is solved exactly"),
        ({"folds": 3}, "--folds fits on other rows each time"),
        ({"options": {"holdout": 0.3}}, "validation_data takes the place of holdout"),
        ({"stream": True}, "--validation takes all rows at once"),
    ],
)
def test_what_validation_rows_do_not_go_with(files, options, message):
    with pytest.raises(UsageError, match=message):
        ansatz.fit(files[0], validation_data=files[1], **{**QUICK, **options})


def test_a_table_of_other_columns_is_refused(table):
    with pytest.raises(DataError, match=r"validation_data, whose rows stop .* has no column 'a'"):
        ansatz.fit(table, validation_data=table[["level", "y"]], **QUICK)
    with pytest.raises(DataError, match="has no rows"):
        ansatz.fit(table, validation_data=table[:0], **QUICK)
    with pytest.raises(DataError, match="X has 3 rows and y has 2"):
        ansatz.fit(table, validation_data=(table[["a", "level"]][:3], [1.0, 2.0]), **QUICK)
    with pytest.raises(UsageError, match=r"must be a table or, with one target, \(X, y\)"):
        ansatz.fit(table, validation_data=(table,), **QUICK)


@pytest.mark.parametrize("beside", [[], ["a"]], ids=["texts", "texts and numbers"])
def test_texts_bring_their_own_rows_too(table, tmp_path, beside):
    """Their predictions need no validation rows, and a saved model finds them again."""
    words = table["level"].map({"low": "a small one", "mid": "one between", "high": "a large one"})
    frame = table[[*beside, "y"]].assign(text=words)
    frame[:120].to_csv(tmp_path / "train.csv", index=False)
    frame[120:].to_csv(tmp_path / "valid.csv", index=False)
    fit = ansatz.fit(
        str(tmp_path / "train.csv"),
        validation_data=str(tmp_path / "valid.csv"),
        text_column="text",
        target="y",
        likelihood="normal",
        inference="point",
        out=tmp_path / "model",
        options={"epochs": 2},
    )
    assert fit.rows == {"train": 96, "valid": 40, "test": 24}
    parts = replay(tmp_path / "model").parts
    np.testing.assert_array_equal(parts.learn[parts.valid], np.arange(120, 160))
    assert fit.model.predict(frame.drop(columns="y")[:5]).shape == (5,)
