"""Forecasts: windows, laws at every step, splits in time, paths, from tables to saved models."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Forecaster
from ansatz.cli.main import run
from ansatz.data.batch import Batch
from ansatz.data.sequences.panel import panel_of
from ansatz.data.sequences.windows import Windows, WindowSource
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.problem import structure_of
from ansatz.likelihoods import Normal
from ansatz.networks import WindowLevel
from ansatz.outcomes.forecast_baselines import NaiveForecast, StateSpaceForecast
from ansatz.outcomes.path import copula_of, sample_paths
from ansatz.storage import read_tensors
from ansatz.structures.series.encoder import fit_window_encoder
from ansatz.training import Callback

RNG = np.random.default_rng(0)
N = 160
HOURS = pd.date_range("2024-01-01", periods=N, freq="h")
LOAD = 20 + 5 * np.sin(np.arange(N) * 2 * np.pi / 24) + RNG.normal(size=N)
TABLE = pd.DataFrame({"date": HOURS, "load": LOAD, "wind": RNG.normal(size=N)})
PANEL = pd.DataFrame(
    {
        "week": np.tile(np.arange(60), 3),
        "place": np.repeat(["a", "b", "c"], 60),
        "cases": RNG.poisson(np.repeat([2.0, 5.0, 9.0], 60)),
        "people": np.repeat([10.0, 20.0, 40.0], 60),
    }
)
QUICK = {"steps": 20, "window": 24, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng():
        return Forecaster("normal", horizon=4, **QUICK).fit(TABLE, "load", time="date")


@pytest.fixture
def few_baselines(monkeypatch):
    """No ETS and no ARIMA."""
    monkeypatch.setattr("ansatz.outcomes.forecast_baselines.MOST_SERIES", 0)


def windows(table=TABLE, horizon=3, length=5, **how):
    return Windows.all(
        panel_of(table, "t", **{"time": "date", "target": "load", **how}),
        horizon=horizon,
        length=length,
    )


def test_windows_are_those_of_a_loop():
    rows = windows(PANEL, 2, 6, time="week", target="cases", id="place")
    encoder = fit_window_encoder(rows.with_link("identity"), {})
    found, y, row = encoder.inputs(rows), rows.outcomes(), 0
    for name in "abc":
        series = PANEL[PANEL.place == name].cases.to_numpy(float)
        for t in range(5, 59):
            x = series[t - 5 : t + 1]
            unit = max(x.std() / encoder.learned.scale, 0.05)
            expected = (x - x[-1]) / encoder.learned.scale / unit
            np.testing.assert_allclose(found.values[row, :, 0], expected, atol=1e-12)
            assert_close(found.level[row, 0].item() * encoder.learned.scale, x[-1])
            np.testing.assert_array_equal(
                y[row], [series[t + h] if t + h < 60 else np.nan for h in (1, 2)]
            )
            row += 1
    assert row == len(rows)


def test_batches_are_the_rows_in_an_order_of_the_epoch_alone():
    rows = windows()
    encoder = fit_window_encoder(rows, {})
    batch = Batch.of(torch.empty(len(rows), 0), torch.from_numpy(rows.outcomes()))
    source = WindowSource(encoder.gather(rows, torch.float64), batch, rows, 16, seed=3)
    everything, seen = encoder.inputs(rows), []
    for part in source.batches(2):
        assert_close(part.inputs.values, everything.values[part.index])
        seen += part.index.tolist()
    assert sorted(seen) == list(range(len(rows)))
    later = list(source.batches(2, start=3))
    assert torch.equal(later[0].index, list(source.batches(2))[3].index)
    assert len(later) == len(source) - 3


def test_no_outcome_lies_on_both_sides_of_a_boundary():
    fit = ansatz.fit(TABLE, target="load", time="date", horizon=4, window=24,
                     likelihood="normal", options={"steps": 5})  # fmt: skip
    _, job, parts = fit.split_problem
    step, (learn, test) = job.rows.step, (parts.learn, parts.test)
    valid = learn[parts.valid]
    train = np.setdiff1d(learn, valid)
    assert step[train].max() + 4 < step[valid].min() + 1
    assert step[valid].max() + 4 < step[test].min() + 1 == N - N // 5
    assert step[test].max() + 4 == N - 1
    assert fit.metrics["coverage_90"] is not None
    assert {"last value", "seasonal naive", "ETS", "ARIMA"} <= set(fit.baselines)


def test_later_values_of_covariates_change_no_forecast(model):
    rows = windows(horizon=4, length=24)
    later = TABLE.copy()
    later.loc[100:, ["wind", "load"]] = 1e3
    changed = windows(later, horizon=4, length=24)
    early = rows.origin < 100
    one, other = (
        model.model_.predictive(each[np.flatnonzero(early)]).raw for each in (rows, changed)
    )
    assert torch.equal(one, other)


def test_what_is_known_ahead_does_change_forecasts():
    given = {"time": "date", "known": ["wind"]}
    made = Forecaster("normal", horizon=4, **QUICK).fit(TABLE, "load", **given)
    future = pd.DataFrame({"date": pd.date_range(HOURS[-1], periods=5, freq="h")[1:]})
    calm, storm = (
        made.predict(pd.concat([TABLE, future.assign(load=np.nan, wind=w)])) for w in (0.0, 9.0)
    )
    assert np.abs(calm - storm).max() > 1e-6


def test_a_series_alone_and_among_others_has_the_same_forecast():
    made = Forecaster("poisson", horizon=2, **{**QUICK, "window": 8})
    made.fit(PANEL, "cases", time="week", id="place", exposure="people")
    together = made.predict(PANEL)
    alone = np.concatenate([made.predict(PANEL[PANEL.place == name]) for name in "abc"])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-10)
    assert made.predict(PANEL.assign(place="new" + PANEL.place)).shape == (3, 2)


@pytest.mark.parametrize(
    "law", ["quantiles", "negative_binomial", "zero_inflated_poisson", "student_t", "gamma"]
)
def test_every_law_forecasts(law):
    y = RNG.poisson(6.0, size=120) + (law == "gamma")
    made = Forecaster(law, horizon=3, window=10, steps=15, random_state=0).fit(y)
    bounds = made.interval(level=0.5)
    assert bounds.shape == (1, 3, 2) and (bounds[..., 0] <= bounds[..., 1]).all()
    assert np.isfinite(made.paths(count=4)).all()
    if law == "quantiles":
        raw = made.model_.predictive(made._given(None).rows).raw
        assert (made.likelihood_.quantiles(raw).diff(dim=-1) >= 0).all()


def test_a_saved_model_forecasts_the_same(model, tmp_path):
    model.save(tmp_path / "m")
    again = ansatz.load(tmp_path / "m")
    pd.testing.assert_frame_equal(again.forecast(paths=3), model.forecast(paths=3))
    np.testing.assert_array_equal(again.predict(TABLE), model.predict())


def test_a_shifted_series_has_shifted_forecasts(model):
    """With an identity link the level of a window is added to the location alone."""
    moved, rounding = TABLE.assign(load=TABLE.load + 1e3), 4 * 2**-24 * 1e3  # float32 scales
    np.testing.assert_allclose(
        model.predict(moved) - 1e3, model.predict(TABLE), rtol=0, atol=rounding
    )
    np.testing.assert_allclose(
        model.interval(moved) - 1e3, model.interval(TABLE), rtol=0, atol=rounding
    )


def test_the_level_is_its_formula():
    f, at = torch.randn(5, 6), torch.rand(5, 5).add(0.5)
    level = WindowLevel(6, 3).settle("identity", torch.full((3, 2), 2.0), 4.0)
    found = level(f, at)
    for h in range(3):
        location = f[:, 2 * h] * at[:, 1] + 4.0 / 2.0 * at[:, 0]
        assert_close(found[:, 2 * h], location)
        assert_close(found[:, 2 * h + 1], f[:, 2 * h + 1] + at[:, 1].log() / 2.0)
    rates = WindowLevel(6, 3).settle("log", torch.full((3, 2), 2.0), 4.0)(f, at)
    assert_close(rates[:, 2], f[:, 2] + (at[:, 0] + at[:, 3]) / 2.0)
    assert_close(rates[:, 3], f[:, 3])


def test_paths_have_the_margins_and_the_dependence_of_their_copula():
    H, rows = 3, 4_000
    root = torch.tensor([[1.0, 0, 0], [0.8, 0.6, 0], [0.5, 0.5, 0.5**0.5]])
    y = torch.randn(rows, H) @ root.T
    raw = torch.stack([torch.zeros(rows, H), torch.full((rows, H), 0.541324854612918)], -1)
    law = Predictive(Normal(), raw)  # standard normal
    copula = copula_of(law, y, torch.ones(rows))
    assert_close(copula, root @ root.T, atol=5 / rows**0.5, rtol=0)
    one = Predictive(Normal(), raw[:1])
    drawn = sample_paths(one, copula, 20_000, torch.Generator().manual_seed(0))[0]
    assert_close(torch.corrcoef(drawn.T), copula, atol=0.03, rtol=0)
    assert_close(drawn.std(0), torch.ones(3), atol=0.03, rtol=0)


def test_the_seasonal_naive_repeats_the_last_season():
    made = Forecaster("normal", horizon=30, window=48, steps=1).fit(TABLE, "load", time="date")
    rows = windows(horizon=30, length=48).with_link("identity")
    rows.season = 24
    from ansatz.fitting.job import make_job

    job = make_job(made.task(rows), rows, rows.outcomes(), reset=True)
    naive = NaiveForecast(Normal(), job, 24)
    centre = naive.predictive(rows).raw[..., 0] - naive.objective.shift[:, 0]
    t = int(rows.origin[7])
    expected = [LOAD[t + h - 24 * -(-h // 24)] for h in range(1, 31)]
    np.testing.assert_allclose(centre[7], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["ETS", "ARIMA"])
def test_state_spaces_forecast_as_statsmodels_does(kind):
    pytest.importorskip("statsmodels")
    rows = windows(horizon=5, length=30)
    rows.season = 12

    class Job:
        pass

    job = Job()
    job.rows = rows
    made = StateSpaceForecast(kind, job)
    served = made.predictive(rows[[20]])
    t = int(rows.origin[20])
    theirs = made._model(LOAD[: t + 1]).filter(made.found[0]).get_forecast(5)
    distribution = served.likelihood.distribution(served.raw)
    np.testing.assert_allclose(distribution.mean[0], theirs.predicted_mean, rtol=1e-5)
    np.testing.assert_allclose(distribution.variance[0], theirs.var_pred_mean, rtol=1e-4)


def test_neighbours_are_the_mean_of_those_beside():
    edges = pd.DataFrame({"one": ["a", "a"], "other": ["b", "c"]})
    panel = panel_of(PANEL, "t", time="week", target="cases", id="place", edges=edges)
    wide = PANEL.pivot(index="week", columns="place", values="cases").to_numpy(float)
    np.testing.assert_allclose(panel.past[:60, -1], wide[:, 1:].mean(1))
    np.testing.assert_allclose(panel.past[60:120, -1], wide[:, 0])


def test_gaps_are_not_observed():
    some = TABLE.drop(index=[40, 41, 90])
    rows = windows(some)
    assert "3 steps" in rows.panel.notes[0]
    y, weight = rows.outcomes(), rows.weights()
    assert (weight == np.isfinite(y)).all() and (weight == 0).sum() >= 9
    made = Forecaster("normal", horizon=3, **QUICK).fit(some, "load", time="date")
    assert made.model_.encoder.learned.gaps
    assert np.isfinite(made.predict()).all()


BAD = {
    "a time that is there twice": (
        lambda: TABLE.iloc[[0, 1, 1, 2]], {}, "row 3: time 2024-01-01 01:00:00 is there twice"
    ),
    "times in two formats": (
        lambda: TABLE.assign(date=TABLE.date.astype(str).where(TABLE.index != 5, "1/2/24")),
        {},
        "row 6, column 'date'.*got '1/2/24'",
    ),
    "a long horizon": (lambda: TABLE, {"horizon": 500}, "horizon 500 is longer"),
    "one step": (lambda: TABLE[:1], {}, "longest has 1 step"),
    "words": (lambda: TABLE.assign(load="x"), {}, "row 1, column 'load': expected a number"),
}  # fmt: skip


@pytest.mark.parametrize("table, options, message", BAD.values(), ids=BAD)
def test_bad_tables_are_refused_in_a_line(table, options, message):
    made = Forecaster("normal", **{"horizon": 4, "steps": 3, **options})
    with pytest.raises((DataError, UsageError), match=message):
        made.fit(table(), "load", time="date")


def test_an_unknown_neighbour_is_refused():
    with pytest.raises(DataError, match="edges, row 1: t has no series 'z'"):
        edges = pd.DataFrame({"one": ["a"], "other": ["z"]})
        panel_of(PANEL, "t", time="week", target="cases", id="place", edges=edges)


def test_a_constant_series_is_forecast():
    made = Forecaster("normal", horizon=2, window=5, steps=3).fit(np.full(80, 7.0))
    np.testing.assert_allclose(made.predict(), 7.0, atol=0.05)


def test_months_are_steps():
    dates = pd.date_range("2000-01-31", periods=40, freq="MS")
    table = pd.DataFrame({"month": dates, "y": np.arange(40.0)})
    panel = panel_of(table, "t", time="month", target="y")
    assert panel.clock.season == 12 and len(panel.target) == 40
    assert (panel.clock.times(np.arange(40)) == dates).all()


@pytest.mark.parametrize("network", ["linear_window", "gru", "mingru", "lru"])
def test_recurrent_networks_forecast(network):
    made = Forecaster("normal", horizon=2, network=network, window=8, steps=3)
    assert made.fit(LOAD[:60]).predict().shape == (1, 2)


class PowerCut(Callback):
    def on_step(self, run, logs):
        if run.number == 13:  # in the middle of an epoch
            raise OSError("power cut")


def test_an_interrupted_fit_ends_in_the_same_bits(tmp_path, monkeypatch, few_baselines):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    how = {"target": "load", "time": "date", "horizon": 2, "window": 12, "likelihood": "normal"}
    how |= {"options": {"steps": 30, "evaluations": 6}, "resume": True}
    whole = ansatz.fit(str(tmp_path / "t.csv"), **how, out=str(tmp_path / "a"))
    monkeypatch.setattr("ansatz.training.loop._SECONDS_BETWEEN_CHECKPOINTS", 0)
    with pytest.raises(OSError, match="power cut"):
        ansatz.fit(str(tmp_path / "t.csv"), **how, out=str(tmp_path / "b"), callbacks=[PowerCut()])
    again = ansatz.fit(str(tmp_path / "t.csv"), **how, out=str(tmp_path / "b"))
    ours, theirs = (read_tensors(tmp_path / m / "weights.safetensors") for m in "ab")
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)
    assert whole.metrics == again.metrics


def test_the_commands_fit_forecast_and_report(tmp_path, capsys, few_baselines):
    file, folder = tmp_path / "load.csv", tmp_path / "m"
    TABLE.to_csv(file, index=False)
    words = ["--time", "date", "--target", "load", "--horizon", "3", "--window", "24", "-q"]
    words += ["--likelihood", "normal", "--set", "steps=10"]
    assert run(["fit", str(file), *words, "--out", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["crps"] > 0
    assert run(["forecast", str(folder), "--levels", "0.5,0.9", "--paths", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["step"] for row in found] == [1, 2, 3]
    assert {"series", "time", "prediction", "lower_50", "upper_90", "path_2"} <= found[0].keys()
    assert run(["forecast", str(folder), str(file)]) == 0
    assert capsys.readouterr().out.startswith("row,series,time,step,prediction,lower,upper")
    assert run(["evaluate", str(folder), str(file), "--json"]) == 0
    page = tmp_path / "m.html"
    assert run(["report", str(folder), "--out", str(page), "-q"]) == 0
    for title in ("Scores by horizon", "Skill against baselines", "Residual autocorrelation"):
        assert title in page.read_text("utf-8")


def test_a_horizon_makes_series_of_a_table_with_identifiers():
    options = {"identifier": "shop", "horizon": 4}
    assert structure_of("sales.csv", None, options, "forecast") == "series"
