import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from torch.testing import assert_close

import ansatz
from ansatz import Regressor
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
    with pytest.raises(UsageError, match="normal likelihood, got gamma"):
        Regressor("gamma", inference="gp").fit(x, np.exp(y))
    with pytest.raises(UsageError, match="no weights that differ"):
        Regressor(inference="gp").fit(x, y, sample_weight=np.arange(1, 81))
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
