import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.mixture import GaussianMixture
from torch.testing import assert_close

from ansatz.likelihoods import Normal, NormalMixture, NormalMixtureDistribution
from ansatz.likelihoods.normal_mixture import fit_mixture


def mixture(weights, means, sds):
    return NormalMixtureDistribution(
        torch.tensor(weights).log(), torch.tensor(means), torch.tensor(sds)
    )


def fitted(y, components, weight=None):
    likelihood, weight = (
        NormalMixture(components=components),
        torch.ones(len(y)) if weight is None else weight,
    )
    likelihood.observe(y, weight)
    return likelihood, *likelihood.start(y, weight)


def test_one_component_is_the_normal_likelihood():
    y, raw = torch.randn(30) * 4 + 1, torch.randn(30, 2)
    one, normal = NormalMixture(components=1), Normal()
    for likelihood in (one, normal):
        likelihood.observe(y, torch.ones(30))
    assert_close(one.loss(raw, y), normal.loss(raw, y))
    starts = [likelihood.start(y, torch.ones(30)) for likelihood in (one, normal)]
    assert_close(*starts, rtol=1e-9, atol=1e-9)
    ours, theirs = one.distribution(raw), normal.distribution(raw)
    assert_close(ours.icdf(torch.full((30,), 0.01)), theirs.icdf(torch.full((30,), 0.01)))
    assert_close(ours.mode, theirs.mode)
    assert not ours.is_multimodal.any()


def test_equal_components_are_one():
    raw = torch.tensor([[1.0, 1.0, 1.0, 0.3, 0.3, 0.3, 0.7, -2.0]])
    y = torch.tensor([2.0])
    assert_close(NormalMixture().loss(raw, y), Normal().loss(raw[:, [0, 3]], y))


def test_the_order_of_the_components_does_not_matter():
    likelihood, other = (
        mixture([0.2, 0.8], [0.0, 3.0], [1.0, 2.0]),
        mixture([0.8, 0.2], [3.0, 0.0], [2.0, 1.0]),
    )
    y = torch.linspace(-5, 9, 15)
    for method in ("log_prob", "cdf", "log_survival", "crps"):
        assert_close(getattr(likelihood, method)(y), getattr(other, method)(y))


def test_both_far_tails_have_logarithms():
    likelihood = mixture([0.3, 0.7], [-1.0, 2.0], [0.5, 1.5])
    with mpmath.workdps(50):
        exact = [
            float(
                mpmath.log(
                    sum(
                        mpmath.mpf(w)
                        * mpmath.erfc(sign * (mpmath.mpf(y) - m) / (s * mpmath.sqrt(2)))
                        / 2
                        for w, m, s in ((0.3, -1, 0.5), (0.7, 2, 1.5))
                    )
                )
            )
            for y, sign in ((-80.0, -1), (90.0, 1))
        ]
    assert likelihood.log_cdf(torch.tensor(-80.0)).item() == pytest.approx(exact[0], rel=1e-12)
    assert likelihood.log_survival(torch.tensor(90.0)).item() == pytest.approx(exact[1], rel=1e-12)


def test_quantiles_in_the_gap_between_far_components_are_found():
    likelihood = mixture([0.25, 0.75], [-1e4, 1e4], [1.0, 1e-3])
    q = torch.tensor([1e-300, 0.2, 0.25 - 1e-9, 0.25 + 1e-9, 0.5, 1 - 1e-12])
    y = likelihood.icdf(q)
    assert_close(likelihood.log_cdf(y).exp(), q, rtol=1e-7, atol=0)
    assert (y.diff() > 0).all()
    ends = likelihood.icdf(torch.tensor([0.0, 1.0]))
    assert ends.tolist() == [-math.inf, math.inf]
    assert likelihood.icdf(torch.tensor([-0.1, 1.1])).isnan().all()


def test_the_mode_is_the_highest_of_a_fine_grid():
    d = NormalMixtureDistribution(
        torch.randn(50, 4), 3 * torch.randn(50, 4), torch.rand(50, 4) + 0.1
    )
    x = torch.linspace(-15, 15, 30_001).unsqueeze(-1)
    density = d.log_prob(x)  # (G, 50)
    assert (d.log_prob(d.mode) >= density.max(0).values - 1e-9).all()
    inner = density[1:-1]
    peaks = ((inner > density[:-2]) & (inner >= density[2:])).sum(0)
    assert torch.equal(d.modes, peaks)


