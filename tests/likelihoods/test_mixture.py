"""Mixtures: against quadrature, samples and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.testing import assert_close

from ansatz import likelihoods
from ansatz.likelihoods import (
    GammaDistribution,
    NormalDistribution,
    OrdinalDistribution,
    PoissonDistribution,
)
from ansatz.likelihoods.averaged import Averaged
from ansatz.likelihoods.mixture import ClassMixture, Mixture, VectorMixture
from ansatz.likelihoods.transformed import Scaled
from ansatz.spec import TargetSpec

WEIGHTS = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
UNIVARIATE = [
    "normal",
    "laplace",
    "student_t",
    "gamma",
    "log_normal",
    "weibull",
    "inverse_gaussian",
    "beta",
    "poisson",
    "negative_binomial",
    "zero_inflated_poisson",
]


def three(kind, *values):
    parts = zip(*values, strict=True)
    return [kind(*(torch.tensor([v], dtype=torch.float64) for v in part)) for part in parts]


def gammas():
    return Mixture(three(GammaDistribution, (-1.0, 0.0, 1.0), (0.3, 0.5, 1.0)), WEIGHTS.log())


def test_density_moments_and_entropy_are_those_of_quadrature():
    likelihood = gammas()
    at = lambda x: torch.tensor([x], dtype=torch.float64)  # noqa: E731

    def density(x):
        return math.exp(float(likelihood.log_prob(at(x))))

    mean, _ = integrate.quad(lambda x: x * density(x), 0, 80)
    square, _ = integrate.quad(lambda x: x * x * density(x), 0, 80)
    entropy, _ = integrate.quad(lambda x: -density(x) * math.log(density(x) + 1e-300), 1e-9, 80)
    assert float(likelihood.mean) == pytest.approx(mean, rel=1e-6)
    assert float(likelihood.variance) == pytest.approx(square - mean**2, rel=1e-6)
    assert float(likelihood.entropy) == pytest.approx(entropy, rel=2e-3)
    cdf, _ = integrate.quad(density, 0, 1.3)
    assert float(likelihood.cdf(at(1.3))) == pytest.approx(cdf, rel=1e-6)
    assert float(likelihood.log_survival(at(1.3)).exp()) == pytest.approx(1 - cdf, rel=1e-6)


def test_quantiles_invert_the_cdf_in_both_tails():
    likelihood = gammas()
    for q in (1e-10, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9):
        level = torch.tensor([q], dtype=torch.float64)
        assert float(likelihood.cdf(likelihood.icdf(level))) == pytest.approx(q, rel=1e-8)


def test_quantiles_of_counts_are_the_least_that_reach_the_level():
    likelihood = Mixture(three(PoissonDistribution, (-1.0, 1.0, 3.0)), WEIGHTS.log())
    values = torch.arange(0.0, 80, dtype=torch.float64).unsqueeze(1)
    table = likelihood.cdf(values)[:, 0]
    for q in (0.01, 0.2, 0.5, 0.77, 0.999):
        expected = int((table >= q).nonzero()[0])
        assert int(likelihood.icdf(torch.tensor([q], dtype=torch.float64))) == expected


def test_what_members_disagree_about_adds_to_what_each_is_unsure_of():
    likelihood = Mixture(
        three(NormalDistribution, (-3.0, 0.0, 4.0), (1.0, 1.0, 1.0)), WEIGHTS.log()
    )
    means = np.array([-3.0, 0.0, 4.0])
    centre = WEIGHTS.numpy() @ means
    assert float(likelihood.within_variance) == pytest.approx(1.0)
    assert float(likelihood.between_variance) == pytest.approx(
        WEIGHTS.numpy() @ (means - centre) ** 2
    )
    assert 0 < float(likelihood.between_entropy) < -float((WEIGHTS * WEIGHTS.log()).sum())
    same = Mixture(three(NormalDistribution, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0)))
    assert float(same.between_entropy) == pytest.approx(0, abs=2e-3)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_samples_follow_the_cdf(name):
    torch.manual_seed(0)
    likelihood = likelihoods.create(name).double()
    count = likelihood.outputs(TargetSpec())
    raw = torch.randn(1, 3, count, dtype=torch.float64).expand(4000, 3, count)
    with torch.no_grad():
        mixed = Averaged([likelihood] * 3, WEIGHTS.log()).distribution(raw)
        y = mixed.sample((), torch.Generator().manual_seed(1))
        level = mixed.cdf(y)
        if mixed.discrete:
            below = mixed.cdf(y - 1)
            u = torch.rand(4000, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
            level = below + u * (level - below)
        assert stats.kstest(level.numpy(), "uniform").pvalue > 1e-3
        assert float(mixed.mean[0]) == pytest.approx(
            float(y.mean()), abs=5 * float(mixed.stddev[0]) / 63
        )


@pytest.mark.parametrize("name", UNIVARIATE)
def test_the_loss_is_the_density_of_the_mixture_and_one_member_is_itself(name):
    torch.manual_seed(0)
    likelihood = likelihoods.create(name).double()
    count = likelihood.outputs(TargetSpec())
    raw = torch.randn(5, 3, count, dtype=torch.float64)
    mixed, alone = Averaged([likelihood] * 3, WEIGHTS.log()), Averaged([likelihood])
    with torch.no_grad():
        y = mixed.distribution(raw).sample((), torch.Generator().manual_seed(0))
        torch.testing.assert_close(mixed.loss(raw, y), -mixed.distribution(raw).log_prob(y))
        torch.testing.assert_close(alone.loss(raw[:, :1], y), likelihood.loss(raw[:, 0], y))
        torch.testing.assert_close(alone.point(raw[:, :1]), likelihood.point(raw[:, 0]))


def test_a_stretched_likelihood_has_the_mean_of_before_and_wider_intervals():
    base = Mixture(three(NormalDistribution, (-3.0, 0.0, 4.0), (1.0, 2.0, 1.0)), WEIGHTS.log())
    likelihood = Scaled(base, 1.7)
    y = torch.tensor([2.3], dtype=torch.float64)
    assert float(likelihood.mean) == float(base.mean)
    assert float(likelihood.stddev) == pytest.approx(1.7 * float(base.stddev))
    step = 1e-6
    slope = (likelihood.cdf(y + step) - likelihood.cdf(y - step)) / (2 * step)
    assert float(slope) == pytest.approx(float(likelihood.log_prob(y).exp()), rel=1e-6)
    assert float(likelihood.cdf(likelihood.icdf(torch.full_like(y, 0.9)))) == pytest.approx(0.9)
    value, _ = integrate.quad(
        lambda x: (float(likelihood.cdf(torch.tensor([x], dtype=torch.float64))) - (x >= 2.3)) ** 2,
        -40,
        40,
        points=[2.3],
        limit=200,
    )
    assert float(likelihood.crps(y)) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", ["gamma", "negative_binomial", "beta", "weibull"])
def test_a_factor_widens_or_narrows_likelihoods_with_a_dispersion(name):
    likelihood = likelihoods.create(name).double()
    raw = torch.zeros(1, 2, likelihood.outputs(TargetSpec()), dtype=torch.float64)
    with torch.no_grad():
        plain, wide = (
            Averaged([likelihood] * 2, factor=factor).distribution(raw).variance
            for factor in (1.0, 1.5)
        )
    assert float(wide) != pytest.approx(float(plain), rel=0.01)


def test_vectors_mix_by_density():
    torch.manual_seed(0)
    likelihood = likelihoods.create("multivariate_normal").double()
    count = likelihood.outputs(TargetSpec(event=(2,)))
    raw = torch.randn(2, 6, count, dtype=torch.float64)
    with torch.no_grad():
        parts = [likelihood.distribution(part) for part in raw]
        mixed = VectorMixture(parts, torch.tensor([0.25, 0.75]).log())
        y = torch.randn(6, 2, dtype=torch.float64)
        expected = 0.25 * parts[0].log_prob(y).exp() + 0.75 * parts[1].log_prob(y).exp()
        torch.testing.assert_close(mixed.log_prob(y).exp(), expected)
        draws = mixed.sample((4000,), torch.Generator().manual_seed(0))
        near = 5 * mixed.variance.sqrt() / math.sqrt(4000)
        assert bool(((draws.mean(0) - mixed.mean).abs() < near).all())


def test_ordered_classes_mix_their_probabilities():
    etas = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64).unsqueeze(1)
    parts = [OrdinalDistribution(eta, torch.zeros(2, dtype=torch.float64)) for eta in etas]
    mixed = ClassMixture(parts, WEIGHTS.log())
    wanted = sum(w * part.probs for w, part in zip(WEIGHTS, parts, strict=True))
    torch.testing.assert_close(mixed.probs, wanted)
    assert mixed.probs.sum().item() == pytest.approx(1)
    assert mixed.mode.tolist() == wanted.argmax(-1).tolist()


def test_the_covariance_of_mixed_vectors_is_that_of_their_draws():
    """Within 5 standard errors; it also has the variances on its diagonal."""
    raw = torch.randn(3, 1, 5, generator=torch.Generator().manual_seed(0))
    law = likelihoods.MultivariateNormal()
    mixed = VectorMixture([law.distribution(each) for each in raw])
    y = mixed.sample((20_000,), torch.Generator().manual_seed(1)) - mixed.mean
    products = y.unsqueeze(-1) * y.unsqueeze(-2)
    error = products.std(0) / 20_000**0.5
    assert ((products.mean(0) - mixed.covariance).abs() < 5 * error).all()
    assert_close(mixed.covariance.diagonal(dim1=-2, dim2=-1), mixed.variance)
