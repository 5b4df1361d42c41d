"""Chains of the weights of networks."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.inference.network_density import NetworkDensity
from ansatz.inference.weight_prior import WeightPrior
from ansatz.likelihoods import Categorical, Normal
from ansatz.networks import MLP
from ansatz.training import Supervised

draw = np.random.default_rng(0)
X = draw.normal(size=(60, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * draw.normal(size=60)
SHORT = {"warmup": 20, "draws": 20, "chains": 2, "max_depth": 4}


def density_of(likelihood, target, outputs, activation="tanh", weight=None, **priors):
    network = MLP(3, outputs, widths=(4, 3), activation=activation).double()
    size = len(target)
    weight = torch.ones(size).double() if weight is None else weight
    likelihood.observe(target, weight)
    shift, scale = likelihood.start(target, weight)
    objective = Supervised(likelihood, shift, scale).double()
    rows = Batch((torch.from_numpy(X),), target, weight, None, torch.arange(size))
    return NetworkDensity(
        network, objective, WeightPrior(network, objective, priors).double(), rows
    )


CASES = {
    "normal": lambda: density_of(Normal(dispersion="constant"), torch.from_numpy(y), 1),
    "weighted": lambda: density_of(
        Normal(dispersion="constant"), torch.from_numpy(y), 1, "relu", torch.rand(60).double() + 0.5
    ),
    "classes": lambda: density_of(Categorical(), torch.arange(60) % 3, 3, "silu"),
    "fixed": lambda: density_of(
        Normal(dispersion="constant"),
        torch.from_numpy(y),
        1,
        weights="normal(0, 0.7)",
        sigma="half_normal(1)",
    ),
}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_the_written_gradient_is_that_of_the_density_and_of_autograd(make):
    density = make()
    at = 0.5 * torch.randn(2, density.size, dtype=torch.float64)
    value, slope = density(at)
    h = 1e-6
    for k in range(density.size):
        step = torch.zeros(density.size, dtype=torch.float64)
        step[k] = h
        found = (density(at + step)[0] - density(at - step)[0]) / (2 * h)
        assert_close(found, slope[:, k], rtol=1e-5, atol=1e-5)
    density._add = density._by_autograd
    for one, other in zip(density(at), (value, slope), strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_the_density_is_the_sum_of_its_parts():
    """Up to a constant: the rows' likelihood, standard normal z and u, an exponential sigma."""
    density = CASES["normal"]()
    at = 0.5 * torch.randn(2, density.size, dtype=torch.float64)
    found = []
    for position, vector in zip(at, density.vectors(at.numpy()), strict=True):
        torch.nn.utils.vector_to_parameters(vector[: density.weights], density.network.parameters())
        head = density.objective.likelihood.dispersion
        with torch.no_grad():
            head.constant.copy_(vector[density.weights :].reshape(head.constant.shape))
            raw = density.objective.raw(density.network, density.rows.inputs)
            law = density.objective.likelihood.distribution(raw)
            rows = law.log_prob(density.rows.target).sum()
        sigma, r = head.unit * torch.nn.functional.softplus(head.constant), head.constant
        of_sigma = -sigma / head.unit + torch.nn.functional.logsigmoid(r)
        z = position[: density.scales]
        found.append(float((rows - 0.5 * z @ z + of_sigma.sum()).detach()))
    value = density(at)[0]
    assert_close(float(value[0] - value[1]), found[0] - found[1])


def test_a_saved_network_answers_the_same_and_its_chains_go_on(tmp_path):
    def fit(draws):
        options = {**SHORT, "draws": draws, "thin": 2}
        return Regressor(inference="nuts", widths=(4,), inference_options=options).fit(X, y)

    whole, half = fit(20), fit(10)
    again = ansatz.load(half.save(tmp_path / "model"))
    assert_close(again.predict(X), half.predict(X), rtol=0, atol=0)
    assert again.model_.verdict["status"] == "doubtful" and not again.model_.has_failed
    again.extend(20, X, y)
    assert torch.equal(again.model_.posterior.draws, whole.model_.posterior.draws)


def test_draws_explain_what_a_line_cannot(tmp_path):
    options = {**SHORT, "warmup": 40, "draws": 40, "max_depth": 5}
    model = Regressor(inference="nuts", widths=(8,), inference_options=options).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.1
    inside, outside = (model.predict_dist(x).variance.mean() for x in (X, 5 * X))
    assert outside > 2 * inside


def test_the_chains_are_compared_at_test_rows_and_refuse_nothing():
    table = {f"x{k}": X[:, k] for k in range(3)} | {"y": y}
    given = {"target": "y", "likelihood": "normal", "inference": "nuts"}
    fit = ansatz.fit(table, **given, options={**SHORT, "widths": [4]})
    verdict = fit.fitted.verdict
    assert verdict["where"] == "test rows" and verdict["rows"] == 24
    assert any("an ensemble of 2 local posteriors" in note for note in fit.notes)


def test_what_chains_of_networks_cannot_do_is_refused():
    with pytest.raises(UsageError, match="inference mh is for linear models"):
        Regressor(inference="mh").fit(X, y)
    with pytest.raises(UsageError, match="'epochs' is not an option"):
        Regressor(inference="nuts", epochs=3).fit(X, y)
    with pytest.raises(UsageError, match="class_weight"):
        Classifier(inference="nuts", class_weight="balanced", widths=(3,)).fit(X, y > 0)
