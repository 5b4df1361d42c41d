"""From a table to an evaluated model, in one call."""

import os
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

import ansatz
from ansatz import data
from ansatz.errors import DataError, UsageError
from ansatz.fitting.fit_model import fit_model

TINY = {"widths": (8,), "epochs": 2}


def table(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "area": rng.uniform(1, 9, size=rows),
            "town": rng.choice(["Jena", "Weimar"], size=rows),
            "year": rng.integers(2000, 2020, size=rows),
        }
    )
    frame["price"] = 3 * frame["area"] + 5 * (frame["town"] == "Jena") + rng.normal(size=rows)
    return frame


def real(name):
    if not os.environ.get("ANSATZ_DATA"):
        pytest.skip("ANSATZ_DATA names no folder of data sets")
    return data.load(name).frame


# Real tables.

REAL = {
    # name: rows of a sample, target, likelihood, options, metrics that must beat the constant
    "abalone": (None, "rings", "poisson", {"epochs": 5}, ["nll", "crps", "rmse"]),
    "diamonds": (4_000, "price", "gamma", {"epochs": 15}, ["nll", "crps", "mae"]),
    "adult": (4_000, "income", None, {"epochs": 5}, ["nll", "brier", "auc"]),
    "energy": (None, "heating_load", "normal", {"epochs": 30}, ["nll", "crps", "rmse"]),
    "wine": (None, "quality", None, {"epochs": 10}, ["nll", "crps", "rmse"]),
    "concrete": (None, "strength", "laplace", {"epochs": 20}, ["nll", "crps", "mae"]),
}


@pytest.mark.parametrize("name", REAL)
def test_real_tables_are_predicted_better_than_by_a_constant(name):
    rows, target, likelihood, options, better = REAL[name]
    frame = real(name)
    if rows is not None:
        frame = frame.sample(rows, random_state=0)
    target = target if target in frame.columns else data.load(name).target
    fit = ansatz.fit(
        frame, target=target, likelihood=likelihood, options={"widths": (32,), **options}
    )
    sign = {"auc": -1, "accuracy": -1, "r2": -1}
    for metric in better:
        assert (
            sign.get(metric, 1) * fit.metrics[metric] < sign.get(metric, 1) * fit.constant[metric]
        )
        assert fit.linear[metric] is not None
    assert fit.rows["test"] == pytest.approx(0.2 * len(frame), rel=0.1)
    assert sum(fit.rows.values()) == len(frame)
    assert fit.metrics.keys() == fit.linear.keys() == fit.constant.keys()


def test_bicycles_give_themselves_away():
    frame = real("bike-sharing").iloc[::20]
    fit = ansatz.fit(frame, target="cnt", likelihood="poisson", options=TINY)
    (leak,) = [note for note in fit.notes if "casual" in note]
    assert "registered" in leak and "--drop casual,registered" in leak
    assert any("--time dteday" in note for note in fit.notes)
    honest = ansatz.fit(
        frame,
        target="cnt",
        likelihood="poisson",
        drop=["casual", "registered"],
        time="dteday",
        options=TINY,
    )
    assert not any("casual" in note or "--time" in note for note in honest.notes)


def test_duplicates_in_the_wine_are_reported():
    fit = ansatz.fit(real("wine"), target="quality", likelihood="normal", network="linear")
    assert any(note.startswith("240 of 1599 rows are duplicates of another") for note in fit.notes)


def test_the_name_of_a_data_set_is_enough():
    fit = ansatz.fit("diabetes", target="progression", likelihood="normal", network="linear")
    assert fit.metrics["r2"] > 0.3 > fit.constant["r2"] and fit.network == "linear"


# What comes back.


def test_the_linear_model_beside_the_network_is_the_linear_fit_itself():
    frame = table()
    beside = ansatz.fit(frame, target="price", likelihood="normal", options=TINY).linear
    itself = ansatz.fit(frame, target="price", likelihood="normal", network="linear").metrics
    assert itself["rmse"] == pytest.approx(beside["rmse"], rel=1e-6)


