"""What every inference promises the pipeline; a new one is tested by being registered."""

import json

import numpy as np
import pytest
import torch

from ansatz import Classifier, Regressor, inference
from ansatz.errors import UsageError
from ansatz.fitting.saved import load_model, save_model

N = 40
RNG = np.random.default_rng(0)
X, IMAGES = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 8, 8)).astype(np.float32)
QUICK = {"epochs": 3, "widths": (4,)}
SAMPLES = {  # estimator without its inference, rows, outcomes
    "numbers": (Regressor("normal", **QUICK), X, X[:, 0] + RNG.normal(size=N)),
    "two numbers": (Regressor("gamma", **QUICK), X, np.exp(X[:, :2])),
    "classes": (Classifier(**QUICK), X, np.arange(N) % 3),
    "images": (Classifier(network="linear_grid", epochs=1), IMAGES, np.arange(N) % 2),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES)
every_inference = pytest.mark.parametrize("name", inference.names())


@pytest.fixture(scope="module")
def fitted():
    found = {}

    def fit(name, sample):
        if (name, sample) not in found:
            estimator, rows, y = SAMPLES[sample]
            kind = inference.registry.get(name)
            if kind.infers_linear and not kind.trains:
                pytest.skip(f"{name} is for linear models: tests/inference/glm")
            if kind.likelihoods and estimator.likelihood not in (*kind.likelihoods, "auto"):
                pytest.skip(f"{name} is for {', '.join(kind.likelihoods)}")
            if (name, sample) == ("dropout", "images"):
                pytest.skip("linear_grid drops nothing")
            options = {**(estimator.get_params() if kind.trains else {}), "inference": name}
            options |= {"members": 3} if "members" in kind.settings else {}
            few = {key: 3 for key in ("samples", "draws") if key in kind.settings}
            options |= {"inference_options": few} if few else {}
            model = type(estimator)(**options).fit(rows, y)
            found[name, sample] = model.model_, model.read_again(rows, y).rows
        return found[name, sample]

    return fit


@every_inference
def test_it_has_a_name_and_words(name):
    member = inference.create(name)
    assert member.name == name and isinstance(member.words, str)
    assert isinstance(member.averages, bool) and member.few > 0


@every_inference
@every_sample
def test_record_and_tensors_give_the_same_predictive_bit_for_bit(name, sample, fitted, tmp_path):
    model, rows = fitted(name, sample)
    again = load_model(save_model(model, tmp_path / "model"))
    record = model.posterior.record()
    assert json.loads(json.dumps(record)) == record == again.posterior.record()
    one, other = model.posterior.tensors(), again.posterior.tensors()
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
    assert again.posterior.name == name and again.parameters == model.parameters
    expected, found = model.posterior.predictive(rows), again.posterior.predictive(rows)
    assert found.likelihood.name == expected.likelihood.name and torch.equal(
        found.raw, expected.raw
    )
    plain = (each.posterior.without_recalibration().predictive(rows) for each in (model, again))
    assert torch.equal(*(predictive.raw for predictive in plain))


@every_inference
@every_sample
def test_rows_may_be_asked_in_any_portions(name, sample, fitted):
    model, rows = fitted(name, sample)
    whole = model.posterior.predictive(rows).raw
    parts = [model.posterior.predictive(rows[np.arange(k, k + 20)]).raw for k in (0, 20)]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-5, atol=1e-6)


@every_inference
@every_sample
def test_encoded_inputs_are_answered_alike(name, sample, fitted):
    model, rows = fitted(name, sample)
    posterior = model.posterior
    if len(posterior.components(rows)) != len(posterior.networks):
        pytest.skip("a linear model takes other inputs")
    answer = posterior.answer(posterior.encoder.inputs(rows, notes=[]))
    torch.testing.assert_close(answer, posterior.predictive(rows).raw, rtol=1e-5, atol=1e-6)


@every_inference
@every_sample
def test_the_predictive_is_the_mixture_of_its_components(name, sample, fitted):
    model, rows = fitted(name, sample)
    parts = model.posterior.components(rows)
    assert sum(weight for weight, _ in parts) == pytest.approx(1)
    y = model.outcome.encode(SAMPLES[sample][2], model.task.settings, reset=False)[0]
    y = torch.from_numpy(np.array(y))
    mixed = model.posterior.without_recalibration().predictive(rows).distribution.log_prob(y)
    each = torch.stack([part.distribution.log_prob(y) + np.log(w) for w, part in parts if w > 0])
    torch.testing.assert_close(mixed, each.logsumexp(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name, option", [("nuts", "warmup"), ("laplace", "samples"), ("pac_bayes", "samples")]
)
def test_no_draws_at_all_are_refused_before_any_work(name, option):
    model = Classifier(inference=name, inference_options={option: 0})
    with pytest.raises(UsageError, match=f"{option} must be a whole number of 1 or more, got 0"):
        model.fit(np.zeros((40, 1)), np.arange(40) % 2)
