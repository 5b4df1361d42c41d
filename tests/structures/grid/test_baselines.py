"""The baseline models of grids: linear and ridge."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from ansatz import Classifier, Regressor, Segmenter, SurvivalRegressor, structures
from ansatz.fitting.job import take
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.scores import constant_predictive, evaluate_all, evaluate_predictive
from ansatz.likelihoods import Gamma, Normal, Poisson
from ansatz.structures.grid import baselines as grid_ridge


def halves(count=60):
    """Images whose left or right half is bright."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    images = rng.normal(size=(count, 8, 8))
    images[labels == 1, :, 4:] += 1
    images[labels == 0, :, :4] += 1
    return images, labels


def test_a_linear_model_tells_the_bright_half():
    images, labels = halves()
    model = Classifier(network="linear_grid", epochs=1).fit(images, labels)
    job, task = model.read(images, labels), model.model_.task
    linear, _ = task.structure.baseline(task.likelihood(job.target), job, seed=0)
    metrics = task.outcome.evaluate(linear.predictive(job.rows), job.y)
    assert metrics["accuracy"] > 0.95


def test_a_linear_network_is_its_own_linear_model():
    images, labels = halves()
    model = Classifier(network="linear_grid", epochs=1).fit(images, labels)
    job = model.read(images, labels)
    scores = evaluate_all(model.model_, job, job)
    assert scores.metrics == scores.linear
    assert scores.constant["nll"] == pytest.approx(np.log(2), rel=1e-6)  # as many of each


def test_the_constant_masks_have_the_entropy_of_the_labels():
    rng = np.random.default_rng(0)
    masks = (rng.uniform(size=(6, 8, 8)) < 0.3).astype(int)
    images = rng.normal(size=(6, 8, 8))
    model = Segmenter(network="linear_pixels", epochs=1).fit(images, masks)
    job = model.read(images, masks)
    likelihood = model.model_.task.likelihood(job.target)
    share = masks.mean()
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    metrics = model.model_.outcome.evaluate(constant_predictive(likelihood, job, job), job.y)
    assert metrics["nll"] == pytest.approx(entropy, rel=1e-5)
    assert metrics["pixel_error"] == pytest.approx(share)


def test_pixels_without_a_label_are_not_evaluated():
    masks = np.zeros((4, 8, 8), int)
    masks[:, :2], masks[:, 4:] = 1, -1
    images = np.zeros((4, 8, 8))
    model = Segmenter(network="linear_pixels", epochs=1).fit(images, masks)
    job = model.read(images, masks)
    constant = constant_predictive(model.model_.task.likelihood(job.target), job, job)
    metrics = model.model_.outcome.evaluate(constant, job.y)
    assert metrics["nll"] == pytest.approx(np.log(2), rel=1e-6)
    assert torch.equal(job.y[0, 4:], torch.full((4, 8), -1))


@pytest.mark.parametrize("count", [40, 64])  # penalised, and trained like a network
def test_the_linear_model_of_cox_tells_times_better_than_a_constant(count):
    rng = np.random.default_rng(0)
    bright = rng.integers(0, 2, 3 * count)
    images = bright.reshape(-1, 1, 1, 1) + 0.1 * rng.normal(size=(3 * count, 1, 6, 6))
    times = pd.DataFrame({"time": rng.exponential(np.exp(-3.0 * bright)), "event": 1})
    model = SurvivalRegressor("cox", network="linear_grid", epochs=1).fit(images, times)
    job, task = model.read(images, times), model.model_.task
    learn, test = take(job, np.arange(count)), take(job, np.arange(count, 3 * count))
    likelihood = task.likelihood(job.target)
    task.outcome.begin(likelihood, learn)
    found, _ = task.structure.baseline(likelihood, learn, seed=0)
    linear = task.outcome.evaluate(found.predictive(test.rows), test.y, test.weight)
    constant = task.outcome.evaluate(
        constant_predictive(likelihood, learn, test), test.y, test.weight
    )
    assert linear["integrated_brier"] < 0.7 * constant["integrated_brier"]


