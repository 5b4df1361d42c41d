import copy
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, stats
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import (
    Censored,
    Gamma,
    Normal,
    Poisson,
    create,
    interval_censored,
    names,
    right_censored,
)
from ansatz.spec import TargetSpec

INF = math.inf


OTHERS = {  # losses, classes, angles, outcomes of several numbers, of sequences, wrappers
    *("charbonnier", "cauchy", "geman_mcclure", "welsch"),
    *("mse", "mae", "huber", "tukey", "cross_entropy", "focal", "kl", "dice", "sum", "quantiles"),
    *("categorical", "ordinal", "von_mises", "binomial", "beta_binomial", "dirichlet"),
    *("multivariate_normal", "plackett_luce", "cox", "discrete_hazard", "censored", "truncated"),
    *("autoregressive", "span", "energy_forces"),
}
LIKELIHOODS = sorted(
    set(names()) - OTHERS
)  # a new likelihood of single numbers is tested here by itself
every_likelihood = pytest.mark.parametrize("name", LIKELIHOODS)


def draw(likelihood, raw, seed):
    return likelihood.distribution(raw).sample((), torch.Generator().manual_seed(seed))


def censored_sample(likelihood, raw):
    """Observed, right-, left- and interval-censored rows, half of them with an entry."""
    n = len(raw)
    y, a, b, entry = (draw(likelihood, raw, seed) for seed in range(4))
    a, b = torch.minimum(a, b), torch.maximum(a, b)
    late = torch.arange(n) % 2 == 0
    entry = torch.where(late, entry, -INF)
    kind = torch.arange(n) // 2 % 4
    infinite = torch.full_like(y, INF)
    low = torch.stack(
        [
            y,
            torch.minimum(y, a),
            torch.where(y <= a, -infinite, y),
            torch.where(y <= a, -infinite, torch.where(y <= b, a, b)),
        ]
    )
    high = torch.stack(
        [
            y,
            torch.where(y <= a, y, infinite),
            torch.where(y <= a, a, y),
            torch.where(y <= a, a, torch.where(y <= b, b, infinite)),
        ]
    )
    low, high = (v.gather(0, kind.unsqueeze(0))[0] for v in (low, high))
    seen = y > entry  # the others were never recorded
    # an outcome below the entry that is only known to lie below a would be no censoring
    low = torch.where(low < entry, torch.where(low == high, low, entry), low)
    seen = seen & ~((low == high) & (entry >= low)) & ~(entry >= high)
    return torch.stack([low, high, entry], -1)[seen], raw[seen]


@every_likelihood
def test_score_has_mean_zero_on_censored_samples(name):
    """E[d loss / d raw] = 0 for every kind of censoring together, given Y > entry."""
    likelihood = create(name)
    P = likelihood.outputs(TargetSpec())
    raw = (0.5 * torch.randn(1, P)).expand(4000, P).contiguous()
    y, raw = censored_sample(likelihood, raw)
    raw.requires_grad_()
    outer = Censored(likelihood)
    outer.check(y)
    (score,) = torch.autograd.grad(outer.loss(raw, y).sum(), raw)
    assert score.isfinite().all()
    assert len(y) > 1500
    # the standard error of a score that is exactly 0 is rounding
    bound = 5 * score.std(0) / len(score) ** 0.5 + 1e-12
    assert (score.mean(0).abs() < bound).all()


SCIPY = {
    "normal": (lambda: Normal(dispersion=2.0), lambda m: stats.norm(m, 2.0)),
    "gamma": (lambda: Gamma(dispersion=0.5), lambda m: stats.gamma(2.0, scale=np.exp(m) / 2)),
    "poisson": (lambda: Poisson(), lambda m: stats.poisson(np.exp(m))),
}


