"""Numeric columns as features: standardised, bent, binned."""

import itertools

import numpy as np
import pytest
import torch

from ansatz.data import Preprocessor
from ansatz.data.numeric import Bins, weighted_moments
from ansatz.estimators import Regressor
from ansatz.fitting.recipe import choose_recipe
from ansatz.structures.vector.export import TableColumns


def columns(rows=30_000):
    random = np.random.default_rng(0)
    noise = random.normal(size=rows)
    return {
        "around a billion": 1e9 + noise,
        "in order": np.sort(noise),
        "two clusters, one after the other": np.where(np.arange(rows) < rows // 2, 0, 1e6) + noise,
        "an outlier at the end": np.append(noise[:-1], 1e9),
        "constant but at the end": np.append(np.full(rows - 1, 3.7), 4.7),
        "single precision": noise.astype(np.float32),
    }


@pytest.mark.parametrize("name", columns())
def test_moments_are_those_of_many_more_digits(name):
    column = columns()[name]
    weight = np.random.default_rng(1).integers(0, 4, len(column)).astype(float) + 0.5
    wide, w = column.astype(np.longdouble), weight.astype(np.longdouble)
    mean = (w * wide).sum() / w.sum()
    deviation = np.sqrt((w * (wide - mean) ** 2).sum() / w.sum())
    found = weighted_moments(column[:, None], weight)
    assert float(found[0][0]) == pytest.approx(float(mean), rel=1e-14, abs=1e-14)
    assert float(found[1][0]) == pytest.approx(float(deviation), rel=1e-10)


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -7e-20])
def test_what_is_constant_has_no_deviation(value):
    assert weighted_moments(np.full((20_000, 1), value), np.ones(20_000))[1].tolist() == [0.0]


def test_missing_numbers_are_left_out_and_counted():
    random = np.random.default_rng(2)
    column = random.normal(1e8, 2, 90_000)
    gone = random.random(90_000) < 0.3
    gone[:40_000] = True  # a block without a number
    with_gaps = np.where(gone, np.nan, column)
    mean, deviation, missing = weighted_moments(with_gaps[:, None], np.ones(90_000))
    assert missing.tolist() == [gone.sum()]
    assert mean[0] == pytest.approx(column[~gone].mean(), rel=1e-12)
    assert deviation[0] == pytest.approx(column[~gone].std(), rel=1e-10)


def naive(x, edges):
    return [min(max((x - a) / (b - a), 0), 1) for a, b in itertools.pairwise(edges)]


def test_positions_are_the_formula():
    edges = [-1.0, 0.0, 0.5, 4.0]
    bins = Bins(edges=edges, center=[0.0] * 3, scale=[1.0] * 3)
    x = np.array([-3.0, -0.25, 0.0, 0.1, 2.0, 9.0])
    np.testing.assert_allclose(bins.positions(x), [naive(v, edges) for v in x], atol=1e-15)


def test_any_function_that_is_linear_between_the_edges_is_a_linear_map_of_them():
    random = np.random.default_rng(0)
    x = random.normal(size=500)
    bins = Bins.fit(x, np.ones(500), count=7)
    y = np.interp(x, bins.edges, random.normal(size=8))
    design = np.column_stack([np.ones(500), bins.encode(x)])
    _, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    assert residual < 1e-20


def test_edges_are_even_over_different_values_not_over_rows():
    column = np.concatenate([np.zeros(9_000), np.arange(1.0, 101.0)])
    bins = Bins.fit(column, np.ones(len(column)), count=10)
    np.testing.assert_allclose(bins.edges, np.arange(0, 101, 10))


def test_features_have_mean_zero_and_a_deviation_of_at_most_one():
    column, weight = np.random.default_rng(1).gamma(0.3, size=400), np.ones(400)
    z = Bins.fit(column, weight, count=16).encode(column)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-12)
    assert (z.std(0) <= 1 + 1e-12).all()


def test_a_row_of_weight_three_counts_like_three_rows():
    column, weight = np.array([0.0, 1.0, 2.0, 5.0]), np.array([3.0, 1.0, 2.0, 1.0])
    once = Bins.fit(column, weight, count=3)
    thrice = Bins.fit(np.repeat(column, weight.astype(int)), np.ones(7), count=3)
    np.testing.assert_allclose(once.center, thrice.center)
    np.testing.assert_allclose(once.scale, thrice.scale)


@pytest.mark.parametrize("column", [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [np.nan, 2.0, 2.0]])
def test_two_values_need_no_bins(column):
    assert Bins.fit(np.array(column), np.ones(3), count=4) is None


def table():
    random = np.random.default_rng(2)
    age = random.normal(40, 10, 60)
    age[::7] = np.nan
    return {"age": age, "sex": random.choice(["f", "m"], 60), "size": random.gamma(2, size=60)}


def test_the_features_stand_with_their_column_and_come_back_from_the_state():
    fitted = Preprocessor.fit(table(), bins=4)
    assert fitted.feature_names[:3] == ["age", "age[missing]", fitted.feature_names[2]]
    assert sum(name.startswith("age[") for name in fitted.feature_names) == 5
    (x,) = fitted.transform(table())
    (again,) = Preprocessor.from_state(fitted.state()).transform(table())
    assert torch.equal(x, again) and x.shape[1] == len(fitted.feature_names) == 13
    missing = np.isnan(table()["age"])
    assert (x[missing][:, 2:6] == 0).all()


def test_the_graph_of_an_export_has_the_same_features():
    numbers = {name: values for name, values in table().items() if name != "sex"}
    fitted = Preprocessor.fit(numbers, bins=4, dtype=torch.float64)
    graph = TableColumns(fitted)
    (found,) = graph(*(torch.from_numpy(values) for values in numbers.values()))
    torch.testing.assert_close(found, fitted.transform(numbers)[0])


def test_the_recipe_cuts_from_ten_thousand_rows_on():
    assert choose_recipe(9_999).bins == 0
    assert choose_recipe(10_000).bins == choose_recipe(1e6).bins == 32


def test_a_network_sees_a_jump_that_it_would_round_off():
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (600, 1))
    y = np.sign(np.sin(12 * x[:, 0])) + 0.1 * random.normal(size=600)
    options = {"epochs": 20, "widths": (16,), "holdout": 0.0}
    scores = [
        Regressor("mse", bins=bins, **options).fit(x[:500], y[:500]).score(x[500:], y[500:])
        for bins in (0, 32)
    ]
    assert scores[1] > 0.6 > scores[0]


def test_hundreds_of_columns_and_networks_of_ones_own_stay_as_they_are():
    x, y = np.random.default_rng(4).normal(size=(10_000, 65)), np.zeros(10_000)
    y[:5_000] = 1
    wide = Regressor("mse", epochs=1).fit(x, y)
    assert wide.recipe_.bins == 0 and wide.model_.encoder.preprocessor.spec.features == 65
    own = Regressor("mse", network=torch.nn.Linear(2, 1), epochs=1).fit(x[:, :2], y)
    assert own.recipe_.bins == 0
    narrow = Regressor("mse", epochs=1).fit(x[:, :20], y)
    assert narrow.recipe_.bins == 25  # 512 features in all
