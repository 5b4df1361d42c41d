"""Priors, normal weights, paths of training and Langevin steps, each against its formula."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import Classifier, Regressor, fit
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.inference.dropout import masked
from ansatz.inference.langevin_step import LangevinStep
from ansatz.inference.mean_field import MeanField
from ansatz.inference.swag import Moments
from ansatz.inference.weight_prior import WeightPrior
from ansatz.likelihoods import Normal, Poisson
from ansatz.networks import MLP
from ansatz.spec import InputSpec
from ansatz.training import Callback, Supervised

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
QUICK = {"epochs": 2, "widths": (4,)}


def network(**options):
    made = MLP(3, 1, **{"widths": (4,), "activation": "tanh", **options})
    return made.double()


def test_the_prior_is_the_sum_of_normal_densities_with_a_scale_per_layer_and_column():
    net = network()
    prior = WeightPrior(net, Supervised(Poisson()))
    prior.layers.data = torch.tensor([0.3, -0.2])
    prior.columns.data = torch.tensor([1.0, 0.0, -1.0])
    layers = (0.4 + prior.layers.data).exp()
    columns = (0.5 * prior.columns.data).exp()
    first, bias, last, bias2 = (p.detach() for p in net.parameters())
    sds = (layers[0] * columns / 3**0.5, layers[0], layers[1] / 2, layers[1])
    expected = sum(
        torch.distributions.Normal(0, sd).log_prob(w).sum()
        for w, sd in zip((first, bias, last, bias2), sds, strict=True)
    )
    assert_close(prior.log_prob(list(net.parameters())).detach(), expected)


def test_columns_are_numbers_and_not_the_vectors_of_levels():
    net = MLP(InputSpec(features=2, cardinalities=(3,)), 1, widths=(4,)).double()
    prior = WeightPrior(net, Supervised(Poisson()))
    assert prior.columns.numel() == 2
    prior.log_prob(list(net.parameters())).backward()
    assert prior.columns.grad.abs().min() > 0


def test_sigma_is_exponential_in_units_of_y():
    likelihood = Normal(dispersion="constant").double()
    likelihood.observe(torch.randn(50), torch.ones(50))
    prior = WeightPrior(network(), Supervised(likelihood))
    r = torch.linspace(-12, 12, 4001)
    values = [prior.log_prob_of_likelihood({"likelihood.dispersion.constant": v}) for v in r]
    assert torch.trapezoid(torch.stack(values).exp(), r) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"layer": "log_normal(0, 1)"}, "Did you mean 'layers'"),
        ({"layers": "normal(0, 1)"}, "scales are log_normal"),
        ({"weights": "student_t(3, 0, 1)"}, r"expected normal\(0, sd\)"),
        ({"sigma": "normal(0, 1)"}, "positive numbers"),
    ],
)
def test_a_wrong_prior_is_named(priors, message):
    with pytest.raises(UsageError, match=message):
        WeightPrior(network(), Supervised(Poisson()), priors)


def test_drawing_outputs_has_the_moments_of_drawing_weights():
    net = nn.Sequential(nn.Linear(3, 2)).double()
    field = MeanField(net, [torch.tensor(1.0)] * 2, start=0.5)
    x = torch.randn(1, 3).expand(40_000, 3)
    source = torch.Generator().manual_seed(0)
    with field.noise(source):
        found = net(x).detach()
    draws = field.sample(40_000, torch.zeros(0), source)
    weight, bias = draws[:, :6].reshape(-1, 2, 3), draws[:, 6:]
    expected = torch.einsum("sjk,k->sj", weight, x[0]) + bias
    assert_close(found.mean(0), expected.mean(0), atol=0.05, rtol=0)
    assert_close(found.var(0), expected.var(0), rtol=0.05, atol=0)
    assert_close(net(x)[0], net[0](x[0]))  # outside there is no noise


def test_a_convolution_draws_outputs_too():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1)).double()
    field = MeanField(net, [torch.tensor(1.0)] * 2, start=0.5)
    x = torch.randn(1, 1, 4, 4)
    with field.noise():
        found = torch.stack([net(x) for _ in range(4_000)]).detach()
    draws = field.sample(4_000, torch.zeros(0), torch.Generator().manual_seed(0))
    weight, bias = draws[:, :18].reshape(-1, 2, 1, 3, 3), draws[:, 18:]
    pairs = zip(weight, bias, strict=True)
    expected = torch.stack([nn.functional.conv2d(x, w, b, padding=1) for w, b in pairs])
    assert_close(found.var(0), expected.var(0), rtol=0.15, atol=0)


def test_draws_of_swag_have_its_covariance():
    moments = Moments(0, 1, rank=3)
    moments.count, moments.mean = 5, torch.tensor([1.0, -2.0])
    moments.square = moments.mean**2 + torch.tensor([0.5, 0.1])
    moments.deviations = [torch.tensor(v) for v in ([1.0, 0.5], [0.2, -0.1], [-0.3, 0.4])]
    columns = torch.stack(moments.deviations)
    expected = torch.diag(torch.tensor([0.5, 0.1])) / 2 + columns.T @ columns / 4
    draws = moments.sample(100_000, torch.Generator().manual_seed(0))
    assert_close(draws.mean(0), moments.mean, atol=0.02, rtol=0)
    assert_close(draws.T.cov(), expected, atol=0.02, rtol=0)
    again = Moments(0, 1, rank=3)
    again.load_state_dict(moments.state_dict())
    one, other = (m.sample(2, torch.Generator().manual_seed(1)) for m in (moments, again))
    assert torch.equal(one, other)


@pytest.mark.parametrize(("method", "eta"), [("sgld", 5e-3), ("sghmc", 1e-3)])
def test_minibatch_draws_have_the_variance_of_the_conjugate_posterior(method, eta):
    torch.manual_seed(0)
    x, net = torch.randn(40, 1), nn.Linear(1, 1).double()
    y = 0.5 * x[:, 0] + torch.randn(40)
    objective = Supervised(Normal(dispersion=1.0)).double()
    prior = WeightPrior(net, objective, {"weights": "normal(0, 1)"})
    steps = 2_000
    step = LangevinStep(
        net, objective, prior, method=method, outcomes=40, step_size=eta, friction=0.2,
        cycles=1, steps=steps, draws=steps,
    )  # fmt: skip
    step.cycle = 10**9  # a constant step size; draws are taken below
    batches = [Batch.of(x[k::2], y[k::2]) for k in (0, 1)]
    drawn = []
    for number in range(steps):
        step.step(batches[number % 2])
        drawn.append(step.vector())
    design = torch.cat([x, torch.ones(40, 1)], 1)
    covariance = torch.linalg.inv(design.T @ design + torch.eye(2))
    draws = torch.stack(drawn[steps // 10 :])
    assert_close(draws.mean(0), covariance @ design.T @ y, atol=0.08, rtol=0)
    assert_close(draws.var(0), covariance.diagonal(), rtol=0.35, atol=0)  # N/n left out: twice


def test_the_mean_over_masks_of_a_linear_map_is_the_map():
    net = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 1)).double().eval()
    x, found = torch.randn(2, 4), []
    for number in range(4_000):
        with masked(net, 0, number):
            found.append(net(x).detach())
    assert_close(torch.stack(found).mean(0), net(x).detach(), atol=0.05, rtol=0)


def test_what_a_posterior_is_not_for_is_refused():
    y = X[:, 0]
    for estimator, message in (
        (Regressor("quantiles", inference="vi", **QUICK), "loss without a density"),
        (Regressor("normal", inference="map", likelihood_options={"beta": 0.5}, **QUICK), "beta"),
        (Regressor("normal", inference="swag", dropout=0.2, **QUICK), "inference dropout"),
        (Regressor("normal", inference="sgld", inference_options={"step_size": -1}, **QUICK),
         "step_size must be a positive number"),
        (Regressor("normal", inference="map", priors={"sd": "flat"}, **QUICK), "weights, layers"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            estimator.fit(X, y)
    with pytest.raises(UsageError, match="normalises by batch"):
        Classifier(inference="map", network="small_resnet", epochs=1).fit(
            X.reshape(10, 3, 3).repeat(3, 1).repeat(3, 2).astype(np.float32), np.arange(10) % 2
        )


@pytest.mark.parametrize("name", ["sghmc", "swag", "vi"])
def test_a_resumed_run_draws_the_same_weights(name, tmp_path):
    class Stop(Exception):
        pass

    class Interrupt(Callback):
        def on_step(self, run, logs):
            if run.number == 7:
                raise Stop

    table = {f"x{k}": X[:, k] for k in range(3)} | {"y": X[:, 0]}
    given = {"target": "y", "likelihood": "normal", "inference": name, "progress": "off"}
    given |= {"options": {"steps": 12, "widths": [3], "batch_size": 8}, "test": 0.0}
    whole = fit(pd.DataFrame(table), out=tmp_path / "a", **given)
    with pytest.raises(Stop):
        fit(pd.DataFrame(table), out=tmp_path / "b", callbacks=[Interrupt()], **given)
    resumed = fit(pd.DataFrame(table), out=tmp_path / "b", resume=True, **given)
    one, other = (f.model.model_.posterior.draws for f in (whole, resumed))
    assert torch.equal(one, other)