@pytest.mark.parametrize("name", SCIPY)
def test_each_branch_is_scipys(name):
    likelihood, frozen = (make() if i == 0 else make for i, make in enumerate(SCIPY[name]))
    m = 1.3
    exact = frozen(m)
    density = exact.logpmf if name == "poisson" else exact.logpdf
    rows = {
        (3.0, 3.0, -INF): -density(3.0),
        (3.0, INF, -INF): -exact.logsf(3.0),
        (-INF, 3.0, -INF): -exact.logcdf(3.0),
        (2.0, 5.0, -INF): -np.log(exact.cdf(5.0) - exact.cdf(2.0)),
        (-INF, INF, -INF): 0.0,
        (3.0, 3.0, 1.0): -density(3.0) + exact.logsf(1.0),
        (3.0, INF, 1.0): -exact.logsf(3.0) + exact.logsf(1.0),
        (-INF, 3.0, 1.0): -np.log(exact.cdf(3.0) - exact.cdf(1.0)) + exact.logsf(1.0),
        (2.0, 5.0, 1.0): -np.log(exact.cdf(5.0) - exact.cdf(2.0)) + exact.logsf(1.0),
        (-5.0, 4.0, -3.0): -np.log(exact.cdf(4.0) - exact.cdf(-3.0)) + exact.logsf(-3.0),
    }
    y, expected = torch.tensor(list(rows)), torch.tensor([float(v) for v in rows.values()])
    outer = Censored(likelihood)
    outer.check(y)
    assert_close(outer.loss(torch.full((len(y), 1), m), y), expected)
    for i in range(len(y)):  # branches that nobody needs are left out
        assert_close(outer.loss(torch.full((1, 1), m), y[i : i + 1]), expected[i : i + 1])


def test_an_end_at_the_edge_of_the_support_says_nothing_unless_it_has_mass():
    gamma, zero = Censored("gamma"), torch.zeros(1, 2, requires_grad=True)
    at_edge, below = (gamma.loss(zero, torch.tensor([[e, 2.0, e]])) for e in (0.0, -INF))
    assert_close(at_edge, below)
    (gradient,) = torch.autograd.grad(at_edge.sum(), zero)
    assert gradient.isfinite().all()
    poisson = Censored("poisson").loss(torch.zeros(1, 1), torch.tensor([[0.0, 2.0, -INF]]))
    assert_close(poisson, -torch.tensor([stats.poisson(1).pmf([1, 2]).sum()]).log())


def test_exponential_constant_is_events_over_time_at_risk():
    time, event = torch.rand(50) * 9 + 1, (torch.rand(50) < 0.4).double()
    entry = torch.where(torch.rand(50) < 0.5, time * torch.rand(50), -INF)
    weight = torch.randint(0, 4, (50,)).double()
    likelihood, y = Censored("exponential"), right_censored(time, event, entry)
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    at_risk = (weight * (time - entry.clamp(min=0))).sum()
    rate = (weight * event).sum() / at_risk
    assert shift.exp().item() == pytest.approx(1 / rate.item(), rel=1e-9)


def test_tobit_constant_is_scipys_optimum():
    latent = stats.norm(1.0, 2.0).rvs(200, random_state=1)
    y = torch.tensor(np.maximum(latent, 0.0))
    y = interval_censored(torch.where(y > 0, y, -INF), y)

    def minus_log(theta):
        likelihood = stats.norm(theta[0], np.exp(theta[1]))
        return -np.where(latent > 0, likelihood.logpdf(latent), likelihood.logcdf(0)).sum()

    exact = optimize.minimize(minus_log, [0.0, 0.0], method="BFGS", options={"gtol": 1e-7}).x
    likelihood = Censored("normal")
    likelihood.observe(y, torch.ones(200))
    shift, _ = likelihood.start(y, torch.ones(200))
    found = likelihood.distribution(shift)
    assert found.mean.item() == pytest.approx(exact[0], abs=1e-6)
    assert found.sd.log().item() == pytest.approx(exact[1], abs=1e-6)


def fitted(name, y, weight):
    likelihood = Censored(name)
    likelihood.check(y)
    likelihood.observe(y, weight)
    return likelihood, *likelihood.start(y, weight)


def example(name, n):
    likelihood = create(name)
    return censored_sample(likelihood, torch.zeros(n, likelihood.outputs(TargetSpec())))[0]


COSTLY = {"barron", "student_t", "tweedie", "normal_mixture", "beta", "zero_one_inflated_beta"}
COSTLY |= {"zero_inflated_negative_binomial"}  # whose tails are sums and quadratures
costly_slow = [pytest.param(n, marks=[pytest.mark.slow] * (n in COSTLY)) for n in LIKELIHOODS]


@pytest.mark.parametrize("name", costly_slow)
def test_start_is_the_maximum_likelihood_constant(name):
    y = example(name, 400 if name == "normal_mixture" else 64)  # few rows leave mixtures at a floor
    weight = torch.randint(1, 4, (len(y),)).double()
    likelihood, shift, scale = fitted(name, y, weight)
    assert (scale > 0).all()
    shift.requires_grad_()
    loss = (weight * likelihood.loss(shift.expand(len(y), -1), y)).sum() / weight.sum()
    gradients = torch.autograd.grad(loss, [shift, *likelihood.parameters()])
    if name == "laplace":  # a kink at an observed value
        steps = 1e-5 * torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        for step in steps:
            terms = likelihood.loss((shift + step).expand(len(y), -1), y)
            assert (weight * terms).sum() / weight.sum() >= loss - 1e-12
    else:
        for gradient in (gradients[0] * scale, *gradients[1:]):
            assert gradient.abs().max() < 1e-6


