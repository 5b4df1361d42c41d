"""Members of each axis written here pass from the command line to the report."""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import toys

import ansatz
from ansatz import Classifier, Regressor, inference, outcomes, structures
from ansatz.cli.main import run
from ansatz.errors import DataError
from ansatz.training import Trainer
from ansatz.training import loop as training_loop

WORDS = ["good", "bad", "film", "plot", "fine", "poor", "the", "a"]


@pytest.fixture(autouse=True)
def _members():
    """The toys under their names, for the time of a test."""
    added = [
        (structures.registry, "bag", toys.Bag),
        (structures.registry, "bag_and_numbers", toys.TextsAndNumbers),
        (outcomes.registry, "percent", toys.Percent),
        (inference.registry, "bootstrap", toys.Bootstrap),
        (inference.registry, "neighbours", toys.Neighbours),
    ]
    for registry, name, member in added:
        registry.register(name, member)
    yield
    for registry, name, _ in added:
        registry.remove(name)


@pytest.fixture(scope="module")
def reviews():
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(WORDS, size=12)) for _ in range(240)]
    frame = pd.DataFrame({"text": texts, "length": [float(len(text)) for text in texts]})
    frame["stars"] = draw.normal(size=len(texts))
    good = frame["text"].str.count("good|fine") - frame["text"].str.count("bad|poor")
    frame["label"] = np.where(good + 0.3 * draw.normal(size=len(texts)) > 0, "praise", "blame")
    frame["score"] = good + frame["stars"] + 0.3 * draw.normal(size=len(texts))
    return frame


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(200, 2))
    noise = 0.3 * draw.normal(size=200)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    frame["share"] = 100 / (1 + np.exp(-(x[:, 0] + noise)))
    frame["y"] = 2 * x[:, 0] + noise
    return frame


def command(capsys, *words):
    """What a command printed; it must end well."""
    status = run([str(word) for word in words])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return printed.out


def lines_of(*members):
    return sum(len(inspect.getsource(member).splitlines()) for member in members)


def test_a_structure_takes_80_lines_and_an_inference_50():
    assert lines_of(toys.Texts, toys.WordCounts, toys.Bag) <= 80
    assert lines_of(toys.Bootstrap) <= 50


# A structure.


def test_a_structure_from_the_command_line_to_the_report(reviews, tmp_path, capsys):
    data, model = tmp_path / "reviews.csv", tmp_path / "model"
    reviews[["text", "label"]].to_csv(data, index=False)
    options = ["--x", "bag", "--target", "label", "--set", "epochs=20", "--quiet"]
    told = json.loads(command(capsys, "fit", data, *options, "--out", model, "--json"))
    assert told["structure"] == "bag" and told["linear"]["accuracy"] is not None
    assert told["metrics"]["accuracy"] > told["constant"]["accuracy"]
    dry = command(capsys, "fit", data, *options, "--out", tmp_path / "none", "--dry-run")
    assert "bernoulli" in dry
    assert "bag" in command(capsys, "inspect", model)
    predicted = pd.read_csv(
        tmp_path / "p.csv"
        if command(capsys, "predict", model, data, "--out", tmp_path / "p.csv")
        else None
    )
    assert {"prediction", "p_praise"} <= set(predicted.columns) and len(predicted) == 240
    evaluated = json.loads(command(capsys, "evaluate", model, data, "--json"))
    right = (predicted["prediction"] == reviews["label"]).mean()
    assert evaluated["accuracy"] == pytest.approx(right)
    (certificate,) = json.loads(command(capsys, "certify", model, data, "--json"))
    assert certificate["group"] == "permutation" and certificate["largest"] > 0
    command(capsys, "report", model, "--out", tmp_path / "report.html", "--quiet")
    page = (tmp_path / "report.html").read_text()
    assert "48 test texts" in page and "What was fitted" in page
    other = tmp_path / "linear"
    command(capsys, "fit", data, *options, "--network", "linear", "--out", other)
    assert "nll" in command(capsys, "compare", model, other).replace("log score", "nll")


def test_a_structure_exports_the_numbers_it_predicts(reviews, tmp_path, capsys):
    model = tmp_path / "model"
    fit = ansatz.fit(
        reviews[["text", "label"]], x="bag", target="label", options={"epochs": 2}, out=model
    )
    written = json.loads(command(capsys, "export", model, tmp_path / "m.onnx", "--json"))
    assert written["difference"] < 1e-5 and (tmp_path / "m.onnx").stat().st_size > 0
    assert fit.network == "mlp"


def test_a_structure_is_searched(reviews):
    found = ansatz.tune(
        reviews[["text", "score"]],
        x="bag",
        target="score",
        likelihood="normal",
        searches=2,
        folds=2,
        options={"epochs": 2},
    )
    assert len(found.trials) == 3 and "learning_rate" in found.space


def test_a_structure_serves_every_outcome_and_inference(reviews):
    texts = reviews["text"].tolist()
    model = Regressor(x="bag", epochs=20).fit(texts, reviews["score"])
    bounds = model.interval(texts, 0.9)
    held = ((bounds[:, 0] < reviews["score"]) & (reviews["score"] < bounds[:, 1])).mean()
    assert 0.8 < held <= 1
    for name in ("ensemble", "bootstrap"):
        several = Classifier(x="bag", inference=name, members=3, epochs=3).fit(
            texts, reviews["label"]
        )
        assert len(several.model_.posterior.networks) == 3
        assert several.evaluate(texts, reviews["label"])["nll"] < 0.7


def test_a_structure_is_saved_and_loaded_bit_for_bit(reviews, tmp_path):
    texts = reviews["text"].tolist()
    model = Classifier(x="bag", epochs=3).fit(texts, reviews["label"])
    again = ansatz.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict_proba(texts), again.predict_proba(texts))


