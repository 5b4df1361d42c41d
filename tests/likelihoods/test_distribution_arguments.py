"""What every distribution offers beside its density: arrays, entropy, rsample, a short repr."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import (
    Bernoulli,
    BernoulliDistribution,
    Dirichlet,
    DirichletDistribution,
    GammaDistribution,
    LaplaceDistribution,
    MultivariateNormal,
    NormalDistribution,
    PoissonDistribution,
    StudentTDistribution,
    TruncatedDistribution,
    Tweedie,
    create,
    names,
)
from ansatz.likelihoods.mixture import Mixture
from ansatz.spec import TargetSpec

OPTIONS = {  # of the likelihoods that need some
    "truncated": {"likelihood": "normal", "lower": 0.0},
    "sum": {"losses": ["mse"]},
}
TARGETS = {
    "categorical": TargetSpec(classes=3),
    "ordinal": TargetSpec(classes=3),
    "dirichlet": TargetSpec(event=(3,)),
    "multivariate_normal": TargetSpec(event=(2,)),
}
# survival curves, orders, losses and molecules have tests of their own
OTHERS = {"energy_forces", "cox", "discrete_hazard", "censored", "plackett_luce", "sum", "kl"}


def distributions():
    """Name, likelihood, raw numbers of three rows: every likelihood that has a distribution."""
    generator = torch.Generator().manual_seed(3)
    for name in names():
        likelihood = None if name in OTHERS else create(name, **OPTIONS.get(name, {}))
        if likelihood is None or not likelihood.has_distribution:
            continue
        P = likelihood.outputs(TARGETS.get(name, TargetSpec()))
        raw = 0.5 * torch.randn(3, P, dtype=torch.float64, generator=generator)
        yield pytest.param(likelihood, raw, id=name)


def distribution(likelihood, raw):
    """Ten trials, where there are some."""
    ten = (10,) if likelihood.name in ("binomial", "beta_binomial") else ()
    return likelihood.distribution(raw, *ten)


every = pytest.mark.parametrize("likelihood, raw", list(distributions()))


@every
def test_entropy_is_the_mean_of_minus_log_density(likelihood, raw):
    """Within 5 standard errors of 40,000 draws."""
    d = distribution(likelihood, raw)
    y = d.sample((40_000,), torch.Generator().manual_seed(1))
    log_p = -d.log_prob(y)
    error = log_p.std(0) / math.sqrt(len(log_p))
    assert ((log_p.mean(0) - d.entropy).abs() < 5 * error + 1e-12).all()


@every
def test_outcomes_may_be_arrays_and_lists(likelihood, raw):
    d = distribution(likelihood, raw)
    y = d.sample((), torch.Generator().manual_seed(2))
    expected = d.log_prob(y)
    assert_close(d.log_prob(y.numpy()), expected)
    assert_close(d.log_prob(y.tolist()), expected)
    assert_close(d.log_prob(y=y.numpy().astype(np.float64)), expected)


@every
def test_repr_is_one_short_line(likelihood, raw):
    text = repr(distribution(likelihood, raw.repeat(1000, 1)))
    assert text.startswith(type(distribution(likelihood, raw)).__name__)
    assert len(text) < 300 and "\n" not in text


CONTINUOUS = [p for p in distributions() if p.id not in ("dirichlet", "multivariate_normal")]
CONTINUOUS = [
    p for p in CONTINUOUS if not (d := distribution(*p.values)).discrete and d.reparameterized
]


@pytest.mark.parametrize("likelihood, raw", CONTINUOUS)
def test_rsample_moves_with_the_quantile(likelihood, raw):
    """Pathwise: d y / d raw at a draw is that of F^{-1}(u; raw), here by central differences."""
    raw = raw.requires_grad_()
    d = distribution(likelihood, raw)
    y = d.rsample((4,), torch.Generator().manual_seed(5))
    assert torch.equal(y.detach(), d.sample((4,), torch.Generator().manual_seed(5)))
    (found,) = torch.autograd.grad(y.sum(), raw)
    with torch.no_grad():
        level, step = d.cdf(y), 1e-5
        for k in range(raw.shape[1]):
            ends = [raw.clone(), raw.clone()]
            ends[0][:, k] -= step
            ends[1][:, k] += step
            low, high = (distribution(likelihood, end).icdf(level) for end in ends)
            assert_close(found[:, k], ((high - low) / (2 * step)).sum(0), rtol=1e-4, atol=1e-5)


def test_every_continuous_likelihood_has_rsample():
    tested = {p.id for p in CONTINUOUS}
    assert {"normal", "gamma", "beta", "student_t", "von_mises", "normal_mixture"} <= tested
    assert tested & {"poisson", "tweedie", "bernoulli", "zero_one_inflated_beta"} == set()


@pytest.mark.parametrize(
    "ours, theirs, of",
    [
        (
            lambda a, b: NormalDistribution(a, b),
            lambda a, b: torch.distributions.Normal(a, b),
            (0.3, 1.2),
        ),
        (
            lambda a, b: LaplaceDistribution(a, b),
            lambda a, b: torch.distributions.Laplace(a, b),
            (0.3, 1.2),
        ),
        (
            lambda a, b: GammaDistribution((a / b).log(), 1 / a),
            lambda a, b: torch.distributions.Gamma(a, b),
            (2.5, 0.7),
        ),
        (
            lambda a, b: StudentTDistribution(a, b, torch.tensor(6.0)),
            lambda a, b: torch.distributions.StudentT(torch.tensor(6.0), a, b),
            (0.2, 1.5),
        ),
    ],
    ids=["normal", "laplace", "gamma", "student_t"],
)
def test_gradients_of_expectations_are_those_of_torch_distributions(ours, theirs, of):
    """d E[sin Y] / d theta by either library's draws, within 5 standard errors of both."""
    means, errors = [], []
    for make in (ours, theirs):
        torch.manual_seed(0)
        a, b = (torch.full((20_000,), v, dtype=torch.float64, requires_grad=True) for v in of)
        torch.sin(make(a, b).rsample()).sum().backward()
        grads = torch.stack([a.grad, b.grad])
        means.append(grads.mean(1))
        errors.append(grads.std(1) / math.sqrt(20_000))
    assert ((means[0] - means[1]).abs() < 5 * (errors[0] ** 2 + errors[1] ** 2).sqrt()).all()


