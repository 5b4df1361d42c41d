import numpy as np
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor
from ansatz.errors import ResourceError, UsageError
from ansatz.inference import wide
from ansatz.inference.wide import NNGP, NTK
from ansatz.kernels import condition
from ansatz.kernels.kernel import Kernel


def rows(count=120, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3))
    return x, np.abs(x[:, 0]) - x[:, 1] + 0.1 * draw.normal(size=count)


@pytest.fixture(scope="module")
def models():
    x, y = rows()
    return {name: Regressor(inference=name).fit(x, y) for name in ("nngp", "ntk")}


def test_nngp_is_the_gaussian_process_of_the_twins_kernel(models):
    posterior = models["nngp"].model_.posterior
    _, y = rows()
    standard = torch.from_numpy((y - y.mean()) / y.std())
    solution, twin = posterior.solution, posterior.twin

    class Own(Kernel):
        def matrix(self, a, b=None):
            return solution.scale * twin.nngp(a, b)

        def diagonal(self, a):
            return solution.scale * twin.variance(a)

        def backward(self, a, weight):
            return {}

    (train,) = posterior.inputs
    inverse = torch.linalg.inv(solution.outer) - twin.nngp(train)
    noise = solution.scale * float(inverse.diagonal().mean())
    new = torch.randn(6, 3, dtype=torch.float64)
    mean, variance = condition(Own(), noise, train.double(), standard).predict(new)
    found, own = posterior.functional((new,))
    assert_close(found[:, 0], mean, rtol=1e-6, atol=1e-8)
    assert_close(own, variance, rtol=1e-5, atol=1e-8)


def matrices(seed=0):
    draw = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(9, 12, generator=draw, dtype=torch.float64) for _ in range(2))
    return a @ a.mT, b @ b.mT, torch.randn(6, 2, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("time", [None, 0.3])
def test_ntk_has_the_law_of_flows_from_all_starts(time):
    """f_t = f_0 + A (y - f_0) is linear in f_0 ~ N(0, Sigma)."""
    sigma, theta, y = matrices()
    old, new = slice(0, 6), slice(6, 9)
    solution = NTK().solve(sigma[old, old], theta[old, old], y, {"flow_time": time})
    A = theta[new, old] @ torch.linalg.inv(theta[old, old])
    if time is not None:
        A = A @ (torch.eye(6) - torch.linalg.matrix_exp(-time * theta[old, old]))
    assert_close(theta[new, old] @ solution.solved, A @ y)
    whole = torch.cat([-A, torch.eye(3)], 1)
    expected = whole @ sigma @ whole.mT
    T, crossed = theta[new, old], theta[new, old] @ solution.inner @ sigma[old, new]
    assert_close(sigma[new, new] - crossed - crossed.mT + T @ solution.outer @ T.mT, expected)


def test_the_flow_is_small_steps_of_gradient_descent_in_random_features():
    """theta' = Phi^T (y - f) from 0, with the features that the kernel is the sum of."""
    draw = torch.Generator().manual_seed(0)
    phi, new = (torch.randn(n, 4, generator=draw, dtype=torch.float64) for n in (8, 3))
    y = torch.randn(8, 1, generator=draw, dtype=torch.float64)
    solution = NTK().solve(torch.eye(8).double(), phi @ phi.mT, y, {"flow_time": 0.1})
    weights, steps = torch.zeros(4, 1, dtype=torch.float64), 5_000
    for _ in range(steps):
        weights = weights + 0.1 / steps * phi.mT @ (y - phi @ weights)
    assert_close(new @ phi.mT @ solution.solved, new @ weights, atol=1e-4, rtol=1e-3)


def test_they_are_better_than_a_constant_and_their_intervals_hold(models):
    x, y = rows(300, 2)
    for model in models.values():
        found = model.evaluate(x, y)
        assert found["r2"] > (0.8 if model.inference == "nngp" else 0.4)
        low, high = model.interval(x, 0.9).T
        assert 0.75 < ((low < y) & (y < high)).mean() < 0.99


def test_a_wide_network_is_nearer_to_its_twin():
    x, y = rows(60)
    gaps = []
    for width in (16, 256):
        model = Regressor(inference="ntk", widths=(width, width)).fit(x, y)
        gaps.append(model.model_.posterior.record()["gap"])
    assert gaps[1]["kernel"] < 0.5 * gaps[0]["kernel"]
    assert gaps[1]["prediction"] < gaps[0]["prediction"]


def test_classes_are_regressed_and_far_away_their_logits_stay_bounded():
    x, y = rows(150)
    labels = np.digitize(y, [-0.5, 1.0])
    model = Classifier(inference="ntk").fit(x, labels)
    new, truth = rows(200, 3)
    found = model.evaluate(new, np.digitize(truth, [-0.5, 1.0]))
    assert found["accuracy"] > 0.65 and found["nll"] < 0.9
    # Mean and standard deviation both grow as the distance, so that their ratio has a limit.
    far, farther = (model.predict_proba(np.full((1, 3), at)) for at in (1e4, 1e6))
    np.testing.assert_allclose(far, farther, atol=1e-3)


def test_a_saved_model_predicts_the_same(models, tmp_path):
    for name, model in models.items():
        model.save(tmp_path / name)
        again = ansatz.load(tmp_path / name)
        assert_close(again.predict(rows(5, 4)[0]), model.predict(rows(5, 4)[0]), rtol=0, atol=0)


def test_images_without_a_twin_of_their_network_take_an_mlp_and_say_so():
    draw = np.random.default_rng(0)
    images = draw.normal(size=(40, 8, 8)).astype(np.float32)
    model = Classifier(inference="nngp").fit(images, np.arange(40) % 2)
    assert model.model_.posterior.record()["network"]["name"] == "mlp"
    with pytest.raises(UsageError, match=r"no infinitely wide twin: its layer s2 \(MaxPool2d\)"):
        Classifier(inference="nngp", network="lenet5").fit(
            draw.normal(size=(40, 28, 28)).astype(np.float32), np.arange(40) % 2
        )


def test_what_it_cannot_do_is_refused(monkeypatch):
    x, y = rows(30)
    with pytest.raises(UsageError, match="under the normal likelihood, and classes, got poisson"):
        Regressor("poisson", inference="nngp").fit(x, np.arange(30) % 4)
    with pytest.raises(UsageError, match="no weights that differ"):
        Regressor(inference="ntk").fit(x, y, sample_weight=np.arange(1, 31))
    with pytest.raises(UsageError, match="time of inference ntk must be positive, got -1"):
        Regressor(inference="ntk", inference_options={"flow_time": -1.0}).fit(x, y)
    with pytest.raises(UsageError, match="'flow_time' is not an option of inference nngp"):
        Regressor(inference="nngp", inference_options={"flow_time": 1.0}).fit(x, y)
    with pytest.raises(UsageError, match="'epochs' is not an option of inference nngp"):
        Regressor(inference="nngp", epochs=3).fit(x, y)
    monkeypatch.setattr(wide, "MOST_ROWS", 20)
    with pytest.raises(ResourceError, match=r"30 rows needs matrices of 0\.0 GB"):
        Regressor(inference="nngp").fit(x, y)
    assert NNGP().words