def test_the_constant_is_the_mean_of_all_rows_that_are_not_tested():
    frame = table().assign(row=np.arange(150.0))
    fit = ansatz.fit(
        frame, target="price", likelihood="normal", roles={"row": "numeric"}, options=TINY
    )
    keys = data.row_keys(frame.drop(columns="price"), frame["price"].to_numpy(), seed=0)
    # The test rows are those of the split by content.
    split = data.split_rows(keys, seed=0, test=0.2, valid=0.2 * 0.8)
    learn, test = np.r_[split.train, split.valid], split.test
    assert len(test) == fit.rows["test"]
    y = frame["price"].to_numpy()
    rmse = np.sqrt(np.mean((y[test] - y[learn].mean()) ** 2))
    assert fit.constant["rmse"] == pytest.approx(rmse, rel=1e-6)


def test_the_document_has_the_keys_of_the_command():
    document = ansatz.fit(table(), target="price", likelihood="normal", options=TINY).to_dict()
    assert set(document) == {
        "model", "structure", "network", "parameters", "likelihood", "inference", "rows",
        "metrics", "linear", "constant", "epochs", "seconds", "seed",
        "candidates", "log_likelihood", "baselines",
    }  # fmt: skip
    assert document["model"] is None and document["structure"] == "vector"


def test_the_recipe_and_the_columns_are_said():
    fit = ansatz.fit(table(), target="price", likelihood="normal", options=TINY)
    assert fit.recipe["recipe"].startswith("8 silu") and fit.recipe["stopped"]
    assert {c.name: c.role for c in fit.columns} == {
        "area": "numeric", "town": "categorical", "year": "numeric",
    }  # fmt: skip


def test_rows_without_an_outcome_are_left_out_and_counted():
    frame = table()
    frame.loc[[2, 5], "price"] = np.nan
    fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    assert sum(fit.rows.values()) == 148
    assert "2 rows without a value of 'price' were left out." in fit.notes


def test_the_table_is_never_modified():
    frame = table()
    kept = frame.copy()
    ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    pd.testing.assert_frame_equal(frame, kept)


def test_the_order_of_the_rows_does_not_change_the_split():
    frame = table()
    a = ansatz.fit(frame, target="price", likelihood="normal", network="linear")
    b = ansatz.fit(
        frame.sample(frac=1, random_state=1), target="price", likelihood="normal", network="linear"
    )
    assert a.rows == b.rows and a.metrics["rmse"] == pytest.approx(b.metrics["rmse"], rel=1e-9)


def test_one_seed_one_fit_and_another_another():
    frame = table()
    first, same, other = (
        ansatz.fit(frame, target="price", likelihood="normal", seed=seed, options=TINY)
        for seed in (0, 0, 1)
    )
    assert first.metrics == same.metrics != other.metrics


# Splits.


def test_groups_stay_on_one_side(monkeypatch):
    frame = table().assign(patient=np.arange(150) % 15)
    seen = spy_on_jobs(monkeypatch)
    fit = ansatz.fit(frame, target="price", likelihood="normal", group="patient", options=TINY)
    (job,) = seen
    learned = set(job.group)
    assert fit.rows["test"] == 150 - len(job.group)
    assert learned.isdisjoint(set(range(15)) - learned) and 9 <= len(learned) <= 14
    inside = np.zeros(len(job.group), dtype=bool)
    inside[job.valid] = True
    assert set(job.group[inside]).isdisjoint(job.group[~inside])
    assert "patient" not in [column.name for column in fit.columns]


def test_time_splits_forward(monkeypatch):
    frame = table()
    seen = spy_on_jobs(monkeypatch)
    ansatz.fit(frame, target="price", likelihood="normal", time="year", options=TINY)
    (job,) = seen
    inside = np.zeros(len(job.time), dtype=bool)
    inside[job.valid] = True
    assert job.time[~inside].max() < job.time[inside].min()
    assert job.time.max() < frame["year"].max()


def spy_on_jobs(monkeypatch):
    seen, original = [], fit_model

    def spy(task, job, **options):
        seen.append(job)
        return original(task, job, **options)

    for module in ("fit", "scores"):
        monkeypatch.setattr(f"ansatz.fitting.{module}.fit_model", spy)
    return seen


def test_folds_evaluate_every_row_once_by_a_model_that_never_saw_it(monkeypatch):
    frame = table().assign(patient=np.arange(150) % 15)
    seen = spy_on_jobs(monkeypatch)
    fit = ansatz.fit(
        frame, target="price", likelihood="normal", folds=3, group="patient", options=TINY
    )
    whole, *parts = seen
    assert len(whole.y) == 150 and fit.rows["test"] == 0
    assert len(parts) == 3 and sum(150 - len(part.y) for part in parts) == 150
    for part in parts:
        outside = set(range(15)) - set(part.group)
        assert len(part.y) == 150 - 10 * len(outside)
    assert fit.metrics["rmse"] < fit.constant["rmse"]
    assert fit.linear["rmse"] < fit.constant["rmse"]