def test_gamma_draws_have_torchs_pathwise_derivative_in_the_shape():
    """torch._standard_gamma_grad is d x / d a of a standard gamma number."""
    a = torch.tensor([0.4, 1.0, 7.0], dtype=torch.float64, requires_grad=True)
    x = GammaDistribution(a.log(), 1 / a).rsample((), torch.Generator().manual_seed(0))
    (found,) = torch.autograd.grad(x.sum(), a)
    assert_close(found, torch._standard_gamma_grad(a.detach(), x.detach()), rtol=1e-4, atol=1e-8)


def test_vectors_have_the_gradient_of_their_moments():
    """Sums of draws: d E[w . Y^2] / d raw, within 5 standard errors."""
    for likelihood, P in ((Dirichlet(), 4), (MultivariateNormal(), 5)):
        raw = 0.3 * torch.randn(P, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        rows = raw.expand(20_000, P).clone().requires_grad_()
        y = likelihood.distribution(rows).rsample((), torch.Generator().manual_seed(2))
        w = torch.arange(1.0, y.shape[-1] + 1, dtype=torch.float64)
        (y.square() @ w).sum().backward()
        raw.requires_grad_()
        d = likelihood.distribution(raw)
        (expected,) = torch.autograd.grad((d.mean**2 + d.variance) @ w, raw)
        error = rows.grad.std(0) / math.sqrt(len(rows))
        assert ((rows.grad.mean(0) - expected).abs() < 5 * error + 1e-12).all()


def test_mixtures_and_truncations_are_reparameterised():
    mean = torch.zeros(5_000, dtype=torch.float64, requires_grad=True)
    one = torch.ones_like(mean)
    mixed = Mixture([NormalDistribution(mean, one), NormalDistribution(mean + 3, one / 2)])
    mixed.rsample((), torch.Generator().manual_seed(0)).sum().backward()
    error = mean.grad.std() / math.sqrt(len(mean))  # E Y moves with the mean
    assert abs(mean.grad.mean() - 1) < 5 * error + 1e-9
    start = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)
    cut = TruncatedDistribution(NormalDistribution(start.expand(5_000), 1.0), lower=0.0)
    (found,) = torch.autograd.grad(cut.rsample((), torch.Generator().manual_seed(0)).mean(), start)
    single = TruncatedDistribution(NormalDistribution(start, 1.0), lower=0.0)
    (expected,) = torch.autograd.grad(single.mean.sum(), start)
    assert_close(found, expected, rtol=0.05, atol=0)


@pytest.mark.parametrize("likelihood, raw", [(Bernoulli(), 1), (Tweedie(), 2)])
def test_where_no_draw_moves_with_the_parameters_rsample_is_refused(likelihood, raw):
    with pytest.raises(TypeError, match=r"no reparameterisation.*score"):
        likelihood.distribution(torch.zeros(2, raw)).rsample()


def test_parameters_may_be_numbers_lists_and_arrays():
    assert_close(
        NormalDistribution([0.0, 1.0], 2.0).cdf(np.array([0.0, 1.0])),
        torch.full((2,), 0.5, dtype=torch.get_default_dtype()),
    )
    rate = np.log([1.0, 4.0])
    assert_close(PoissonDistribution(rate).mean, torch.tensor([1.0, 4.0], dtype=torch.float64))
    assert (
        NormalDistribution(torch.zeros(1, dtype=torch.float32), 1).cdf(0.5).dtype == torch.float32
    )
    assert BernoulliDistribution(0).log_prob(1).item() == pytest.approx(math.log(0.5))
    parts = DirichletDistribution([0.0, 0.0, 0.0], 1 / 3)
    assert_close(parts.log_prob([0.2, 0.3, 0.5]).exp(), torch.tensor(2.0))


def test_repr_shows_the_first_values():
    assert repr(NormalDistribution([0.5, 1, 2, 3], 2.0)) == (
        "NormalDistribution(mean=[0.5, 1, 2, ...], sd=[2, 2, 2, ...], shape (4,))"
    )
