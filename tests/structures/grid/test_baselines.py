"""The models that a network on images must beat."""

import numpy as np
import pandas as pd
import pytest
import torch

from ansatz import Classifier, Segmenter, SurvivalRegressor
from ansatz.fitting.job import take
from ansatz.fitting.scores import constant_predictive, evaluate_all


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


def test_cells_without_a_label_are_not_judged():
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
