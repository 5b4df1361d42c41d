import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import LogNormal, LogNormalDistribution, Normal


def test_the_loss_is_the_normal_likelihood_of_the_logarithm_and_its_jacobian():
    raw, y = torch.randn(20, 1), torch.rand(20) + 0.1
    normal = Normal(dispersion=0.7).loss(raw, y.log())
    assert_close(LogNormal(dispersion=0.7).loss(raw, y), normal + y.log())


def test_both_far_tails_have_logarithms():
    distribution = LogNormalDistribution(torch.zeros(1), torch.ones(1))
    y = torch.tensor([1e20])
    with mpmath.workdps(50):
        z = mpmath.log(mpmath.mpf(1e20))
        exact = float(mpmath.log(mpmath.erfc(z / mpmath.sqrt(2)) / 2))
    assert distribution.log_survival(y).item() == pytest.approx(exact, rel=1e-12)
    assert distribution.log_cdf(1 / y).item() == pytest.approx(exact, rel=1e-12)


def test_the_edges_of_the_support():
    likelihood, y = (
        LogNormalDistribution(torch.zeros(3), torch.ones(3)),
        torch.tensor([-1.0, 0.0, torch.inf]),
    )
    assert_close(likelihood.cdf(y), torch.tensor([0.0, 0.0, 1.0]))
    assert_close(likelihood.log_survival(y), torch.tensor([0.0, 0.0, -torch.inf]))
    assert_close(likelihood.log_prob(y), torch.full((3,), -torch.inf))


def test_predict_is_the_mean_which_a_single_precision_number_may_not_hold():
    likelihood = LogNormal(dispersion=2.0)
    raw = torch.tensor([[0.0], [49.0]], dtype=torch.float32)
    assert_close(likelihood.point(raw)[0].item(), math.exp(2), rtol=1e-6, atol=0)
    wide = LogNormal(dispersion=20.0).distribution(raw)
    assert wide.mean.isinf().all()
    assert wide.median.isfinite().all()


@pytest.mark.parametrize("sigma", [0.01, 1.0, 5.0])
def test_crps_keeps_its_digits(sigma):
    distribution = LogNormalDistribution(torch.zeros(1), torch.tensor([sigma]))
    y = 1.3
    with mpmath.workdps(40):
        s, x = mpmath.mpf(sigma), mpmath.mpf(y)
        z = mpmath.log(x) / s
        exact = x * (2 * mpmath.ncdf(z) - 1) - 2 * mpmath.exp(s * s / 2) * (
            mpmath.ncdf(z - s) + mpmath.ncdf(s / mpmath.sqrt(2)) - 1
        )
    assert distribution.crps(torch.tensor([y])).item() == pytest.approx(float(exact), rel=1e-10)


def test_the_start_is_the_mean_and_sd_of_the_logarithm():
    y = stats.lognorm(0.8, scale=4).rvs(200, random_state=0)
    likelihood = LogNormal()
    likelihood.observe(torch.as_tensor(y), torch.ones(200))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(200))
    found = likelihood.distribution(shift.reshape(1, 2))
    assert found.log_median.item() == pytest.approx(np.log(y).mean())
    assert found.sigma.item() == pytest.approx(np.log(y).std())


def test_rounded_outcomes_have_a_floor_in_proportion_to_their_mean():
    likelihood = LogNormal()
    likelihood.observe(torch.tensor([9.0, 10.0, 11.0]), torch.ones(3))
    # sd / 2 is less than 1 / sqrt(12) / 10
    assert likelihood.dispersion.floor.item() == pytest.approx(1 / math.sqrt(12) / 10)
