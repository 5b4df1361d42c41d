import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import InverseGaussian, InverseGaussianDistribution
from ansatz.likelihoods.special.normal import (
    log_inverse_gaussian_cdf,
    log_inverse_gaussian_survival,
)


def exact_tails(d, c):
    """The textbook's sum of two normal cdfs, with more digits than it cancels."""
    with mpmath.workdps(400):
        d, c = mpmath.mpf(d), mpmath.mpf(c)
        root = mpmath.exp(-c / 2)
        a, b = 2 * root * mpmath.sinh(d / 2), 2 * root * mpmath.cosh(d / 2)
        lower = mpmath.erfc(-a / mpmath.sqrt(2)) / 2
        lower += mpmath.exp(2 * mpmath.exp(-c)) * mpmath.erfc(b / mpmath.sqrt(2)) / 2
        return float(mpmath.log(lower)), float(mpmath.log1p(-lower))


@pytest.mark.parametrize("c", [-8.0, -3.0, 0.0, 2.0, 6.0, 12.0])
def test_both_tails_keep_their_digits(c):
    for d in (-5.0, -1.0, -0.1, 0.0, 0.1, 0.7, 2.0, 5.0):
        lower, upper = exact_tails(d, c)
        at = torch.tensor(d), torch.tensor(c)
        if lower < 0:
            assert log_inverse_gaussian_cdf(*at).item() == pytest.approx(lower, rel=1e-12)
        if upper < 0 and upper > -1e5:  # beyond, 400 digits are not enough
            assert log_inverse_gaussian_survival(*at).item() == pytest.approx(upper, rel=1e-12)


def test_both_tails_have_second_derivatives():
    d, c = torch.randn(6).requires_grad_(), torch.randn(6).requires_grad_()
    for tail in (log_inverse_gaussian_cdf, log_inverse_gaussian_survival):
        assert torch.autograd.gradcheck(tail, (d, c))
        assert torch.autograd.gradgradcheck(tail, (d, c))


@pytest.mark.parametrize("kappa", [1e-6, 1e-2, 1.0, 1e3])
def test_the_entropy_is_that_of_quadrature(kappa):
    distribution = InverseGaussianDistribution(torch.zeros(1), torch.tensor([kappa]))
    with mpmath.workdps(30):
        k = mpmath.mpf(kappa)
        x = 2 / k
        integral = mpmath.exp(x) * mpmath.e1(x)
        exact = (mpmath.log(2 * mpmath.pi * mpmath.e * k) - 3 * integral) / 2
    assert distribution.entropy.item() == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
    phi = torch.tensor([kappa]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: InverseGaussianDistribution(torch.zeros(1), (s - 1).exp() * kappa).entropy,
        torch.ones_like(phi).requires_grad_(),
    )


def test_the_start_is_the_closed_form_maximum():
    y = torch.as_tensor(stats.invgauss(0.7, scale=3).rvs(300, random_state=0))
    likelihood = InverseGaussian()
    likelihood.observe(y, torch.ones(300))
    shift, _ = likelihood.start(y, torch.ones(300))
    found = likelihood.distribution(shift.reshape(1, 2))
    assert found.mean.item() == pytest.approx(y.mean().item())
    exact = (1 / y).mean().item() - 1 / y.mean().item()
    assert found.dispersion.item() == pytest.approx(exact, rel=1e-9)


def test_a_reciprocal_pair_of_outcomes_have_densities_in_proportion():
    """f(mu u) u^3 = f(mu / u): the exponent is symmetric in log u."""
    likelihood, u = (
        InverseGaussianDistribution(torch.zeros(5), torch.rand(5) + 0.1),
        torch.rand(5) + 0.2,
    )
    assert_close(likelihood.log_prob(u) + 3 * u.log(), likelihood.log_prob(1 / u))


@pytest.mark.parametrize("kappa", [1e-4, 0.3, 30.0, 1e4])
def test_quantiles_invert_both_tails(kappa):
    distribution = InverseGaussianDistribution(torch.zeros(7), torch.full((7,), kappa))
    q = torch.tensor([1e-12, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12])
    assert_close(distribution.cdf(distribution.icdf(q)), q, rtol=1e-10, atol=1e-15)
    ends = distribution.icdf(torch.tensor([0.0, 1.0, -0.1, 1.1, 0.5, 0.5, 0.5]))
    assert ends[0] == 0 and ends[1].isinf() and ends[2:4].isnan().all()


def test_nearly_normal_where_the_dispersion_is_small():
    """At phi mu = 1e-12 the likelihood is N(mu, phi mu^3) up to a skewness of 3e-6."""
    likelihood, z = (
        InverseGaussianDistribution(torch.zeros(3), torch.full((3,), 1e-12)),
        torch.tensor([-2.0, 0.0, 2.0]),
    )
    y = 1 + 1e-6 * z
    assert_close(likelihood.cdf(y), torch.special.ndtr(z), atol=2e-6, rtol=0)


def test_the_linear_model_is_statsmodels_glm():
    sm = pytest.importorskip("statsmodels.api")
    from ansatz.linear import fit_linear

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    mean = np.exp(0.5 + x @ [0.3, -0.2])
    y = stats.invgauss(0.4 * mean, scale=1 / 0.4).rvs(random_state=1)
    family = sm.families.InverseGaussian(sm.families.links.Log())
    theirs = sm.GLM(y, sm.add_constant(x), family=family).fit(tol=1e-14)
    ours = fit_linear(
        InverseGaussian(dispersion="constant"), torch.as_tensor(x), torch.as_tensor(y)
    )
    assert_close(
        ours.coefficients.flatten()[:3], torch.as_tensor(theirs.params), rtol=1e-6, atol=1e-8
    )
