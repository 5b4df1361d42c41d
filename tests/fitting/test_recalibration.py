import math

import pytest
import torch

from ansatz.fitting.recalibration import (
    find_factor,
    for_dispersion,
    for_mixture,
    kind_of,
    optimism,
)
from ansatz.likelihoods import Gamma, Normal, Poisson


def test_the_factor_of_a_normal_likelihood_is_the_root_mean_square_score():
    z = torch.randn(400, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1.6

    def loss(c):
        return 0.5 * (z / c) ** 2 + math.log(c)

    weight = torch.ones(400, dtype=torch.float64)
    assert find_factor(loss, weight) == pytest.approx(float(z.square().mean().sqrt()), rel=1e-3)


def test_what_can_be_recalibrated():
    assert [kind_of(likelihood) for likelihood in (Normal(), Gamma(), Poisson())] == [
        "scale",
        "dispersion",
        None,
    ]


def synthetic(a, seed=0):
    """One row, ten members of equal variance and a linear model, with its mixtures by the formula.

    Returns the members' squared errors and variances as mixtures with the linear model, and those
    of the mixture of all, and a^2 B.
    """
    source = torch.Generator().manual_seed(seed)
    f, weight, (y, line) = (
        torch.randn(10, dtype=torch.float64, generator=source) / 3,
        torch.rand(10, dtype=torch.float64, generator=source),
        torch.randn(2, dtype=torch.float64, generator=source) * 3,
    )
    weight = weight / weight.sum()
    within, of_line = 0.7, 1.3

    def moments(shares, means):
        mean = (shares * means).sum()
        second = (shares[:-1].sum() * within + shares[-1] * of_line) + (shares * means**2).sum()
        return (y - mean) ** 2, second - mean**2

    single = [moments(torch.tensor([a, 1 - a]).double(), torch.stack([each, line])) for each in f]
    errors, variances = (
        (weight * torch.stack(column)).sum() for column in zip(*single, strict=True)
    )
    share = torch.cat([a * weight, torch.tensor([1 - a]).double()])
    error, variance = moments(share, torch.cat([f, line[None]]))
    between = (weight * (f - (weight * f).sum()) ** 2).sum()
    return errors, variances, error, variance, a**2 * between


@pytest.mark.parametrize("a", [1.0, 0.6, 0.18])
def test_the_served_mixture_is_right_when_the_out_of_fold_predictive_is(a):
    """c^2 V_k is the squared error of a member's mixture; c'^2 V is that of the mixture of all."""
    errors, variances, error, variance, removed = synthetic(a)
    factor = float((errors / variances).sqrt())
    served = for_mixture(factor, float(removed / variance))
    assert served**2 * float(variance) == pytest.approx(float(error), rel=1e-10)


def test_without_networks_the_out_of_fold_factor_is_served():
    for a in (0.1, 0.01, 0.001):
        *_, variance, removed = synthetic(a)
        found = for_mixture(0.99, float(removed / variance), optimism(20, a))
        assert found == pytest.approx(0.99, abs=a)
    assert for_mixture(0.99, 0.0, optimism(20, 0.0)) == 0.99


def test_members_that_disagree_more_than_they_err_leave_half_the_factor():
    assert for_mixture(1.0, 0.9) == 0.5


def test_optimism_is_akaikes_final_prediction_error():
    """In OLS with d columns: the error of new rows over that of the fitted ones."""
    m, d, source = 20, 2, torch.Generator().manual_seed(0)
    x = torch.randn(m, d, dtype=torch.float64, generator=source)
    hat = x @ torch.linalg.inv(x.T @ x) @ x.T
    inside = 1 - hat.diagonal().mean()  # E of the squared residual, noise of variance 1
    outside = 1 + hat.diagonal().mean()  # at the same x, with new noise
    assert optimism(m) == pytest.approx(float(outside / inside))
    assert optimism(m, 0.5) == pytest.approx(1 + (optimism(m) - 1) / 2)
    assert 1 < optimism(1_000) < optimism(10) < optimism(0) == 2


def test_a_dispersion_leaves_the_variance_between_members_as_it_is():
    """Gamma: V(c) = c W + B; c' W + B is the error c W of a member, less the B averaged away."""
    within, between = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0.1, 0.2, 0.5])
    found = for_dispersion(1.2, lambda c: c * within + between, between)
    assert found == pytest.approx(1.2 - 2 * 0.1, abs=1e-3)
    assert for_dispersion(1.2, lambda c: c * within, 0 * between) == pytest.approx(1.2, abs=1e-3)
    assert for_dispersion(1.2, lambda c: within * torch.nan, between) == 1.2