def test_an_interrupted_fit_of_a_structure_resumes_to_the_same_bits(reviews, tmp_path, monkeypatch):
    given = {"x": "bag", "target": "score", "likelihood": "normal", "options": {"epochs": 8}}
    data = reviews[["text", "score"]]
    whole = ansatz.fit(data, **given, out=tmp_path / "whole").model
    monkeypatch.setattr(training_loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    stop_after(monkeypatch, 20)
    with pytest.raises(KeyboardInterrupt):
        ansatz.fit(data, **given, out=tmp_path / "cut")
    monkeypatch.undo()
    assert list((tmp_path / "cut.training").glob("step-*"))
    again = ansatz.fit(data, **given, out=tmp_path / "cut", resume=True).model
    texts = reviews["text"].tolist()
    np.testing.assert_array_equal(whole.predict(texts), again.predict(texts))


def stop_after(monkeypatch, steps):
    """Trainings end in an interrupt after so many steps."""
    fit = Trainer.fit

    def interrupted(self, step, *sources):
        inner, taken = step.step, []

        def counted(batch):
            taken.append(1)
            if len(taken) > steps:
                raise KeyboardInterrupt
            return inner(batch)

        step.step = counted
        return fit(self, step, *sources)

    monkeypatch.setattr(Trainer, "fit", interrupted)


def test_rows_of_two_parts_are_fitted_saved_predicted_and_reported(reviews, tmp_path):
    data = reviews[["text", "length", "stars", "score"]]
    fit = ansatz.fit(
        data,
        x="bag_and_numbers",
        target="score",
        likelihood="normal",
        options={"epochs": 60},
        out=tmp_path / "model",
    )
    assert fit.network == "joined" and fit.linear["rmse"] < fit.constant["rmse"]
    assert fit.metrics["rmse"] < 0.7 * fit.constant["rmse"]  # both parts explain it
    model = ansatz.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(data), fit.model.predict(data))
    made = model.report(data, data["score"], tmp_path / "report.html")
    assert made.sections and "240 reviews that were given" in made.page  # some of training


# An outcome.


def test_an_outcome_from_the_command_line_to_the_report(table, tmp_path, capsys):
    data, model = tmp_path / "shares.csv", tmp_path / "model"
    table[["a", "b", "share"]].to_csv(data, index=False)
    words = ["--target", "share", "--task", "percent", "--set", "epochs=20", "--quiet"]
    words += ["--inference", "point"]
    told = json.loads(command(capsys, "fit", data, *words, "--out", model, "--json"))
    assert told["likelihood"] == "beta" and told["metrics"]["rmse"] < told["constant"]["rmse"]
    assert told["metrics"]["rmse"] > 1  # in percent
    command(capsys, "predict", model, data, "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert predicted.between(0, 100).all() and np.corrcoef(predicted, table["share"])[0, 1] > 0.8
    evaluated = json.loads(command(capsys, "evaluate", model, data, "--json"))
    assert evaluated["rmse"] == pytest.approx(np.sqrt(((predicted - table["share"]) ** 2).mean()))
    command(capsys, "report", model, "--out", tmp_path / "report.html", "--quiet")
    assert "share" in (tmp_path / "report.html").read_text()
    again = ansatz.load(model)
    np.testing.assert_allclose(again.predict(table[["a", "b"]]), predicted, rtol=1e-10)


def test_an_outcome_checks_its_columns(table):
    with pytest.raises(DataError, match="percentages lie between 0 and 100"):
        ansatz.fit(table.assign(share=-table["share"]), target="share", task="percent")


def test_an_outcome_is_compared_and_searched(table, tmp_path):
    given, few = {"target": "share", "task": "percent"}, {"epochs": 2}
    data = table[["a", "b", "share"]]
    one = ansatz.fit(data, **given, options=few, out=tmp_path / "one")
    two = ansatz.fit(data, **given, network="linear", out=tmp_path / "two")
    assert ansatz.compare(one, two).scores
    assert len(ansatz.tune(data, **given, options=few, searches=1, folds=2).trials) == 2


# Inferences.


@pytest.mark.parametrize("name", ["bootstrap", "neighbours"])
def test_an_inference_from_the_command_line_to_the_report(name, table, tmp_path, capsys):
    data, model = tmp_path / "table.csv", tmp_path / "model"
    table[["a", "b", "y"]].to_csv(data, index=False)
    words = ["--target", "y", "--likelihood", "normal", "--inference", name, "--quiet"]
    told = json.loads(
        command(capsys, "fit", data, *words, "--set", "epochs=5", "--out", model, "--json")
    )
    assert told["inference"] == name and told["metrics"]["rmse"] < told["constant"]["rmse"]
    command(capsys, "predict", model, data, "--interval", "0.9", "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert (found["lower"] < found["upper"]).all()
    assert json.loads(command(capsys, "evaluate", model, data, "--json"))["rmse"] < 1
    command(capsys, "report", model, "--out", tmp_path / "report.html", "--quiet")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    told = command(capsys, "inspect", model)
    assert ("training rows" in told) == (name == "neighbours")


def test_an_inference_that_keeps_rows_is_the_mean_of_its_neighbours(table):
    X, y = table[["a", "b"]].to_numpy(), table["y"].to_numpy()
    model = Regressor(inference="neighbours").fit(X, y)
    x = (X - X.mean(0)) / X.std(0)
    near = torch.cdist(torch.tensor(x), torch.tensor(x)).topk(9, largest=False).indices
    np.testing.assert_allclose(model.predict(X), y[near.numpy()].mean(1), rtol=1e-6)
