import copy
import csv
import os
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from scipy import optimize, stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import Beta, Dirichlet, DirichletDistribution
from ansatz.spec import TargetSpec

K = 4
OPTIONS = {
    "plain": {},
    "reference": {"reference": True},
    "constant": {"dispersion": "constant"},
    "known": {"dispersion": 0.2, "reference": True},
    "normalize": {"normalize": True},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def make(options):
    likelihood = Dirichlet(**options)
    return likelihood, likelihood.outputs(TargetSpec(event=(K,)))


def sample(n, a=(1.0, 2.0, 5.0, 0.7)):
    return torch.as_tensor(stats.dirichlet(a).rvs(n, random_state=0)).clamp(min=1e-12)


@every_option
def test_loss_is_minus_scipys_log_density(options):
    likelihood, P = make(options)
    raw = torch.randn(8, P)
    d = likelihood.distribution(raw)
    y = d.sample((), torch.Generator().manual_seed(0))
    y = y / y.sum(-1, keepdim=True)
    for i in range(8):
        theirs = stats.dirichlet(d.shapes[i].detach())
        assert likelihood.loss(raw, y)[i].item() == pytest.approx(
            -theirs.logpdf(y[i]), rel=1e-9, abs=1e-9
        )
        assert d.entropy[i].item() == pytest.approx(theirs.entropy())
        assert_close(d.mean[i].detach(), torch.as_tensor(theirs.mean()))
        assert_close(d.variance[i].detach(), torch.as_tensor(theirs.var()))


@pytest.mark.parametrize("dispersion", [1e-10, 1e-5, 1.0, 1e4])
def test_any_dispersion_keeps_its_digits(dispersion):
    mean = torch.tensor([0.2, 0.3, 0.5])
    y = mean + min(1.0, dispersion**0.5) * torch.tensor([0.05, -0.1, 0.05])
    with mpmath.workdps(60):
        phi = 1 / mpmath.mpf(dispersion)
        mu, parts = ([mpmath.mpf(v) for v in t.tolist()] for t in (mean, y))
        exact = mpmath.loggamma(phi * sum(mu)) + sum(
            (phi * m - 1) * mpmath.log(v) - mpmath.loggamma(phi * m)
            for m, v in zip(mu, parts, strict=True)
        )
    distribution = DirichletDistribution(mean.log(), torch.tensor(dispersion))
    # the parts add up to 1 within rounding only, which phi magnifies
    tolerance = 1e-9 + 1e-15 / dispersion
    assert distribution.log_prob(y).item() == pytest.approx(float(exact), rel=1e-9, abs=tolerance)


def test_two_parts_are_the_beta_likelihood():
    raw, y = torch.randn(20, 2), torch.rand(20)
    likelihood = Dirichlet(reference=True)
    pair = torch.stack([1 - y, y], -1)
    assert_close(likelihood.loss(raw, pair), Beta().loss(raw, y))
    assert_close(
        likelihood.distribution(raw).marginal.cdf(pair)[:, 1], Beta().distribution(raw).cdf(y)
    )


def test_marginals_are_beta():
    d = DirichletDistribution(torch.randn(K), torch.tensor(0.3))
    a = d.shapes
    y = torch.rand(K)
    exact = stats.beta(a.numpy(), (a.sum() - a).numpy()).cdf(y.numpy())
    assert_close(d.marginal.cdf(y), torch.as_tensor(exact))
    lower, upper = d.interval(0.8)
    assert_close(d.marginal.cdf(upper) - d.marginal.cdf(lower), torch.full((K,), 0.8))


def test_samples_have_the_mean_and_the_variance_and_tiny_shapes_stay_inside():
    d = DirichletDistribution(torch.randn(K), torch.tensor(0.5))
    y = d.sample((40_000,), torch.Generator().manual_seed(0))
    assert_close(y.sum(-1), torch.ones(40_000))
    assert ((y.mean(0) - d.mean).abs() < 5 * (d.variance / 40_000).sqrt()).all()
    square = (y - d.mean) ** 2
    assert ((square.mean(0) - d.variance).abs() < 5 * square.std(0) / 40_000**0.5).all()
    wild = DirichletDistribution(torch.tensor([0.0, 60.0, -60.0]), torch.tensor(1e3)).sample((99,))
    assert (wild > 0).all() and wild.isfinite().all()


def test_the_mode_has_the_largest_density():
    d = DirichletDistribution(torch.tensor([0.0, 1.0, 0.5]), torch.tensor(0.05))
    beside = d.mode + 1e-4 * torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [-1.0, 0.0, 1.0]])
    assert (d.log_prob(d.mode) > d.log_prob(beside)).all()
    flat = DirichletDistribution(torch.tensor([0.0, 1.0, 0.5]), torch.tensor(5.0))
    assert flat.mode.tolist() == [0.0, 1.0, 0.0]


@every_option
def test_start_is_the_maximum_likelihood_constant(options):
    y, weight = sample(60), torch.randint(1, 4, (60,)).double()
    likelihood, P = make(options)
    likelihood.observe(y, weight)
    shift, scale = likelihood.start(y, weight)
    assert shift.shape == scale.shape == (P,) and (scale > 0).all()
    leaf = shift.clone().requires_grad_()
    risk = (weight * likelihood.loss(leaf.expand(60, -1), y)).sum() / weight.sum()
    for gradient in torch.autograd.grad(risk, [leaf, *likelihood.parameters()]):
        assert gradient.abs().max() < 1e-9


