import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from ansatz.data import DataWarning, Preprocessor, infer_columns
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.spec import InputSpec


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "sex": rng.choice(["M", "F"], n),
            "size": rng.lognormal(0, 2, n),
            "grade": pd.Categorical(
                rng.choice(["lo", "mid", "hi"], n), ["lo", "mid", "hi"], ordered=True
            ),
            "day": pd.date_range("2023-01-05", periods=n, freq="5D").astype(str),
            "town": rng.choice([f"t{k}" for k in range(40)], n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::9, "sex"] = None
    return frame


def test_numbers_are_standardised_as_by_scikit_learn():
    from sklearn.preprocessing import StandardScaler

    x = np.random.default_rng(0).normal(3, 5, size=(50, 4))
    (z,) = Preprocessor.fit(x, dtype=torch.float64).transform(x)
    assert_close(z, torch.as_tensor(StandardScaler().fit_transform(x)))


@pytest.mark.parametrize("purpose", ["network", "linear"])
@pytest.mark.parametrize("quantile", [False, True])
def test_a_weight_is_a_number_of_repetitions(purpose, quantile):
    frame = table()
    times = np.random.default_rng(1).integers(0, 4, len(frame))
    columns = infer_columns(frame)
    options = {"purpose": purpose, "quantile": quantile, "dtype": torch.float64}
    weighted = Preprocessor.fit(frame, columns, weight=times, **options)
    repeated = Preprocessor.fit(frame.loc[frame.index.repeat(times)], columns, **options)
    assert weighted.feature_names == repeated.feature_names
    assert weighted.spec == repeated.spec
    for a, b in zip(
        weighted.transform(frame, notes=[]), repeated.transform(frame, notes=[]), strict=True
    ):
        assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_standardised_features_have_weighted_mean_0_and_variance_1():
    x, w = np.random.default_rng(0).normal(1e6, 1, size=(50, 3)), np.arange(50.0)
    (z,) = Preprocessor.fit(x, weight=w, dtype=torch.float64).transform(x)
    w = torch.as_tensor(w) / w.sum()
    assert_close(w @ z, torch.zeros(3), atol=1e-6, rtol=0)
    assert_close(w @ z**2, torch.ones(3), atol=1e-6, rtol=0)


def test_features_stand_in_the_order_of_their_columns():
    preprocessor = Preprocessor.fit(table())
    owners = [name.partition("[")[0] for name in preprocessor.feature_names]
    assert list(dict.fromkeys(owners)) == ["age", "sex", "size", "grade", "day"]
    assert preprocessor.feature_names[:2] == ["age", "age[missing]"]
    assert preprocessor.spec == InputSpec("vector", len(owners), (40 - _absent_towns(),))


def _absent_towns():
    return 40 - table()["town"].nunique()


def test_a_missing_number_is_the_mean_and_is_marked():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, 6.0]})
    preprocessor = Preprocessor.fit(frame, dtype=torch.float64)
    assert preprocessor.feature_names == ["a", "a[missing]", "b"]
    (z,) = preprocessor.transform(frame)
    assert_close(z[:, 0], torch.tensor([-1.0, 0.0, 1.0]))
    assert_close(z[:, 1], torch.tensor([0.0, 1.0, 0.0]))
    assert "1 missing in training" in preprocessor.notes[0]


def test_a_column_that_was_always_missing_says_nothing_when_it_comes_back():
    # A feature for being missing that was 1 in every row is a second intercept, until it is 0.
    preprocessor = Preprocessor.fit(np.array([[1.0, np.nan], [3.0, np.nan]]))
    (features,) = preprocessor.transform(np.array([[1.0, 7.0], [1.0, np.nan]]))
    assert_close(features[0], features[1])