def test_more_folds_than_rows_are_refused_before_training(tmp_path):
    with pytest.raises(UsageError, match="folds must be from 2 to the 150"):
        ansatz.fit(
            table(),
            target="price",
            likelihood="normal",
            folds=200,
            options=TINY,
            out=tmp_path / "model",
        )
    assert not list(tmp_path.iterdir())


def test_folds_and_time_contradict_each_other():
    with pytest.raises(UsageError, match="--test"):
        ansatz.fit(table(), target="price", likelihood="normal", folds=3, time="year")


def test_groups_stay_together_and_the_test_is_later():
    frame = table(120)
    frame["who"] = np.arange(120) // 3
    frame["day"] = np.arange(120) // 3 + 2 * (np.arange(120) % 3)
    fit = ansatz.fit(
        frame, target="price", likelihood="normal", network="linear", group="who", time="day"
    )
    (note,) = [note for note in fit.notes if "split by group and time" in note]
    left_out = 120 - sum(fit.rows.values())
    assert left_out > 0
    assert f"{left_out} rows of earlier groups" in note


def test_duplicates_across_a_split_by_group_are_evaluated_apart():
    frame = pd.concat([table(60)] * 2, ignore_index=True)
    frame["patient"] = np.arange(120) // 2 % 40  # the two copies are of two patients
    fit = ansatz.fit(frame, target="price", likelihood="normal", group="patient", options=TINY)
    (note,) = [n for n in fit.notes if "evaluated rows" in n and "duplicates" in n]
    assert "without them" in note


def test_no_test_rows_no_metrics():
    fit = ansatz.fit(table(), target="price", likelihood="normal", test=0.0, options=TINY)
    assert fit.metrics is None and any("nothing is known" in note for note in fit.notes)


# Weights, offsets.


def test_a_column_of_weights_is_no_feature_and_counts():
    frame = table().assign(w=np.arange(150) % 3)
    fit = ansatz.fit(frame, target="price", likelihood="normal", weights="w", network="linear")
    kept = frame[frame["w"] > 0]
    repeated = kept.loc[kept.index.repeat(kept["w"])].drop(columns="w")
    again = ansatz.fit(repeated, target="price", likelihood="normal", network="linear")
    assert sum(fit.rows.values()) == 100
    assert again.metrics["rmse"] == pytest.approx(fit.metrics["rmse"], rel=1e-6)


def test_an_exposure_multiplies_the_mean():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "years": rng.uniform(1, 5, size=200)})
    frame["claims"] = rng.poisson(frame["years"] * np.exp(0.5 * frame["x"]))
    fit = ansatz.fit(
        frame, target="claims", likelihood="poisson", exposure="years", network="linear"
    )
    one, two = (
        fit.model.predict_frame(frame.assign(years=k * frame["years"]))["prediction"]
        for k in (1, 2)
    )
    assert_allclose(two, 2 * one, rtol=1e-12)
    with pytest.raises(DataError, match="'years', which the model needs as exposure"):
        fit.model.predict_frame(frame.drop(columns="years"))


@pytest.mark.parametrize(
    "column, use, value, says",
    [
        ("w", "weights", -1.0, r"'w', row 4: expected a finite number >= 0, got -1.0"),
        ("w", "weights", np.nan, r"'w', row 4.*got nan"),
        ("w", "weights", np.inf, r"'w', row 4.*got inf"),
        ("w", "offset", np.inf, r"'w', row 4.*got inf"),
        ("w", "exposure", 0.0, r"'w', row 4: an exposure must be positive, got 0.0"),
        ("w", "exposure", -2.0, r"'w', row 4: an exposure must be positive"),
    ],
)
def test_a_bad_weight_offset_or_exposure_names_its_row(column, use, value, says):
    frame = table().assign(w=1.0)
    frame.loc[3, "w"] = value
    with pytest.raises(DataError, match=says):
        ansatz.fit(frame, target="price", likelihood="normal", **{use: column}, network="linear")


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(DataError, match=r"'w'.*zero"):
        ansatz.fit(table().assign(w=0.0), target="price", likelihood="normal", weights="w")


