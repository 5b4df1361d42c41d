import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor
from ansatz.errors import ResourceError, UsageError


def rows(count=80, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 2))
    return x, np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * draw.normal(size=count)


@pytest.fixture(scope="module")
def model():
    return Regressor(inference="gp").fit(*rows())


def test_it_is_scikit_learns_process_of_the_same_kernel(model):
    x, y = rows()
    process = model.model_.posterior.process
    (variance, *lengths) = process.kernel.vector.exp().tolist()
    kernel = ConstantKernel(variance) * Matern(lengths, nu=2.5) + WhiteKernel(process.noise)
    z = (x - x.mean(0)) / x.std(0)
    peer = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
    peer.fit(z, (y - y.mean()) / y.std())
    new = rows(20, 1)[0]
    mean, sd = peer.predict((new - x.mean(0)) / x.std(0), return_std=True)
    found = model.predict_dist(new)
    np.testing.assert_allclose(found.mean, y.mean() + y.std() * mean, rtol=1e-6)
    np.testing.assert_allclose(found.sd, y.std() * sd, rtol=1e-6)


def test_it_is_better_than_a_linear_model_and_its_intervals_hold(model):
    x, y = rows(400, 2)
    found = model.evaluate(x, y)
    assert found["rmse"] < 0.3 and found["nll"] < 0.3
    low, high = model.interval(x, 0.9).T
    assert 0.85 < ((low < y) & (y < high)).mean() < 0.95


def test_saved_and_loaded_it_predicts_the_same(model, tmp_path):
    x, _ = rows(10, 3)
    model.save(tmp_path / "model")
    loaded = ansatz.load(tmp_path / "model")
    assert_close(loaded.predict(x), model.predict(x), rtol=0, atol=0)
    assert loaded.model_.posterior.keeps_rows


def test_a_fit_of_a_table_takes_the_likelihood_that_it_knows():
    x, y = rows()
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": np.where(x[:, 0] > 0, "u", "v")})
    fit = ansatz.fit(frame.assign(y=y), target="y", inference="gp", options={"kernel": "rbf"})
    assert fit.likelihood == "normal" and fit.inference == "gp"
    assert fit.metrics["nll"] < fit.linear["nll"]
    assert any("kernel rbf: log evidence" in note for note in fit.notes)


def test_what_it_cannot_do_is_refused():
    x, y = rows()
    with pytest.raises(UsageError, match="one outcome of each row"):
        Regressor(inference="gp").fit(x, x)
    with pytest.raises(UsageError, match="one function for each row, and normal_mixture takes"):
        Regressor("normal_mixture", inference="gp").fit(x, y)
    with pytest.raises(UsageError, match="likelihood of each row, and huber is not one"):
        Regressor("huber", inference="gp").fit(x, y)
    with pytest.raises(ResourceError, match="5,001 rows needs a matrix of 0"):
        Regressor(inference="gp").fit(*rows(5_001))
    frame = pd.DataFrame(x).assign(y=y)
    with pytest.raises(UsageError, match="'kernel' is not an option of inference point"):
        ansatz.fit(frame, target="y", inference="point", options={"kernel": "rbf"})
    with pytest.raises(UsageError, match="'members' is not an option of inference gp"):
        ansatz.fit(frame, target="y", inference="gp", options={"members": 3})
    with pytest.raises(UsageError, match="'epochs' is not an option of inference gp"):
        Regressor(inference="gp", epochs=3).fit(x, y)
    with pytest.raises(UsageError, match="inference gp has no network"):
        Regressor(inference="gp", network="highway").fit(x, y)


def test_counts_are_modelled_better_than_by_a_linear_model():
    x, y = rows(120)
    counts = np.random.default_rng(5).poisson(np.exp(y))
    options = {"kernel": "rbf", "restarts": 1}
    model = Regressor("poisson", inference="gp", inference_options=options).fit(x, counts)
    new, truth = rows(100, 6)
    later = np.random.default_rng(7).poisson(np.exp(truth))
    linear = Regressor("poisson", network="linear").fit(x, counts)
    assert model.evaluate(new, later)["nll"] < linear.evaluate(new, later)["nll"] - 0.05
    assert abs(np.log(model.predict(new)) - truth).mean() < 0.5


def test_weights_are_repetitions_of_rows():
    x, y = rows(30)
    double = Regressor(inference="gp", inference_options={"restarts": 1})
    weighted = double.fit(x, y, sample_weight=np.r_[np.full(15, 2.0), np.ones(15)])
    mean = weighted.predict(x[:5])
    twice = Regressor(inference="gp", inference_options={"restarts": 1})
    repeated = twice.fit(np.r_[x, x[:15]], np.r_[y, y[:15]]).predict(x[:5])
    np.testing.assert_allclose(mean, repeated, rtol=0.02, atol=0.02)


def test_three_classes_have_calibrated_probabilities():
    x, y = rows(90)
    labels = np.digitize(y, [-0.5, 0.5])
    model = Classifier(inference="gp", inference_options={"restarts": 1}).fit(x, labels)
    new, truth = rows(400, 8)
    found = model.evaluate(new, np.digitize(truth, [-0.5, 0.5]))
    assert found["accuracy"] > 0.7 and found["ece"] < 0.12
    far = model.predict_proba(np.full((1, 2), 50.0))[0]
    np.testing.assert_allclose(far, np.bincount(labels) / 90, atol=0.12)


def test_duplicate_rows_without_noise_get_jitter_and_a_note():
    x = np.repeat(np.arange(5.0), 4)[:, None]
    fit = ansatz.fit(
        pd.DataFrame({"a": x[:, 0], "y": np.sin(x[:, 0])}),
        target="y", inference="gp", likelihood="normal", test=0.0, options={"restarts": 1},
    )  # fmt: skip
    assert np.isfinite(fit.model.predict(pd.DataFrame({"a": [0.5]}))).all()
