import math

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Distribution, NormalDistribution, PoissonDistribution
from ansatz.likelihoods.distribution import bisect
from ansatz.likelihoods.mixture import Mixture


class Logistic(Distribution):
    """The least that a distribution must define, to see what the family adds."""

    def __init__(self, location):
        self.location = location

    @property
    def mean(self):
        return self.location

    @property
    def variance(self):
        return torch.full_like(self.location, math.pi**2 / 3)

    def log_prob(self, y):
        z = y - self.location
        return -z - 2 * torch.nn.functional.softplus(-z)

    def cdf(self, y):
        return torch.sigmoid(y - self.location)


def test_the_family_gives_quantiles_to_a_likelihood_with_a_cdf():
    q, likelihood = torch.tensor([1e-6, 0.3, 0.99]), Logistic(torch.tensor([0.0, 2.0, -1e3]))
    assert_close(likelihood.icdf(q), likelihood.location + torch.logit(q), rtol=1e-12, atol=1e-9)
    assert_close(likelihood.median, likelihood.location, rtol=1e-12, atol=1e-9)


def test_the_family_gives_crps_and_samples_to_a_likelihood_with_a_cdf():
    likelihood, y = Logistic(torch.tensor([0.0])), torch.tensor([1.3])
    closed = 1.3 - 2 * math.log(1 / (1 + math.exp(-1.3))) - 1  # Taillardat et al. (2016)
    assert_close(likelihood.crps(y), torch.tensor([closed]), rtol=1e-8, atol=0)
    draws = likelihood.sample((4000,), torch.Generator().manual_seed(0))
    assert stats.kstest(draws[:, 0].numpy(), "logistic").pvalue > 1e-6


def test_the_familys_quantile_is_differentiable():
    q = torch.tensor([0.2, 0.7], requires_grad=True)
    location = torch.tensor([0.0, 1.0], requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, q: Logistic(m).icdf(q), (location, q))


def test_levels_outside_the_unit_interval_have_no_quantile():
    distribution = NormalDistribution(torch.zeros(4), torch.ones(4))
    q = torch.tensor([-0.1, 0.0, 1.0, 1.1])
    expected = torch.tensor([torch.nan, -torch.inf, torch.inf, torch.nan])
    assert_close(bisect(distribution, q), expected, equal_nan=True)
    assert_close(distribution.icdf(q), expected, equal_nan=True)


def test_bisection_finds_counts_too():
    likelihood, q = PoissonDistribution(torch.tensor(3.7).log().expand(50)), torch.rand(50)
    assert_close(bisect(likelihood, q), torch.as_tensor(stats.poisson(3.7).ppf(q.numpy())))


def test_what_a_likelihood_lacks_is_said():
    for member in ("mean", "variance", "mode", "entropy"):
        with pytest.raises(TypeError, match=r"Distribution (defines no|has no closed form)"):
            getattr(Distribution(), member)
    for method in ("log_prob", "cdf"):
        with pytest.raises(TypeError, match="Distribution defines no"):
            getattr(Distribution(), method)(torch.zeros(1))


def test_a_quantile_without_gradient_does_not_ask_the_cdf():
    class Counting(NormalDistribution):
        asked = 0

        def cdf(self, y):
            self.asked += 1
            return super().cdf(y)

        icdf = Distribution.icdf

        def _solve(self, q):
            return NormalDistribution.icdf(self, q)

    q, mean = torch.tensor([0.3]), torch.zeros(1)
    plain, learned = Counting(mean, mean + 1), Counting(mean.clone().requires_grad_(), mean + 1)
    assert not plain.icdf(q).requires_grad
    assert plain.asked == 0
    assert learned.icdf(q).requires_grad
    assert plain.icdf(q.clone().requires_grad_()).requires_grad


@pytest.mark.parametrize("log_rate", [800.0, torch.inf, torch.nan])
def test_the_quantile_of_a_rate_that_overflowed_is_not_searched_for(log_rate):
    found = PoissonDistribution(torch.tensor([log_rate, 1.0])).icdf(torch.full((2,), 0.9))
    assert found[1] == stats.poisson(math.e).ppf(0.9) and not found[0].isfinite()


def test_the_score_of_a_wide_mixture_of_counts_is_no_endless_sum():
    """Rates 1e9 and 4e9: CRPS = E|Y - y| - E|Y - Y'| / 2 with all mass at the two rates."""
    rates = [torch.tensor([1e9, 3.0]).log(), torch.tensor([4e9, 3.0]).log()]
    law = Mixture([PoissonDistribution(rate) for rate in rates], torch.tensor([0.5, 0.5]))
    wide, narrow = law.crps(torch.tensor([2e9, 4.0]))
    assert wide == pytest.approx(1.5e9 - 0.75e9, rel=1e-2)
    assert_close(narrow, PoissonDistribution(torch.tensor(3.0).log()).crps(torch.tensor(4.0)))