# Targets (D2).


def with_target(values):
    return table().assign(price=values)


CYCLE = np.arange(150)
FAULTS = {
    "constant": (np.full(150, 3.0), None, None),
    "all missing": (np.full(150, np.nan), None, "missing in every row"),
    "text for poisson": (np.where(CYCLE % 2, "a", "b"), "poisson", "row 1.*needs numbers.*'b'"),
    "negative counts": (np.where(CYCLE == 7, -1, 2), "poisson", "row 8.*"),
    "fractional counts": (np.where(CYCLE == 7, 0.5, 2), "poisson", "row 8"),
    "zero for gamma": (np.where(CYCLE == 7, 0.0, 2.0), "gamma", "row 8"),
    "infinite": (np.where(CYCLE == 7, np.inf, 2.0), None, "row 8|inf"),
    "two for bernoulli": (CYCLE % 3, None, None),
    "one class": (np.full(150, "a"), None, "only one class, 'a'"),
    "names": ([f"name {k}" for k in CYCLE], None, "150 classes in 150 rows"),
    "dates": (pd.date_range("2020-01-01", periods=150), None, "classes|date|number"),
}


@pytest.mark.parametrize("values, likelihood, says", FAULTS.values(), ids=FAULTS)
def test_a_target_is_checked_before_training(values, likelihood, says, monkeypatch):
    frame = with_target(values)
    if says is None:
        assert ansatz.fit(frame, target="price", likelihood=likelihood, options=TINY).metrics
        return
    monkeypatch.setattr(sys.modules["ansatz.fitting.fit"], "split", None)  # never reached
    with pytest.raises(DataError, match=says):
        ansatz.fit(frame, target="price", likelihood=likelihood, options=TINY)


def test_images_that_a_table_names_and_that_are_not_there_are_reported():
    frame = table().assign(photo=[f"photos/{k}.jpg" for k in CYCLE])
    fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    assert any("column 'photo' names images, which take no part" in note for note in fit.notes)


def test_a_named_likelihood_takes_as_many_classes_as_there_are():
    frame = with_target([f"name {k // 2}" for k in CYCLE])
    point = {"inference": "point", "options": TINY}
    fit = ansatz.fit(frame, target="price", likelihood="categorical", **point)
    assert len(fit.model.classes_) == 75


@pytest.mark.parametrize("value", [1e308, -1e308, 1e-308])
def test_numbers_at_the_edge_of_the_machine_are_predicted_or_refused(value):
    frame = with_target(np.where(CYCLE == 7, value, CYCLE % 5 * 1.0))
    try:
        fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    except (ansatz.errors.AnsatzError, ValueError) as error:
        assert "\n" not in str(error)
    else:
        assert np.isfinite(fit.model.predict_frame(frame)["prediction"]).all()


def test_yes_and_no_are_classes_and_so_are_zero_and_one():
    words = ansatz.fit(with_target(np.where(CYCLE % 3, "no", "yes")), target="price", options=TINY)
    codes = ansatz.fit(with_target((CYCLE % 3 == 0).astype(int)), target="price", options=TINY)
    assert words.likelihood == codes.likelihood == "bernoulli"
    assert words.metrics["nll"] == pytest.approx(codes.metrics["nll"], rel=0.3)
    assert words.model.classes_.tolist() == ["no", "yes"] and codes.model.classes_.tolist() == [
        0,
        1,
    ]


def test_na_as_a_word_is_a_level_in_memory():
    frame = table().assign(country=np.where(CYCLE % 2, "NA", "DE"))
    fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    (country,) = [column for column in fit.columns if column.name == "country"]
    assert country.levels == ("DE", "NA") and country.missing == 0
    classes = ansatz.fit(frame, target="country", options=TINY).model.classes_
    assert classes.tolist() == ["DE", "NA"]


def test_a_class_with_one_row_does_not_stop_the_fit():
    frame = with_target(np.where(CYCLE == 7, "rare", np.where(CYCLE % 2, "a", "b")))
    fit = ansatz.fit(frame, target="price", options=TINY)
    assert fit.likelihood == "categorical" and fit.model.classes_.tolist() == ["a", "b", "rare"]