def test_a_number_missing_for_the_first_time_is_the_mean_with_a_note():
    preprocessor = Preprocessor.fit({"a": [1.0, 2.0, 3.0]}, purpose="linear")
    with pytest.warns(DataWarning, match="column 'a': 2 rows are missing and none was"):
        (z,) = preprocessor.transform({"a": [np.nan, 5.0, np.nan]})
    assert_close(z[:, 0], torch.tensor([2.0, 5.0, 2.0]))


def test_an_unseen_level_is_all_zeros_with_a_note():
    preprocessor = Preprocessor.fit({"s": ["a", "b", None]})
    assert preprocessor.feature_names == ["s[a]", "s[b]", "s[(missing)]"]
    notes = []
    (z,) = preprocessor.transform({"s": ["b", "z", None, "z"]}, notes=notes)
    assert z.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert notes == [
        "column 's': 2 rows have a level never seen in training ('z'), read as the unknown level."
    ]


def test_many_levels_are_codes_and_the_unknown_one_is_0():
    towns = [f"t{k:02d}" for k in range(30)]
    preprocessor = Preprocessor.fit(
        {"town": towns, "x": np.arange(30.0) ** 2},
        infer_columns({"town": towns, "x": np.arange(30.0) ** 2}, roles={"town": "categorical"}),
    )
    assert preprocessor.spec == InputSpec("vector", 1, (30,))
    x, codes = preprocessor.transform({"town": ["t00", "t29", "zz"], "x": [1, 2, 3]}, notes=[])
    assert codes.dtype == torch.int64 and codes[:, 0].tolist() == [1, 30, 0]
    assert x.shape == (3, 1)


def test_linear_coding_is_statsmodels_treatment_coding():
    from statsmodels.formula.api import ols

    frame = table().drop(columns=["day", "town", "grade"]).dropna()
    frame["y"] = np.arange(len(frame))
    oracle = ols("y ~ age + sex + size", frame)
    names = [name for name in oracle.exog_names if name != "Intercept"]
    preprocessor = Preprocessor.fit(frame.drop(columns="y"), purpose="linear")
    (x,) = preprocessor.transform(frame)
    assert x.dtype == torch.float64
    assert preprocessor.feature_names == ["age", "sex[M]", "size"]
    for j, name in enumerate(["age", "sex[T.M]", "size"]):
        assert name in names
        expected = oracle.exog[:, oracle.exog_names.index(name)]
        assert_close(x[:, j], torch.tensor(expected))


def test_a_linear_model_pools_rare_levels():
    levels = ["a"] * 5 + ["b"] * 4 + ["c", "d", "e"]
    columns = infer_columns({"s": levels})
    preprocessor = Preprocessor.fit({"s": levels}, columns, purpose="linear", max_levels=3)
    assert preprocessor.feature_names == ["s[b]", "s[(other)]"]
    (x,) = preprocessor.transform({"s": ["a", "d", "new"]})
    assert x.tolist() == [[0, 0], [0, 1], [0, 1]]


def test_an_ordered_column_is_its_place():
    columns = infer_columns({"g": ["hi", "lo", "mid"]}, roles={"g": "lo<mid<hi"})
    (x,) = Preprocessor.fit({"g": ["hi", "lo", "mid"]}, columns, purpose="linear").transform(
        {"g": ["lo", "mid", "hi"]}
    )
    assert x[:, 0].tolist() == [0, 1, 2]


def test_a_date_is_a_trend_and_the_phases_that_vary():
    days = pd.date_range("2023-01-01", periods=800, freq="D").astype(str)
    preprocessor = Preprocessor.fit({"day": days}, purpose="linear")
    parts = ["trend", "year sin", "year cos", "week sin", "week cos"]  # midnight never varies
    assert preprocessor.feature_names == [f"day[{part}]" for part in parts]
    (x,) = preprocessor.transform({"day": ["2023-03-01", "2023-03-08", "2024-03-07"]})
    assert x[1, 0] - x[0, 0] == 7
    assert_close(x[0, 3:], x[1, 3:])  # a week later the week is where it was
    assert_close(x[0, 1:3] ** 2 @ torch.ones(2), torch.tensor(1.0))