def test_the_start_is_a_maximum_found_by_other_means():
    y = sample(80).numpy()

    def risk(log_a):
        return -stats.dirichlet(np.exp(log_a)).logpdf(y.T).mean()

    best = optimize.minimize(risk, [0.0] * K, method="BFGS", options={"gtol": 1e-8})
    likelihood, _ = make({})
    likelihood.observe(torch.as_tensor(y), torch.ones(80))
    shift, _ = likelihood.start(torch.as_tensor(y), torch.ones(80))
    found = likelihood.distribution(shift).shapes
    assert_close(found, torch.as_tensor(best.x).exp(), rtol=1e-5, atol=0)


@every_option
def test_weights_are_repetitions(options):
    y, weight = sample(30), torch.randint(0, 4, (30,)).double()
    likelihood, _ = make(options)
    likelihood.observe(y, weight)
    start = likelihood.start(y, weight)
    again = y.repeat_interleave(weight.long(), 0)
    other, _ = make(options)
    other.observe(again, torch.ones(len(again)))
    assert_close(start, other.start(again, torch.ones(len(again))), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rows", [1, 2, 20])
def test_equal_rows_do_not_break_it(rows):
    y = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(rows, K)
    likelihood, _ = make({})
    likelihood.observe(y, torch.ones(rows))
    shift, scale = likelihood.start(y, torch.ones(rows))
    raw = shift.expand(rows, -1).clone().requires_grad_()
    terms = likelihood.loss(raw, y)
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert terms.isfinite().all() and gradient.isfinite().all() and (scale > 0).all()
    assert_close(likelihood.point(raw)[0].detach(), y[0], atol=1e-6, rtol=1e-6)


@every_option
def test_score_has_mean_zero(options):
    likelihood, P = make(options)
    raw = torch.randn(1, P).repeat(20_000, 1).requires_grad_()
    y = likelihood.distribution(raw.detach()).sample((), torch.Generator().manual_seed(0))
    (score,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5 + 1e-12).all()


def test_gradient_of_the_loss():
    likelihood, P = make({})
    raw, y = torch.randn(5, P).requires_grad_(), sample(5)
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)


@every_option
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_and_outcomes_give_finite_losses_and_gradients(options, dtype):
    likelihood, P = make(options)
    likelihood = likelihood.to(dtype)
    sizes = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4])
    raw = torch.cat([sizes[:, None].expand(-1, P), 1e4 * torch.eye(P), -50 * torch.eye(P)])
    edge = torch.tensor([1e-38, 1e-30, 0.5, 0.5])
    for y in (edge, torch.full((K,), 0.25)):
        leaf = raw.to(dtype).requires_grad_()
        terms = likelihood.loss(leaf, y.to(dtype).expand(len(raw), K))
        gradients = torch.autograd.grad(terms.sum(), [leaf, *likelihood.parameters()])
        assert terms.isfinite().all() and terms.dtype == dtype
        assert all(g.isfinite().all() for g in gradients)


def test_float32_agrees_with_float64():
    likelihood, P = make({})
    raw, y = torch.randn(30, P).float(), sample(30).float()
    y = y / y.sum(-1, keepdim=True)
    single = copy.deepcopy(likelihood).float().loss(raw, y)
    assert_close(single.double(), likelihood.loss(raw.double(), y.double()), rtol=1e-4, atol=1e-4)


def test_arctic_lake_needs_and_takes_normalisation():
    folder = Path(os.environ.get("ANSATZ_DATA", "/nowhere")) / "proportions"
    if not folder.exists():
        pytest.skip("ANSATZ_DATA does not hold proportions")
    with open(folder / "arctic_lake.csv") as file:
        rows = [
            [float(row[part]) for part in ("sand", "silt", "clay")] for row in csv.DictReader(file)
        ]
    y = torch.tensor(rows)
    with pytest.raises(DataError, match=r"add up to 1, got a sum of .* normalize=True"):
        Dirichlet().check(y)
    likelihood = Dirichlet(normalize=True)
    likelihood.check(y)
    likelihood.observe(y, torch.ones(39))
    shift, _ = likelihood.start(y, torch.ones(39))
    raw = shift.expand(39, -1)
    whole = y / y.sum(-1, keepdim=True)
    exact = stats.dirichlet(likelihood.distribution(shift).shapes).logpdf(whole.T.numpy()).sum()
    assert -likelihood.loss(raw, y).sum().item() == pytest.approx(exact)
    assert_close(likelihood.given(raw, y)[1], whole)


def test_check_says_what_is_wrong():
    with pytest.raises(DataError, match=r"must be > 0, got 0.0 at y\[1, 0\].*half the smallest"):
        Dirichlet().check(torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
    with pytest.raises(DataError, match=r"a sum of 0.9 at y\[1\]"):
        Dirichlet(normalize=True).check(torch.tensor([[0.5, 0.5], [0.4, 0.5]]))
    with pytest.raises(ValueError, match=r"K >= 2, got \(3,\)"):
        Dirichlet().check(torch.ones(3))
    with pytest.raises(ValueError, match=r"event=\(K,\)"):
        Dirichlet().outputs(TargetSpec())
    with pytest.raises(ValueError, match=r"goes with y \(5, 4\), got y \(5, 3\)"):
        Dirichlet().loss(torch.zeros(5, 5), torch.full((5, 3), 1 / 3))
