import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import fit_linear, join_targets

N = 60
OPTIONS = {
    "normal": {"dispersion": "constant"},
    "gamma": {},
    "student_t": {"dispersion": "constant"},
    "laplace": {"dispersion": 2.0},
    "poisson": {},
    "huber": {},
    "weibull": {"dispersion": "constant"},
    "negative_binomial": {"dispersion": "constant"},
    "ordinal": {},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_joined_targets_have_the_losses_of_their_fits(name):
    x = torch.randn(N, 2)
    y = torch.stack([x[:, 0] + torch.randn(N), 100 + 50 * torch.randn(N)], 1)
    if name in ("poisson", "negative_binomial"):
        y = y.abs().ceil()
    elif name == "ordinal":
        y = torch.bucketize((y - y.mean(0)) / y.std(0), torch.tensor([-0.5, 0.5])).double()
    elif name in ("gamma", "weibull"):
        y = y.abs() + 0.1
    fits = [fit_linear(create(name, **OPTIONS[name]), x, y[:, k]) for k in range(2)]
    network, objective = join_targets(fits)
    raw = objective.raw(network, (x,))
    for k, fit in enumerate(fits):
        assert_close(raw[:, k], fit.predict_raw(x))
    total = objective.evaluate(network, Batch.of(x, y)).total
    assert_close(-total.item(), sum(fit.log_likelihood for fit in fits))


def test_fits_of_different_columns_are_refused():
    x, y = torch.randn(N, 2), torch.randn(N)
    likelihood = create("normal", dispersion="constant")
    with pytest.raises(UsageError, match="same columns"):
        join_targets([fit_linear(likelihood, x, y), fit_linear(likelihood, x[:, :1], y)])