@pytest.mark.parametrize("name", ["normal", "weibull", "gamma", "poisson"])
def test_weights_are_repetitions(name):
    y = example(name, 200)
    weight = torch.randint(0, 3, (len(y),))
    weighted = fitted(name, y, weight.double())
    again = y.repeat_interleave(weight, 0)
    repeated = fitted(name, again, torch.ones(len(again)))
    assert_close(weighted[1:], repeated[1:], rtol=1e-6, atol=1e-7)


@every_likelihood
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(name, dtype):
    likelihood = Censored(name).to(dtype)
    P = likelihood.outputs(TargetSpec())
    grid = torch.cartesian_prod(*[torch.tensor([0.0, 50.0, -50.0])] * min(P, 2)).reshape(
        -1, min(P, 2)
    )
    raw = torch.cat([grid, torch.zeros(len(grid), P - grid.shape[1])], 1).to(dtype)
    unit = likelihood.distribution(raw).upper == 1  # proportions, or a single bit
    a, b = (0.25, 0.75) if unit else (2.0, 5.0)
    a, b = (0.0, 1.0) if name == "bernoulli" else (a, b)
    seen = 1.0 if likelihood.distribution(raw).discrete else b
    rows = [(seen, seen, -INF), (a, INF, -INF), (-INF, b, -INF), (a, b, -INF)]
    for row in rows if name == "bernoulli" else [*rows, (b, INF, a)]:
        leaf = raw.clone().requires_grad_()
        y = torch.tensor(row, dtype=dtype).expand(len(raw), 3)
        terms = likelihood.loss(leaf, y)
        gradients = torch.autograd.grad(terms.sum(), [leaf, *likelihood.parameters()])
        assert terms.dtype == dtype
        assert terms.isfinite().all(), (row, raw[~terms.isfinite()])
        assert all(g.isfinite().all() for g in gradients), row


def test_an_unobserved_row_may_be_nan():
    y = example("weibull", 80)
    weight = torch.ones(len(y))
    weight[3] = 0
    _, *start = fitted("weibull", y, weight)
    y[3] = torch.nan
    likelihood = Censored("weibull")
    likelihood.observe(y, weight)
    assert_close(list(likelihood.start(y, weight)), start)


@pytest.mark.parametrize("name", ["normal", "weibull", "gamma", "poisson"])
def test_gradient(name):
    likelihood = create(name)
    y, raw = censored_sample(likelihood, torch.randn(12, likelihood.outputs(TargetSpec())))
    raw.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda raw: Censored(likelihood).loss(raw, y), raw, eps=1e-5, atol=1e-6
    )


def test_runs_under_vmap_and_on_the_meta_device():
    likelihood = Censored("weibull")
    y = example("weibull", 40)
    raw = torch.randn(3, len(y), 2)
    both = torch.func.vmap(likelihood.loss, in_dims=(0, None))(raw, y)
    assert_close(both[1], likelihood.loss(raw[1], y))
    copies = torch.func.vmap(likelihood.loss)(raw, y.expand(3, *y.shape))
    assert_close(copies, both)
    meta = copy.deepcopy(likelihood).to("meta")
    assert meta.loss(raw[0].to("meta"), y.to("meta")).shape == (len(y),)


def test_several_targets_are_several_likelihoods():
    y = torch.stack([example("weibull", 100)[:40], example("weibull", 200)[50:90]], 1)  # (B, 2, 3)
    weight = torch.ones(40)
    likelihood, shift, _ = fitted("weibull", y, weight)
    assert shift.shape == (2, 2)
    for k in range(2):
        one, one_shift, _ = fitted("weibull", y[:, k], weight)
        assert_close(shift[k], one_shift, rtol=1e-6, atol=1e-7)
        assert_close(
            likelihood.loss(shift.expand(40, 2, 2), y)[:, k],
            one.loss(one_shift.expand(40, 2), y[:, k]),
        )


