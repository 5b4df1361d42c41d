"""Figures of single models, and what people see of objects."""

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import load
from ansatz.errors import DataError, UsageError
from ansatz.facts import as_html, as_text
from ansatz.training import History

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=120)


def titles(paper):
    return [axes.get_title(loc="left") for axes in paper.axes if axes.axison]


def test_a_regressor_draws_training_observations_and_calibration(numbers):
    X, y = numbers
    model = Regressor(widths=(4,), epochs=3).fit(X[:80], y[:80])
    paper = model.plot(X[80:], y[80:])
    assert [title.split()[0] for title in titles(paper)] == ["Training", "Observed", "Calibration"]
    points = paper.axes[1].lines[0]
    np.testing.assert_allclose(points.get_xdata(), model.predict(X[80:]))
    np.testing.assert_allclose(points.get_ydata(), y[80:])
    assert paper._repr_png_().startswith(PNG)
    assert titles(model.plot()) == ["Training"]
    assert len(model.plot(X[80:], y[80:], "observed").axes) == 1
    with pytest.raises(UsageError, match="plot draws training, observed, calibration, not 'roc'"):
        model.plot(X, y, "roc")
    with pytest.raises(DataError, match="nothing to draw of 'observed'"):
        model.plot(what="observed")


def test_classes_have_a_reliability_diagram(numbers):
    X, y = numbers
    model = Classifier(network="linear").fit(X[:80], y[:80] > 0)
    assert titles(model.plot(X[80:], y[80:] > 0)) == ["Reliability: True"]


def test_a_fit_draws_its_test_rows_and_describes_itself(numbers):
    X, y = numbers
    table = pd.DataFrame({"a": X[:, 0], "<b>": X[:, 1], "y": y})
    fit = ansatz.fit(table, target="y", likelihood="normal", network="linear")
    paper = fit.plot()
    assert len(paper.axes[0].lines[0].get_xdata()) == fit.rows["test"]
    assert repr(fit).startswith("Fit: linear, 4 parameters, point, likelihood normal\n")
    assert f"{fit.rows['test']} test" in repr(fit) and len(repr(fit)) < 1000
    report = fit.model.report(table[["a", "<b>"]][:40], table["y"][:40])
    assert len(repr(report)) < 1000 and "What was fitted" in repr(report)
    assert report._repr_html_().startswith("<div><b>Report: ")


def test_a_history_describes_itself_and_draws_its_losses():
    records = [{"step": k, "running_loss": 1 / k, "valid_loss": 1.1 / k} for k in (1, 2, 3)]
    history = History(records=records, steps=1234, epochs=3, best_step=3, best_loss=0.25)
    assert repr(history).splitlines()[0] == "History: 1,234 steps, 3 epochs, 0 seconds"
    assert "step 3, validation loss 0.25" in repr(history)
    lines = history.plot().axes[0].lines
    np.testing.assert_allclose(lines[1].get_ydata(), history.losses("valid_loss"))
    with pytest.raises(UsageError, match="no learning curves"):
        History().plot()


def test_a_data_set_describes_itself():
    text = repr(load("iris"))
    assert text.startswith("Dataset 'iris': 150 rows, 5 columns\n") and len(text) < 1000
    assert "target      species" in text and "<table>" in load("iris")._repr_html_()


def test_facts_are_escaped_cut_and_left_out_where_empty():
    facts = [("name", "<script>"), ("empty", ""), ("long", "x" * 999), ("lines", "a\nb")]
    text, page = as_text("A & B", facts), as_html("A & B", facts)
    assert text.splitlines()[0] == "A & B" and "empty" not in text and "a b" in text
    assert max(map(len, text.splitlines())) < 220
    assert "<script>" not in page and "&lt;script&gt;" in page and "A &amp; B" in page