def test_a_missing_date_is_marked_once():
    frame = {"day": ["2023-01-01", None, "2023-04-05", "2023-06-07"]}
    names = Preprocessor.fit(frame).feature_names
    assert names.count("day[missing]") == 1 and sum("missing" in name for name in names) == 1


def test_quantile_scores_are_normal_and_keep_the_order():
    from scipy import stats

    heavy = stats.cauchy.rvs(size=2001, random_state=0)
    preprocessor = Preprocessor.fit({"x": heavy}, quantile=["x"], dtype=torch.float64)
    (z,) = preprocessor.transform({"x": heavy})
    expected = stats.norm.ppf((stats.rankdata(heavy) - 0.5) / len(heavy))
    np.testing.assert_allclose(z[:, 0], expected, atol=0.02)
    assert (np.diff(z[np.argsort(heavy), 0]) >= 0).all()


def test_predictions_are_clipped_at_six_deviations():
    preprocessor = Preprocessor.fit(np.array([[0.0], [2.0]]), dtype=torch.float64)
    (z,) = preprocessor.transform(np.array([[100.0], [-100.0], [2.0]]), clip=True)
    assert z[:, 0].tolist() == [6, -6, 1]
    assert preprocessor.transform(np.array([[100.0]]))[0].item() == 99


def test_a_column_that_was_constant_says_nothing_later():
    x = np.array([[1.0, 0.1 + 0.2], [2.0, 0.3 + 1e-17]])
    (z,) = Preprocessor.fit(x).transform(np.array([[1.0, 77.0]]))
    assert z[0, 1] == 0