def test_name_and_options_remake_it():
    for likelihood in (Censored("gamma", options={"dispersion": "constant"}), Censored(Normal())):
        y = example(likelihood.likelihood.name, 60)
        weight = torch.ones(len(y))
        likelihood.observe(y, weight)
        shift, _ = likelihood.start(y, weight)
        again = create(likelihood.name, **likelihood.options).double()
        again.load_state_dict(likelihood.state_dict())
        raw = shift.expand(len(y), -1)
        assert torch.equal(again.loss(raw, y), likelihood.loss(raw, y))
        assert again.link_name == likelihood.likelihood.link_name
        assert again.outputs(TargetSpec(event=(3,))) == shift.shape[-1]


def test_given_knows_the_entry_and_exact_outcomes():
    likelihood = Censored("normal", options={"dispersion": 1.0})
    y = torch.tensor([[1.0, 1.0, 0.0], [2.0, INF, -INF]])
    distribution, value = likelihood.given(torch.zeros(2, 1), y)
    assert_close(value, torch.tensor([1.0, torch.nan]), equal_nan=True)
    exact = [stats.truncnorm(0, np.inf).cdf(1.0), stats.norm.cdf(1.0)]
    assert_close(distribution.cdf(torch.ones(2)), torch.tensor(exact))
    plain, _ = likelihood.given(torch.zeros(1, 1), y[1:])
    assert_close(plain.cdf(torch.ones(1)), torch.tensor(exact[1:]))


def test_interval_censored_diabetes_is_fitted():
    folder = os.environ.get("ANSATZ_DATA")
    if folder is None:
        pytest.skip("ANSATZ_DATA is not set")
    table = pd.read_csv(Path(folder) / "survival" / "interval_diabetes.csv")
    left, right = (table[c].to_numpy().astype(float) for c in ("left", "right"))
    y = interval_censored(left, right)
    likelihood, shift, _ = fitted("weibull", y, torch.ones(len(y)))
    left = np.nan_to_num(left, nan=0.0)
    right = np.nan_to_num(right, nan=np.inf)

    def minus_log(theta):
        found = stats.weibull_min(np.exp(theta[0]), scale=np.exp(theta[1]))
        exact = left == right
        mass = found.sf(left) - found.sf(right)
        return -np.where(exact, found.logpdf(left), np.log(np.where(exact, 1, mass))).sum()

    best = optimize.minimize(minus_log, [0.0, 3.0], method="Nelder-Mead", options={"fatol": 1e-9})
    total = likelihood.loss(shift.expand(len(y), -1), y).sum().item()
    assert total == pytest.approx(best.fun, rel=1e-8)


def test_constructors_and_checks_name_the_row():
    with pytest.raises(DataError, match=r"event must be 1, or 0 for censored, got 2 at y\[1\]"):
        right_censored(torch.ones(2), torch.tensor([1, 2]))
    with pytest.raises(DataError, match=r"lower must be <= upper, got 3.0 at y\[1\].*is 2.0"):
        interval_censored([1.0, 3.0], [1.0, 2.0])
    with pytest.raises(DataError, match=r"entry must lie before the outcome, got 3.0 at y\[0\]"):
        right_censored(torch.tensor([3.0]), torch.tensor([1]), torch.tensor([3.0]))
    with pytest.raises(ValueError, match="one entry per row"):
        interval_censored([1.0], [1.0, 2.0])
    likelihood = Censored("gamma")
    with pytest.raises(DataError, match=r"shape \(B, 3\), got \(4,\).*right_censored"):
        likelihood.check(torch.ones(4))
    with pytest.raises(DataError, match=r"> 0, got -1.0 at y\[2\]"):
        likelihood.check(interval_censored([1.0, 2.0, -1.0], [INF, 2.0, -1.0]))
    with pytest.raises(DataError, match=r"lie in \(0.0, inf\).*got -1.0 at y\[1\]"):
        likelihood.check(interval_censored([1.0, -INF], [1.0, -1.0]))
    with pytest.raises(DataError, match=r"whole numbers >= 0, got 1.5 at y\[1\]"):
        Censored("poisson").check(interval_censored([0.5, 1.5], [2.5, 1.5]))
    with pytest.raises(DataError, match="every row is right-censored"):
        likelihood.observe(right_censored(torch.ones(3), torch.zeros(3)), torch.ones(3))


def test_likelihoods_without_an_order_and_losses_are_refused():
    for name in ("mse", "categorical", "cox"):
        with pytest.raises(UsageError, match=f"single numbers, got '{name}'"):
            Censored(name)
    with pytest.raises(UsageError, match="belong to a likelihood given by name"):
        Censored(Normal(), options={"dispersion": 1.0})