def ramps(count=30, fresh=200):
    """Images that rise from left to right by a, in noise; and numbers near a."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=count + fresh)
    x = a[:, None, None] * np.linspace(-1, 1, 12) + rng.normal(size=(count + fresh, 12, 12))
    y = a + 0.3 * rng.normal(size=count + fresh)
    return (x[:count], y[:count]), (x[count:], y[count:])


def fit_ridge_grid(likelihood, job, seed):
    return PointPosterior(
        structures.create("grid"), *grid_ridge.fit_ridge_grid(likelihood, job, seed)
    )


def evaluate(model, test):
    return evaluate_predictive(model.predictive(test.rows), test.y)["nll"]


def evaluate_linear(learn, test):
    return evaluate(structures.create("grid").baseline(Normal(), learn, seed=0)[0], test)


def evaluate_constant(learn, test):
    return evaluate_predictive(constant_predictive(Normal(), learn, test), test.y)["nll"]


def test_it_is_ridge_regression_in_the_cells(monkeypatch):
    """At one penalty and sd(y) = s: lambda of scikit-learn is lambda / mean |x - centre|^2."""
    (x, y), (new, _) = ramps()
    monkeypatch.setattr(grid_ridge, "PENALTIES", (0.5,))
    model = fit_ridge_grid(Normal(), Regressor().read(x, y), seed=0)
    cells = StandardScaler(with_std=False).fit(x.reshape(30, -1))
    z, fresh = cells.transform(x.reshape(30, -1)), cells.transform(new.reshape(200, -1))
    expected = Ridge(alpha=0.5 * (z**2).sum(1).mean()).fit(z, y).predict(fresh)
    found = model.predictive(Regressor().read(new, new[:, 0, 0]).rows).raw[:, 0].numpy()
    np.testing.assert_allclose(found, expected, atol=0.02 * y.std())


def test_its_dispersion_is_that_of_rows_it_did_not_see(monkeypatch):
    monkeypatch.setattr(grid_ridge, "PENALTIES", (0.1,))  # nearly all of y is explained inside
    (x, y), (new, truth) = ramps()
    model = fit_ridge_grid(Normal(), Regressor().read(x, y), seed=0)
    test = Regressor().read(new, truth)
    likelihood = model.predictive(test.rows).distribution
    error = (likelihood.mean - test.y).square().mean().sqrt()
    assert likelihood.stddev.unique().numel() == 1
    inside = (model.predictive(Regressor().read(x, y).rows).raw[:, 0].numpy() - y).std()
    assert inside < 0.6 * float(error)
    assert float(error) == pytest.approx(float(likelihood.stddev[0]), rel=0.35)


def test_it_tells_more_than_the_constant_model_and_of_noise_hardly_less():
    (x, y), (new, truth) = ramps()
    learn, test = Regressor().read(x, y), Regressor().read(new, truth)
    # The entropy of a given x is log(0.3) below that of a.
    assert evaluate_linear(learn, test) < evaluate_constant(learn, test) - 0.7
    noise = np.random.default_rng(1).permutation(y)
    learn = Regressor().read(x, noise)
    assert evaluate_linear(learn, test) < evaluate_constant(learn, test) + 0.15


@pytest.mark.parametrize("kind", ["count", "positive", "class", "cox", "two"])
def test_every_likelihood_has_one(kind, monkeypatch):
    monkeypatch.setattr(grid_ridge, "FOLDS", 2)
    monkeypatch.setattr(grid_ridge, "PENALTIES", (4.0, 0.5))
    (x, y), _ = ramps()
    if kind == "class":
        model, y = Classifier(), np.digitize(y, [-0.7, 0.7])
    elif kind == "cox":
        model, y = SurvivalRegressor("cox"), np.exp(y)
    else:
        model = Regressor({"count": Poisson(), "positive": Gamma(), "two": Normal()}[kind])
        y = {"count": np.round(np.exp(y)), "positive": np.exp(y), "two": np.stack([y, -y], 1)}[kind]
    job = model.read(x, y)
    likelihood = model.task(x).likelihood(job.target)
    fitted, raw = fit_ridge_grid(likelihood, job, seed=0).predictive(job.rows)
    constant, start = constant_predictive(likelihood, job, job)
    loss = fitted.joint_loss(raw, job.y, job.weight).sum()
    assert loss < constant.joint_loss(start, job.y, job.weight).sum() - 3


def test_examples_of_one_group_cannot_choose_and_get_the_middle_penalty():
    (x, y), _ = ramps()
    job = Regressor().read(x, y, groups=np.zeros(30))
    spread = fit_ridge_grid(Normal(), job, seed=0).predictive(job.rows).raw[:, 0].std()
    assert 0.2 * y.std() < float(spread) < torch.tensor(y).std()
