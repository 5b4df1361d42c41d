"""The estimators as parts of scikit-learn's own machinery."""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.conftest import TINY

from ansatz import Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor

FACES = (Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor)
LINEAR = Regressor(network="linear")
MOST = 56  # arguments: what few need goes into one of the mappings


def test_a_pipeline_scales_what_the_linear_model_does_not_mind(numbers):
    X, y = numbers
    piped = make_pipeline(StandardScaler(), LINEAR).fit(X, y)
    np.testing.assert_allclose(piped.predict(X), clone(LINEAR).fit(X, y).predict(X), rtol=1e-8)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search_finds_the_network_that_learns(numbers, n_jobs):
    X, y = numbers
    grid = {"learning_rate": [1e-7, 1e-2]}
    search = GridSearchCV(Regressor(**TINY), grid, cv=2, n_jobs=n_jobs).fit(X, y)
    assert search.best_params_ == {"learning_rate": 1e-2}
    assert search.best_score_ > 0.3


def test_a_grid_search_reaches_the_entries_of_mappings(numbers):
    X, y = numbers
    model = Regressor(epochs=20, learning_rate=1e-2, network_options={"norm": "layer"})
    grid = {"network_options__widths": [(4,), (8, 8)], "likelihood_options__dispersion": [1.0]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    best = search.best_estimator_
    assert best.network_options == {"norm": "layer", **{"widths": best.network_options["widths"]}}
    assert best.likelihood_options == {"dispersion": 1.0}
    hidden = [layer.out_features for layer in best.model_.network.hidden]
    assert tuple(hidden) == search.best_params_["network_options__widths"]
    assert model.network_options == {"norm": "layer"}  # the user's own is not changed
    for wrong in ("widths__0", "network_optoins__widths", "epochs__more"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            Regressor(epochs=2, widths=(4,)).set_params(**{wrong: 1})


def test_a_grid_search_in_a_pipeline_reaches_them_too(numbers):
    pipe = make_pipeline(StandardScaler(), Regressor(epochs=2))
    pipe.set_params(regressor__network_options__widths=(3,)).fit(*numbers)
    assert [layer.out_features for layer in pipe[-1].model_.network.hidden] == [3]


def test_parameters_of_a_pipeline_are_reached_by_name(mixed):
    frame, _, label, _ = mixed
    pipe = make_pipeline(Classifier(**TINY))
    search = GridSearchCV(pipe, {"classifier__dropout": [0.0, 0.2]}, cv=2).fit(
        frame[["a", "town"]], label
    )
    assert set(search.best_params_) == {"classifier__dropout"}


def test_cross_validation_scores_are_r2_of_unseen_rows(numbers):
    X, y = numbers
    scores = cross_val_score(LINEAR, X, y, cv=3)
    unseen = cross_val_predict(LINEAR, X, y, cv=3)
    parts = np.array_split(np.arange(60), 3)  # scikit-learn's own order
    expected = [
        1 - ((y[p] - unseen[p]) ** 2).sum() / ((y[p] - y[p].mean()) ** 2).sum() for p in parts
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_a_clone_is_unfitted_with_the_same_parameters(numbers):
    model = Regressor("laplace", widths=(4,), epochs=3).fit(*numbers)
    twin = clone(model)
    assert not hasattr(twin, "model_")
    assert twin.get_params() == model.get_params()


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_predicts_the_same_and_is_independent(mixed, copier):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    before = model.predict(frame)
    twin = copier(model)
    np.testing.assert_array_equal(twin.predict(frame), before)
    twin.partial_fit(frame, number)
    assert not np.array_equal(twin.predict(frame), before)
    np.testing.assert_array_equal(model.predict(frame), before)


def test_a_search_that_was_fitted_can_be_deep_copied(numbers):
    X, y = numbers
    search = GridSearchCV(Regressor(**TINY), {"dropout": [0.0, 0.1]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(copy.deepcopy(search).predict(X), search.predict(X))


def test_a_transformer_before_it_may_speak_pandas(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), Regressor(**TINY))
    pipe.set_output(transform="pandas").fit(frame, y)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipe.predict(frame).shape == (60,)


def test_a_wrapper_that_transforms_the_target_works(numbers):
    X, y = numbers
    model = TransformedTargetRegressor(LINEAR, func=np.arcsinh, inverse_func=np.sinh)
    assert np.corrcoef(model.fit(X, y).predict(X), y)[0, 1] > 0.8


def test_several_class_columns_go_through_scikit_learns_wrapper(mixed):
    frame, _, label, count = mixed
    both = np.stack([label == "yes", count > 0], 1)
    model = MultiOutputClassifier(Classifier(network="linear")).fit(frame[["a"]], both)
    assert model.predict(frame[["a"]]).shape == (80, 2)


@pytest.mark.parametrize("fitted", [False, True])
def test_the_notebook_representation_escapes_names(numbers, fitted):
    X, y = numbers
    evil = "<script>alert(1)</script>"
    model = Regressor(network="linear", activation=evil)
    if fitted:
        frame = pd.DataFrame(X, columns=[evil, "b", "c"])
        model.fit(frame, y)
        assert evil not in model.summary()._repr_html_()
    assert evil not in model._repr_html_() and "alert" in model._repr_html_()


@pytest.mark.parametrize("face", FACES)
def test_arguments_are_given_by_name_and_are_not_too_many(face):
    first, *others = list(inspect.signature(face.__init__).parameters.values())[1:]
    assert first.name == "likelihood" and len(others) <= MOST
    assert {each.kind for each in others} == {inspect.Parameter.KEYWORD_ONLY}


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="lerning_rate"):
        Regressor(lerning_rate=0.1)
    with pytest.raises(ValueError, match="lerning_rate"):
        Regressor().set_params(lerning_rate=0.1)
