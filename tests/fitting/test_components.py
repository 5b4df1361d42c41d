"""The parts of the variance of a prediction."""

import numpy as np
import pytest

from ansatz import Classifier, Regressor
from ansatz.errors import UsageError
from ansatz.fitting.components import suggestions

draw = np.random.default_rng(0)
X = draw.normal(size=(60, 2))
OPTIONS = {"samples": 40}


def test_the_parts_add_up_to_the_variance_of_the_mixture():
    y = X[:, 0] + 0.3 * draw.normal(size=60)
    model = Regressor(network="linear", inference="laplace", inference_options=OPTIONS).fit(X, y)
    found = model.predict_frame(X, components=True)
    assert np.allclose(found["sd"] ** 2, found["sd_within"] ** 2 + found["sd_between"] ** 2)
    assert np.allclose(found["sd"] ** 2, model.predict_dist(X).variance)
    far = model.predict_frame(10 * X, components=True)
    assert (far["sd_between"] > 2 * found["sd_between"]).mean() > 0.9
    assert np.allclose(far["sd_within"], found["sd_within"])


def test_of_classes_they_are_entropies_and_mutual_information():
    y = (X[:, 0] + draw.normal(size=60) > 0).astype(int)
    model = Classifier(network="linear", inference="laplace", inference_options=OPTIONS).fit(X, y)
    found = model.predict_frame(X, components=True)
    p = model.predict_proba(X)
    assert np.allclose(found["entropy"], -(p * np.log(p)).sum(1))
    assert np.allclose(found["entropy"], found["entropy_within"] + found["entropy_between"])
    assert (found["entropy_between"] > 0).all()


def test_one_network_has_nothing_between():
    model = Regressor(network="linear").fit(X, X[:, 0] + draw.normal(size=60))
    found = model.predict_frame(X, components=True)
    assert (found["sd_between"] == 0).all() and np.allclose(found["sd"], found["sd_within"])


def test_several_targets_are_refused():
    model = Regressor(network="linear").fit(X, X)
    with pytest.raises(UsageError, match="one number or label"):
        model.predict_frame(X, components=True)


def test_suggestions_rank_by_what_is_unknown():
    y = X[:, 0] + 0.3 * draw.normal(size=60)
    model = Regressor(network="linear", inference="laplace", inference_options=OPTIONS).fit(X, y)
    frame = model.predict_frame(np.concatenate([0.1 * X[:5], 9 * X[:2]]), components=True)
    found = suggestions([frame.iloc[:4], frame.iloc[4:]], 2, None)
    assert sorted(found.index) == [5, 6] and found["variance"].is_monotonic_decreasing
    by_ei = suggestions([frame], 7, "ei")
    s, gap = frame["sd_between"], frame["prediction"] - frame["prediction"].max()
    noise = np.random.default_rng(0).normal(size=(200_000, 1))
    simulated = np.maximum(gap.to_numpy() + s.to_numpy() * noise, 0).mean(0)
    assert np.allclose(by_ei["ei"].sort_index(), simulated, atol=0.02 * s.max())
    with pytest.raises(UsageError, match="is for classes"):
        suggestions([frame], 2, "bald")
