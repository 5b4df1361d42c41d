"""Every kind of model has a report, from the command, a fit and arrays."""

import json

import numpy as np
import pytest
from tests.figures.test_page import check_inert
from tests.report.conftest import KINDS, make_hostile_page, number

import ansatz
from ansatz.cli.main import run
from ansatz.errors import DataError, UsageError
from ansatz.fitting.replay import replay
from ansatz.report import build, replayed

SLOW = {"cox", "groups", "time", "quantiles"}  # like others, with one thing changed
DRAWN = {"regression", "two classes", "survival"}


def check_report(kind, fitted):
    evidence = replayed(replay(fitted(kind)), settings={"refits": 0, "draws": 8})
    report = build(evidence)
    found = check_inert(report.page)
    assert "Could not be computed" not in found.text
    assert len(report.verdict) == 2 and report.verdict[1].startswith("Calibration: ")
    titles = [section.title for section in report.sections]
    assert {"What was fitted", "Scores", "Rows with the largest loss", "The data"} <= set(titles)


@pytest.mark.parametrize(
    "kind", [k if k in DRAWN else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
def test_every_kind_of_outcome_has_a_report(kind, fitted):
    check_report(kind, fitted)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in DRAWN | SLOW])
def test_every_kind_of_outcome_has_the_sections_of_a_report(kind, fitted, blank):
    check_report(kind, fitted)


def test_one_class_in_the_test_rows_is_no_obstacle(fitted, blank):
    fit = fitted("two classes")
    X, y = fit.rows_of["test"]
    one = (y == "yes").to_numpy()
    report = fit.model.report(X[one], y[one], refits=0)
    assert "Could not be computed" not in report.page


def test_the_command_writes_the_page_beside_the_model(tmp_path, capsys, monkeypatch, blank):
    monkeypatch.chdir(tmp_path)
    frame, _ = number()
    frame.to_csv("houses.csv", index=False)
    options = ["--target", "y", "--likelihood", "normal", "--network", "linear", "-q"]
    assert run(["fit", "houses.csv", *options]) == 0
    capsys.readouterr()
    costs = ["--cost-under", "5", "--cost-over", "1"]
    assert run(["report", "houses-model", "--json", *costs, "--refits", "2"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    page = tmp_path / "houses-model.html"
    assert document["page"] == str(page) and document["bytes"] == page.stat().st_size
    assert "Decisions from costs" in document["sections"] and "Effects" in document["sections"]
    assert "ansatz: report: scores" in told.err
    check_inert(page.read_text(encoding="utf-8"))
    assert run(["report", "houses-model"]) == 2  # the page is there already
    assert "exists" in capsys.readouterr().err
    assert run(["report", "houses-model", "--overwrite", "--cost-under", "5", "-q"]) == 2
    assert "go together" in capsys.readouterr().err
    (tmp_path / "houses.csv").rename(tmp_path / "moved.csv")
    again = ["--refits", "0", "-q"]
    assert run(["report", "houses-model", "--out", "b.html", "-q"]) == 3
    assert "--data" in capsys.readouterr().err
    assert run(["report", "houses-model", "--out", "b.html", "--data", "moved.csv", *again]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A linear model of y") and "b.html" in lines[-1]
    assert run(["report", "nowhere"]) == 4


def test_an_estimator_reports_on_arrays_and_tables(tmp_path, fitted, blank):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] + 0.1 * rng.normal(size=60)
    model = ansatz.Regressor("normal", network="linear").fit(x[:40], y[:40])
    path = tmp_path / "a.html"
    report = model.report(x[40:], y[40:], path, training=(x[:40], y[:40]), refits=0)
    assert path.read_text(encoding="utf-8") == report.page
    assert "constant" in check_inert(report.page).text
    alone = model.report(x[40:], y[40:])
    assert "were not given" in alone.page
    frame, _ = number()
    assert "Scores" in fitted("regression").model.report(frame[:30], refits=0).page


def test_what_cannot_be_reported_is_said():
    x = np.arange(20.0).reshape(-1, 1)
    model = ansatz.Regressor("normal", network="linear").fit(x, x[:, 0])
    with pytest.raises(DataError):
        model.report(x[:0], x[:0, 0])
    with pytest.raises(UsageError, match="positive"):
        model.report(x, x[:, 0], costs={"under": -1.0, "over": 1.0})
    fit = ansatz.fit(
        {"x": range(30), "y": range(30)},
        target="y",
        likelihood="normal",
        network="linear",
        test=0.0,
    )
    with pytest.raises(DataError, match="without test rows"):
        replayed(replay(fit))


def test_hostile_data_make_an_inert_page(hostile_page):
    found = check_inert(hostile_page)
    assert "Could not be computed" not in found.text
    assert len(hostile_page) < 5_000_000


def test_an_identical_report_has_identical_bytes(hostile_page):
    assert make_hostile_page() == hostile_page