def test_infinities_are_refused_with_counts_per_column():
    frame = pd.DataFrame({"a": [1.0, np.inf, -np.inf], "b": [1.0, 2.0, 3.0], "c": [np.inf, 1, 2]})
    with pytest.raises(DataError, match=r"'a' \(2 rows, the first is row 2\), 'c' \(1 rows"):
        Preprocessor.fit(frame)
    good = Preprocessor.fit(pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(DataError, match="infinite values in column 'a'"):
        good.transform({"a": [np.inf]})


def test_huge_but_finite_numbers_stay_finite():
    (z,) = Preprocessor.fit({"a": [1e300, 2e300, 4e300]}).transform(
        {"a": [1e300, 1e308]}, clip=True
    )
    assert z.isfinite().all()


def test_columns_are_found_by_name_in_any_order():
    frame = table()
    preprocessor = Preprocessor.fit(frame)
    shuffled = frame.assign(extra=1)[["extra", *reversed(frame.columns)]]
    for a, b in zip(preprocessor.transform(frame), preprocessor.transform(shuffled), strict=True):
        assert torch.equal(a, b)


def test_absent_columns_are_listed_with_the_nearest_name():
    preprocessor = Preprocessor.fit(table())
    with pytest.raises(DataError, match=r"lacks columns 'age', 'sex'.*Was 'Age' meant for 'age'"):
        preprocessor.transform(table().rename(columns={"age": "Age", "sex": "s"}))


def test_text_in_a_numeric_column_is_named_with_its_row():
    preprocessor = Preprocessor.fit({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="row 2, column 'a': expected a number, got 'old'"):
        preprocessor.transform({"a": ["1", "old"]})
    assert preprocessor.transform({"a": ["2", "3"]})[0].shape == (2, 1)


def test_levels_do_not_depend_on_how_a_number_is_stored():
    frame = {"c": [1, 2, 3]}
    preprocessor = Preprocessor.fit(frame, infer_columns(frame, roles={"c": "categorical"}))
    (a,) = preprocessor.transform({"c": [1, 2]})
    (b,) = preprocessor.transform({"c": [1.0, 2.0]})
    (c,) = preprocessor.transform({"c": ["1", "2"]})
    assert torch.equal(a, b) and torch.equal(a, c)


def test_no_rows_in_no_rows_out():
    preprocessor = Preprocessor.fit(table())
    x, codes = preprocessor.transform(table().iloc[:0])
    assert x.shape == (0, preprocessor.spec.features) and codes.shape == (0, 1)
    assert Preprocessor.fit(np.eye(3)).transform(np.empty((0, 3)))[0].shape == (0, 3)


def test_a_wrong_number_of_columns_is_said_as_scikit_learn_says_it():
    preprocessor = Preprocessor.fit(np.eye(4))
    with pytest.raises(ValueError, match="X has 3 features, but Regressor is expecting 4 features"):
        preprocessor.transform(np.eye(3), estimator="Regressor")


@pytest.mark.parametrize(
    "kind", ["float32", "int64", "fortran", "readonly", "strided", "list", "frame"]
)
def test_the_same_numbers_in_any_container_give_the_same_features(kind):
    x = np.arange(12.0).reshape(4, 3) ** 2
    made = {
        "float32": x.astype(np.float32),
        "int64": x.astype(np.int64),
        "fortran": np.asfortranarray(x),
        "readonly": x.copy(),
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "list": x.tolist(),
        "frame": pd.DataFrame(x, index=[4, 3, 2, 1]),
    }[kind]
    if kind == "readonly":
        made.setflags(write=False)
    (a,) = Preprocessor.fit(x).transform(x)
    (b,) = Preprocessor.fit(x).transform(made)
    (c,) = Preprocessor.fit(made).transform(made)
    assert_close(a, b)
    assert_close(a, c)


def test_polars_and_arrow_tables_give_the_same_features():
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame({"a": [1.0, None, 3.0], "s": ["x", "y", None]})
    expected = Preprocessor.fit(frame).transform(frame)[0]
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert_close(Preprocessor.fit(other).transform(other)[0], expected)


def test_state_survives_json():
    frame = table()
    first = Preprocessor.fit(frame, quantile=["size"])
    again = Preprocessor.from_state(json.loads(json.dumps(first.state(), allow_nan=False)))
    assert again.feature_names == first.feature_names and again.spec == first.spec
    assert again.notes == first.notes and again.text_columns == first.text_columns
    for a, b in zip(first.transform(frame), again.transform(frame), strict=True):
        assert torch.equal(a, b)


def test_a_damaged_state_is_refused():
    state = Preprocessor.fit(table()).state()
    damages = [
        {**state, "module": "os"},
        {**state, "format": 2},
        {**state, "numeric": {**state["numeric"], "center": [1.0]}},
        {**state, "numeric": {**state["numeric"], "masked": [99]}},
        {**state, "dates": {}},
        {},
    ]
    for damaged in damages:
        with pytest.raises(ModelError, match="damaged preprocessing state"):
            Preprocessor.from_state(damaged)


def test_what_cannot_be_trained_on_is_refused():
    with pytest.raises(DataError, match="no column is left"):
        Preprocessor.fit({"a": [1, 1, 1]})
    with pytest.raises(DataError, match="no rows"):
        Preprocessor.fit(np.empty((0, 2)))
    with pytest.raises(DataError, match="all zero"):
        Preprocessor.fit(np.eye(2), weight=[0, 0])
    with pytest.raises(DataError, match=r"weights must have shape \(2,\)"):
        Preprocessor.fit(np.eye(2), weight=[1, 1, 1])
    with pytest.raises(DataError, match="weights must be finite, got nan at row 2"):
        Preprocessor.fit(np.eye(2), weight=[1, np.nan])
    with pytest.raises(UsageError, match="purpose must be"):
        Preprocessor.fit(np.eye(2), purpose="deep")
    with pytest.raises(UsageError, match="no numeric column is called 'z'"):
        Preprocessor.fit({"a": [1.0, 2.0]}, quantile=["z"])


def test_training_rows_give_no_warning_and_are_not_modified():
    frame = table()
    before = frame.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Preprocessor.fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, before)
