"""What every outcome promises the pipeline; a new one adds an estimator and outcomes to SAMPLES."""

import json
import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz import (
    Classifier,
    Ranker,
    Regressor,
    Segmenter,
    SurvivalRegressor,
    Tagger,
    outcomes,
    registry,
)
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import take
from ansatz.fitting.model import Given

N = 30
RNG = np.random.default_rng(0)
X, IMAGES = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 6, 6)).astype(np.float32)
ORDERS = np.argsort(RNG.gumbel(size=(N, 3)), axis=1)
TIMES = np.column_stack([RNG.exponential(size=N), np.arange(N) % 4 > 0])
QUICK = {"widths": (4,), "epochs": 2}
SAMPLES = {  # outcome, estimator, rows, outcomes
    "a number": ("number", Regressor(**QUICK), X, X[:, 0] + RNG.normal(size=N)),
    "two numbers": ("number", Regressor("normal", **QUICK), X, X + 1),
    "classes": ("class", Classifier(class_weight="balanced", **QUICK), X, np.arange(N) % 3),
    "times": ("survival", SurvivalRegressor("weibull", **QUICK), X, TIMES),
    "cox": ("survival", SurvivalRegressor("cox", **QUICK), X, TIMES),
    "orders": ("ranking", Ranker(**QUICK), X, ORDERS),
    "masks": ("mask", Segmenter(network="linear_pixels", epochs=1), IMAGES, IMAGES > 0),
    "tags": ("tag", Tagger(steps=2, holdout=0), [[f"w{k}"] for k in range(N)], [["X"], ["Y"]] * 15),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES)


@pytest.fixture(scope="module")
def fitted():
    found = {}

    def fit(sample):
        if sample not in found:
            _, estimator, rows, y = SAMPLES[sample]
            found[sample] = estimator.fit(rows, y)
        return found[sample]

    return fit


def test_every_outcome_has_a_sample():
    in_x = {
        *outcomes.on_structure,
        *outcomes.without_target,
    }  # tested with their structures: they take no y
    assert {*in_x, *(sample[0] for sample in SAMPLES.values())} == set(outcomes.names())


@pytest.mark.parametrize("name", outcomes.names())
def test_its_face_is_an_estimator_of_it(name):
    outcome = outcomes.create(name)
    estimator = registry.load(outcome.estimator)
    assert outcome.name == name and issubclass(estimator, Estimator)
    assert estimator._get_param_names()[0] and registry.load(outcome.report)


@every_sample
def test_outcomes_are_read_alike_before_and_after_the_fit(sample):
    _, estimator, rows, y = SAMPLES[sample]
    task = estimator.task(rows)
    codes, target = task.outcome.encode(y, task.settings, reset=True)
    again, same = task.outcome.encode(y, task.settings, reset=False)
    assert len(codes) == N and target == same and target.axis == task.outcome.axis
    assert_array_equal(codes, again)


@every_sample
def test_what_was_trained_on_y_comes_back_from_json(sample, fitted):
    model, y = fitted(sample).model_, SAMPLES[sample][3]
    again = outcomes.create(model.outcome.name)
    again.load(json.loads(json.dumps(model.outcome.state())), model.outcome.tensors())
    assert again.state() == model.outcome.state() and again.names == model.outcome.names
    assert again.target(model.likelihood) == model.outcome.target(model.likelihood)
    settings = model.task.settings
    codes = model.outcome.encode(y, settings, reset=False)[0]
    assert_array_equal(again.encode(y, settings, reset=False)[0], codes)
    rows = fitted(sample).read_again(*SAMPLES[sample][2:]).rows
    own = model.posterior.predictive(rows)
    assert_array_equal(again.point(own), model.outcome.point(own))
    served, truth = again.serve(own), torch.from_numpy(np.array(codes))
    assert torch.equal(served.raw, model.predictive(rows).raw)
    assert again.evaluate(served, truth) == model.outcome.evaluate(served, truth)


@every_sample
def test_predictions_are_a_table_of_one_row_each(sample, fitted):
    model = fitted(sample).model_
    rows = fitted(sample).read_again(*SAMPLES[sample][2:]).rows
    columns = model.outcome.frame(model, Given(rows))
    assert columns and all(len(values) == N for values in columns.values())
    assert len(model.outcome.point(model.posterior.predictive(rows))) == N


@every_sample
def test_metrics_are_numbers_and_row_losses_average_to_the_score(sample, fitted):
    model = fitted(sample).model_
    job = model.outcome.plain(fitted(sample).read_again(*SAMPLES[sample][2:]))
    served = model.predictive(job.rows)
    metrics = model.outcome.evaluate(served, job.y)
    known = [value for value in metrics.values() if value is not None]
    assert known and all(isinstance(v, float) and math.isfinite(v) for v in known)
    losses = model.outcome.row_losses(served, job.y)
    assert losses.shape == (N,)
    if metrics.get("nll") is not None and served.likelihood.additive:
        assert float(losses.mean()) == pytest.approx(metrics["nll"], rel=1e-9)


@every_sample
def test_a_refit_leaves_the_outcome_of_its_task_as_it_was(sample, fitted):
    model = fitted(sample).model_
    before, kept = model.outcome.state(), model.outcome.tensors()
    part = take(fitted(sample).read(*SAMPLES[sample][2:]), np.arange(20))
    again = fit_model(model.task, part)
    assert again.outcome is not model.outcome and again.outcome.names == model.outcome.names
    assert model.outcome.state() == before
    assert all(torch.equal(kept[name], value) for name, value in model.outcome.tensors().items())