def test_a_class_that_only_evaluated_rows_have_is_evaluated_all_the_same():
    frame = table().sort_values("year", ignore_index=True)
    frame["kind"] = np.array(["a", "b", "c"])[np.arange(150) % 3]
    frame.loc[frame["year"] == frame["year"].max(), "kind"] = "new"
    fit = ansatz.fit(frame, target="kind", time="year", options=TINY)
    assert all(np.isfinite(part["nll"]) for part in (fit.metrics, fit.linear, fit.constant))


def test_several_targets_of_numbers_and_no_mixture():
    frame = table().assign(rent=lambda f: f["price"] / 10)
    fit = ansatz.fit(frame, target=["price", "rent"], options=TINY)
    found = fit.model.predict_frame(frame, interval=0.9)
    assert {"prediction_price", "lower_rent"} <= set(found.columns)
    with pytest.raises(DataError, match="several targets must all be numbers"):
        ansatz.fit(frame, target=["price", "town"])


def test_features_that_are_infinite_are_named():
    frame = table()
    frame.loc[4, "area"] = np.inf
    with pytest.raises((DataError, ValueError), match=r"area.*inf|inf.*area"):
        ansatz.fit(frame, target="price", likelihood="normal", options=TINY)


def test_a_copy_of_the_target_and_an_id_are_reported():
    frame = table().assign(cost=lambda f: 2 * f["price"] + 1, id=np.arange(150) + 1000)
    fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    assert any("'cost' gives the target 'price' away" in note for note in fit.notes)
    assert any("'id'" in note and "left out" in note for note in fit.notes)
    assert {c.name: c.role for c in fit.columns}["id"] == "id"


# Requests that cannot be honoured.


@pytest.mark.parametrize(
    "change, says",
    [
        ({"target": "prise"}, r"no column 'prise'.*'price'"),
        ({"target": []}, "--target"),
        ({"weights": "tuwn"}, r"no column 'tuwn' for weights.*'town'"),
        ({"group": "price"}, "both target and group"),
        ({"drop": ["aria"]}, r"no column 'aria'.*'area'"),
        ({"roles": {"aria": "numeric"}}, r"'aria'.*'area'"),
        ({"roles": {"area": "number"}}, "unknown role 'number'"),
        ({"x": "graf"}, "graf"),
        ({"likelihood": "poison"}, "poisson"),
        ({"network": "mpl"}, "mlp"),
        ({"inference": "hmc"}, "inference"),
        ({"options": {"lerning_rate": 1}}, r"lerning_rate"),
        ({"test": 1.5}, "test"),
        ({"folds": 1}, "folds"),
        ({"folds": 1_000}, "folds"),
        ({"seperator": ";"}, "seperator"),
    ],
)
def test_a_wrong_request_says_what_would_be_right(change, says):
    with pytest.raises((UsageError, DataError, TypeError), match=says):
        ansatz.fit(**{"data": table(), "target": "price", "options": TINY, **change})


# The model that comes back reads tables by name (D4).


def test_tables_to_predict_may_have_other_orders_and_more_columns():
    frame = table()
    model = ansatz.fit(frame, target="price", likelihood="normal", options=TINY).model
    expected = model.predict_frame(frame)
    other = frame[["year", "town", "area"]].assign(more="x")
    pd.testing.assert_frame_equal(model.predict_frame(other), expected)
    with pytest.raises(DataError, match=r"lacks 1 columns of the fit: 'area'"):
        model.predict_frame(frame.drop(columns="area"))
    assert len(model.predict_frame(frame.iloc[:0])) == 0
    assert model.evaluate(frame)["rmse"] > 0
    with pytest.raises(DataError, match="no target column 'price' of the model"):
        model.evaluate(frame.drop(columns="price"))


def test_fitting_draws_nothing_from_the_users_generators():
    torch.manual_seed(1), np.random.seed(1)
    expected = torch.rand(2), np.random.rand(2)
    torch.manual_seed(1), np.random.seed(1)
    ansatz.fit(table(), target="price", likelihood="normal", options={**TINY, "dropout": 0.2})
    assert torch.equal(torch.rand(2), expected[0])
    np.testing.assert_array_equal(np.random.rand(2), expected[1])


def test_levels_that_only_tested_rows_have_are_a_note():
    frame = table(400)
    frame["town"] = [f"T{k}" if k % 9 == 0 else "Jena" for k in range(400)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = ansatz.fit(frame, target="price", likelihood="normal", options=TINY)
    assert any(note.startswith("evaluated rows: column 'town'") for note in fit.notes)
