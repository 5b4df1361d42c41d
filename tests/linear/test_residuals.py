import numpy as np
import pytest
import statsmodels.api as sm
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.likelihoods import create
from ansatz.linear import fit_linear, residuals
from ansatz.seeds import generator

FAMILIES = {
    "normal": sm.families.Gaussian(),
    "bernoulli": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}


def drawn(name, rows=4000):
    """A likelihood with constant dispersion, raw numbers, and outcomes drawn from it."""
    constant = name in ("normal", "gamma", "laplace", "student_t")
    likelihood = create(name, dispersion=0.7) if constant else create(name)
    raw = torch.randn(rows, 1)
    return likelihood, raw, likelihood.distribution(raw).sample((), generator(3, name)).double()


@pytest.mark.parametrize("name", FAMILIES)
def test_response_pearson_and_deviance_are_those_of_glm(name):
    likelihood, _, y = drawn(name, 200)
    x = torch.randn(200, 2)
    likelihood = (
        create(name, dispersion="constant") if name in ("normal", "gamma") else create(name)
    )
    fit = fit_linear(likelihood, x, y)
    raw = fit.predict_raw(x)
    glm = sm.GLM(y.numpy(), sm.add_constant(x.numpy()), family=FAMILIES[name]).fit(tol=1e-14)
    for kind in ("response", "pearson", "deviance"):
        theirs = getattr(glm, f"resid_{kind}")
        ours = residuals(fit.likelihood, raw, y, kind)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    squares = residuals(fit.likelihood, raw, y, "deviance").square().sum()
    assert squares == pytest.approx(fit.residual_deviance)


@pytest.mark.parametrize("name", [*FAMILIES, "laplace", "student_t"])
def test_quantile_residuals_of_the_right_likelihood_are_standard_normal(name):
    likelihood, raw, y = drawn(name)
    z = residuals(likelihood, raw, y, "quantile", generator=generator(0))
    # Kolmogorov's distance exceeds 2.3 / sqrt(n) once in 20,000.
    assert stats.kstest(z.numpy(), "norm").statistic < 2.3 / len(z) ** 0.5


def test_quantile_residuals_of_a_wrong_likelihood_are_not():
    likelihood, raw, y = drawn("poisson")
    z = residuals(likelihood, raw + 0.5, y, "quantile", generator=generator(0))
    assert stats.kstest(z.numpy(), "norm").statistic > 0.1


def test_quantile_residuals_of_the_normal_likelihood_are_its_z_in_both_tails():
    y = torch.tensor([-40.0, -9.0, 0.3, 9.0, 40.0])
    likelihood = create("normal", dispersion=1.0)
    assert_close(residuals(likelihood, torch.zeros(5, 1), y, "quantile"), y)


def test_randomised_residuals_lie_between_the_steps_of_the_cdf_and_repeat():
    likelihood, raw, y = drawn("poisson", 300)
    a = residuals(likelihood, raw, y, "quantile", generator=generator(7))
    b = residuals(likelihood, raw, y, "quantile", generator=generator(7))
    assert torch.equal(a, b)
    rate = raw[:, 0].exp().numpy()
    u = stats.norm.cdf(a.numpy())
    assert (u >= stats.poisson.cdf(y.numpy() - 1, rate) - 1e-12).all()
    assert (u <= stats.poisson.cdf(y.numpy(), rate) + 1e-12).all()
    with pytest.raises(UsageError, match=r"give a torch\.Generator"):
        residuals(likelihood, raw, y, "quantile")


def test_classes_have_one_residual_per_indicator():
    likelihood = create("categorical")
    raw, y = torch.randn(50, 3), torch.randint(0, 3, (50,))
    p = raw.softmax(1)
    response = residuals(likelihood, raw, y, "response")
    assert_close(response, torch.eye(3)[y] - p)
    assert_close(residuals(likelihood, raw, y, "pearson"), response / (p * (1 - p)).sqrt())
    deviance = residuals(likelihood, raw, y, "deviance")
    assert_close(deviance.square(), -2 * p.gather(1, y.unsqueeze(1)).squeeze(1).log())
    with pytest.raises(UsageError, match="no order"):
        residuals(likelihood, raw, y, "quantile")


def test_likelihoods_without_a_variance_function_are_scaled_by_their_sd():
    likelihood = create("laplace", dispersion=2.0)
    z = residuals(likelihood, torch.zeros(1, 1), torch.tensor([4.0]), "pearson")
    assert_close(z, torch.tensor([4 / (2 * 2**0.5)]))
    with pytest.raises(UsageError, match="no deviance residuals"):
        residuals(likelihood, torch.zeros(1, 1), torch.tensor([4.0]), "deviance")


def test_an_unknown_kind_is_named():
    with pytest.raises(UsageError, match=r"residuals are response, .* got 'working'"):
        residuals(create("poisson"), torch.zeros(1, 1), torch.ones(1), "working")
