import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from tests.estimators.conftest import TINY

from ansatz import load
from ansatz.errors import DataError, UsageError
from ansatz.estimators.ranker import Ranker
from ansatz.likelihoods import Normal, PlackettLuce

RANKINGS = Path(os.environ.get("ANSATZ_DATA", "nowhere")) / "rankings"
needs_data = pytest.mark.skipif(not RANKINGS.exists(), reason="ANSATZ_DATA is not set")
ITEMS = np.array(["milk", "rum", "tea", "water"])


def tastings(rows=60, seed=0):
    """X (rows, 2), orders drawn from scores linear in x, as a frame of places, and the scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    scores = X @ np.array([[1.0, -1.0, 0.5, -0.5], [0.0, 1.0, -1.0, 0.0]]) + [0.5, 0.0, 0.0, -0.5]
    codes = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)
    frame = pd.DataFrame(ITEMS[codes], columns=[f"place{k}" for k in range(1, 5)])
    return X, frame, scores


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_predictions_agree_with_each_other(network):
    X, y, _ = tastings()
    model = Ranker(network=network, **TINY).fit(X, y)
    assert_array_equal(model.items_, ITEMS)
    order, scores = model.predict(X), model.predict_scores(X)
    assert order.shape == scores.shape == (60, 4)
    assert_array_equal(order, ITEMS[np.argsort(-scores, axis=1)])
    assert_allclose(scores.sum(1), 0, atol=1e-12)
    assert_allclose(model.predict_proba(X), np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    assert_allclose(model.predict_ranks(X).sum(1), 1 + 2 + 3 + 4)
    draws = model.sample(X, 3)
    assert draws.shape == (3, 60, 4)
    assert_array_equal(np.sort(draws, axis=-1), np.broadcast_to(ITEMS, draws.shape))


def test_the_linear_model_finds_the_scores_behind_the_rankings():
    X, y, truth = tastings(3000)
    model = Ranker(network="linear").fit(X, y)
    truth = truth - truth.mean(1, keepdims=True)
    assert_allclose(model.predict_scores(X), truth, atol=0.35)  # some 0.05 per coefficient
    assert model.linear_.converged


def test_score_is_the_mean_kendall_tau():
    X, y, _ = tastings()
    model = Ranker(network="linear").fit(X, y)
    predicted = model.predict(X)
    taus = [
        stats.kendalltau([list(a).index(i) for i in ITEMS], [list(b).index(i) for i in ITEMS])
        for a, b in zip(y.to_numpy(), predicted, strict=True)
    ]
    expected = np.array([tau.statistic for tau in taus])
    assert model.score(X, y) == pytest.approx(expected.mean())
    weight = np.arange(60)
    assert model.score(X, y, weight) == pytest.approx(np.average(expected, weights=weight))


def test_evaluate_gives_the_metrics_of_rankings():
    X, y, _ = tastings()
    model = Ranker(network="linear").fit(X, y)
    found = model.evaluate(X, y)
    assert set(found) == {"nll", "kendall_tau", "top_one_accuracy"}
    assert found["nll"] == pytest.approx(-model.log_score(X, y))
    hits = (model.predict(X)[:, 0] == y["place1"]).mean()
    assert found["top_one_accuracy"] == pytest.approx(hits)
    assert found["nll"] < np.log(24)  # better than any order


def test_the_three_layouts_give_one_model():
    X, y, _ = tastings()
    text = y.apply(lambda row: ">".join(row), axis=1)
    ranks = pd.DataFrame({item: (y == item).to_numpy().argmax(1) + 1 for item in ITEMS})
    models = [Ranker(network="linear").fit(X, each) for each in (y, text, ranks)]
    for model in models[1:]:
        assert_allclose(model.predict_scores(X), models[0].predict_scores(X))
    for model in models:  # evaluated by rankings in any layout
        for each in (y, text, ranks):
            assert model.evaluate(X, each) == pytest.approx(models[0].evaluate(X, y))
    assert "'milk' to 'water' are read as items" in models[2].notes_[0]


def test_without_features_the_fit_is_the_exact_maximum():
    y = ["a>b>c", "b>a>c", "a>c>b", "c>a>b"]
    for X in (None, pd.DataFrame(index=range(4))):
        model = Ranker().fit(X, y)
        # At the maximum the expected wins are the observed ones.
        worth = np.exp(model.predict_scores(None)[0])
        expected, won = np.zeros(3), np.zeros(3)
        for order in (["a", "b"], ["b", "a"], ["a", "c"], ["c", "a"]):
            left = [0, 1, 2]
            for item in order:
                k = "abc".index(item)
                expected[left] += worth[left] / worth[left].sum()
                won[k] += 1
                left.remove(k)
        assert_allclose(expected, won, atol=1e-8)
        assert model.notes_ == []


def test_items_without_a_finite_score_are_named():
    model = Ranker().fit(None, ["a>b>c", "b>a>c"])
    assert model.notes_[0].startswith("c lost every comparison")
    assert_allclose(model.predict_proba(None), [[0.5, 0.5, 0.0]], atol=1e-12)
    assert model.log_score(None, ["a>b>c"]) == pytest.approx(np.log(0.5), abs=1e-9)


def test_rankings_of_separate_groups_ask_for_a_prior():
    y = ["a>b", "b>a", "c>d", "d>c"]
    with pytest.raises(DataError, match=r"how c and d compare with a and b: .*prior=1"):
        Ranker(unranked="absent").fit(None, y)
    model = Ranker(unranked="absent", prior=1.0).fit(None, y)
    assert_allclose(model.predict_scores(None), 0, atol=1e-9)
    with pytest.raises(UsageError, match="without a prior: set prior=0"):
        Ranker(unranked="absent", prior=1.0, network="linear").fit(np.eye(4), y)


def test_absent_items_are_not_last_items():
    X, y, _ = tastings()
    top = y[["place1", "place2"]]
    last = Ranker(network="linear").fit(X, top)
    absent = Ranker(network="linear", unranked="absent").fit(X, top)
    assert last.log_score(X, top) != pytest.approx(absent.log_score(X, top), abs=0.1)
    assert absent.predict_dist(X).unranked == "absent"


def test_weights_are_repetitions():
    X, y, _ = tastings()
    weight = np.random.default_rng(1).integers(0, 3, 60)
    weighted = Ranker(network="linear").fit(X, y, sample_weight=weight)
    again = Ranker(network="linear").fit(np.repeat(X, weight, 0), y.loc[y.index.repeat(weight)])
    assert_allclose(weighted.predict_scores(X), again.predict_scores(X), atol=1e-7)


def test_new_rankings_may_be_shorter_but_know_no_new_item():
    X, y, _ = tastings()
    model = Ranker(network="linear").fit(X, y)
    assert np.isfinite(model.log_score(X[:2], ["tea", "rum>tea"]))
    with pytest.raises(DataError, match="row 2: 'gin' is not among the 4 known items"):
        model.log_score(X[:2], ["tea>rum", "gin>tea"])


def test_a_frame_of_predictions():
    X, y, _ = tastings()
    model = Ranker(network="linear").fit(pd.DataFrame(X, columns=["a", "b"]), y)
    rows = pd.DataFrame(X[:3], columns=["a", "b"], index=[7, 8, 9])
    frame = model.predict_frame(rows)
    assert list(frame.columns) == [
        *(f"place{k}" for k in range(1, 5)),
        *(f"p_{item}" for item in ITEMS),
    ]
    assert list(frame.index) == [7, 8, 9]
    assert_array_equal(frame["place1"], model.predict(rows)[:, 0])
    with pytest.raises(UsageError, match="an order has no interval"):
        model.predict_frame(rows, interval=0.9)


def test_a_saved_network_comes_back(tmp_path):
    X, y, _ = tastings()
    model = Ranker(unranked="absent", **TINY).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, Ranker)
    assert_array_equal(again.items_, model.items_)
    assert_array_equal(again.predict_scores(X), model.predict_scores(X))
    assert again.predict_dist(X).unranked == "absent"
    assert again.log_score(X, y) == model.log_score(X, y)


def test_a_saved_constant_model_comes_back(tmp_path):
    model = Ranker().fit(None, ["a>b>c", "b>a>c"])
    model.save(tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict_scores(None), model.predict_scores(None))


def test_what_it_cannot_do_is_said():
    X, y, _ = tastings()
    with pytest.raises(UsageError, match="normal is not a likelihood of rankings"):
        Ranker(Normal()).fit(X, y)
    with pytest.raises(UsageError, match="neither offset nor precision"):
        Ranker().fit(X, y, offset=np.zeros(60))
    with pytest.raises(DataError, match="two items at least, got only 'a'"):
        Ranker().fit(None, ["a", "a"])
    likelihood = PlackettLuce(unranked="absent")
    assert Ranker(likelihood, network="linear").fit(X, y).predict_dist(X).unranked == "absent"
    assert clone(Ranker(unranked="absent", prior=2.0)).get_params()["prior"] == 2.0


@needs_data
def test_nascar_2002_has_its_published_likelihood():
    y = pd.read_csv(RANKINGS / "nascar2002_orderings.csv")
    names = pd.read_csv(RANKINGS / "nascar2002_drivers.csv").set_index("id")["name"]
    model = Ranker(unranked="absent").fit(None, y.apply(lambda column: column.map(names)))
    rows = pd.DataFrame(index=y.index)
    named = y.apply(lambda column: column.map(names))
    assert 36 * model.log_score(rows, named) == pytest.approx(-4191.097, abs=5e-4)
    assert model.predict(None)[0, :2].tolist() == ["PJ Jones", "Scott Pruett"]
    assert_allclose(np.sort(model.predict_proba(None)[0])[-2:], [0.1096, 0.1864], atol=5e-5)
    assert model.notes_[0].startswith("Andy Hillenburg, Gary Bradberry, Jason Hedlesky and Randy")