def test_two_equal_normals_split_at_two_standard_deviations():
    """0.5 N(-m, 1) + 0.5 N(m, 1) has two modes exactly when m > 1."""
    m = torch.tensor([0.5, 0.95, 1.05, 3.0])
    d = NormalMixtureDistribution(torch.zeros(4, 2), torch.stack([-m, m], -1), torch.ones(4, 2))
    assert d.modes.tolist() == [1, 1, 2, 2]
    assert d.is_multimodal.tolist() == [False, False, True, True]


@pytest.mark.parametrize("components", [2, 3])
def test_the_start_is_as_good_as_sklearns(components):
    y = np.concatenate(
        [stats.norm(-4, 1).rvs(60, random_state=0), stats.norm(5, 2).rvs(90, random_state=1)]
    )
    likelihood, shift, _ = fitted(torch.as_tensor(y), components)
    ours = -likelihood.loss(shift.expand(150, -1), torch.as_tensor(y)).mean().item()
    theirs = GaussianMixture(components, tol=1e-12, max_iter=20_000, random_state=0).fit(y[:, None])
    assert ours >= theirs.score(y[:, None]) - 1e-7


def test_start_means_differ_even_where_most_outcomes_are_equal():
    y = torch.cat([torch.zeros(95), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])])
    _, shift, _ = fitted(y, 3)
    assert shift.isfinite().all()
    assert shift[:3].unique().numel() == 3


def test_rounded_outcomes_do_not_reward_spikes():
    """A floor of resolution / sqrt(12): no component claims to know more than the rounding."""
    y = (torch.randn(500) * 2).round()
    likelihood, shift, _ = fitted(y, 3)
    d = likelihood.distribution(shift)
    assert (d.sds >= 1 / math.sqrt(12)).all()
    assert likelihood.loss(shift.expand(500, -1), y).mean() > 1.5


def test_many_rows_are_fitted_as_few_are():
    """Above some thousand rows the fit starts from order statistics, and ends on all rows."""
    y = torch.where(torch.rand(9000) < 0.3, torch.randn(9000) - 6, torch.randn(9000) * 2 + 3)
    likelihood, shift, _ = fitted(y, 2)
    leaf = shift.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(leaf.expand(9000, -1), y).mean(), leaf)
    assert gradient.abs().max() < 1e-9
    assert_close(shift[:2], torch.tensor([-6.0, 3.0]), atol=0.15, rtol=0)


def test_the_fit_of_a_shifted_and_scaled_sample_is_shifted_and_scaled():
    y = torch.cat([torch.randn(40) - 4, torch.randn(40) + 4])
    one, sd = torch.ones(80), y.std(correction=0)
    small = fit_mixture(y, one, 2, sd, 1e-3 * sd)
    large = fit_mixture(1e6 + 1e3 * y, one, 2, 1e3 * sd, sd)
    assert_close(large.means, 1e6 + 1e3 * small.means, rtol=1e-9, atol=0)
    assert_close(large.raw_sds, small.raw_sds, rtol=1e-6, atol=1e-6)


def test_components_that_are_no_count_are_refused():
    with pytest.raises(ValueError, match="components must be a whole number >= 1, got 0"):
        NormalMixture(components=0)


@pytest.mark.parametrize("y", [-40.0, -12.0, 14.0, 40.0])
def test_the_larger_tail_keeps_the_digits_of_the_smaller(y):
    """log(1 - p) = -p for a small p, where a sum of components would end at rounding."""
    likelihood = mixture([0.2, 0.3, 0.5], [-1.0, 0.5, 2.0], [0.5, 1.0, 1.5])
    low, high = likelihood.log_cdf(torch.tensor(y)), likelihood.log_survival(torch.tensor(y))
    larger, smaller = (high, low) if y < 0 else (low, high)
    assert larger.item() == pytest.approx(-math.exp(smaller.item()), rel=1e-12)
