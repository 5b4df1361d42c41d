"""Bounds against their limiting cases and against quadrature."""

import math

import pytest
import torch
from scipy import integrate, stats
from torch.distributions import Normal, kl_divergence
from torch.testing import assert_close

from ansatz.theory import (
    gaussian_kl,
    pac_bayes_gap,
    pac_bayes_risk,
    sauer_bound,
    vc_bound,
    vc_gap,
)


def test_the_gap_at_a_level_has_that_level_as_its_bound():
    for n, level in ((1_000, 0.1), (50_000, 0.01)):
        growth = sauer_bound(n, 3)
        assert vc_bound(n, vc_gap(n, level, growth), growth) == pytest.approx(level)


def test_a_probability_is_at_most_one_and_growth_may_be_astronomical():
    assert vc_bound(100, 0.1, 2**100) == 1.0
    assert vc_bound(10**7, 0.5, 2**2000) == 0.0 or vc_bound(10**7, 0.5, 2**2000) < 1e-300


def test_half_the_printed_constant():
    """0.078 with 1/(2n), where 2/n gives 0.156."""
    assert pac_bayes_gap(5.0, 1000, 0.05) == pytest.approx(0.156 / 2, abs=5e-4)


@pytest.mark.parametrize("risk", [0.0, 0.03, 0.4, 0.97, 1.0])
def test_the_risk_solves_the_binary_divergence_and_beats_pinsker(risk):
    found = pac_bayes_risk(risk, 4.0, 200, 0.05)
    assert risk <= found <= min(1.0, risk + pac_bayes_gap(4.0, 200, 0.05))
    if 0 < risk < 1:
        kl = stats.entropy([risk, 1 - risk], [found, 1 - found])
        assert kl == pytest.approx((4 + math.log(2 * math.sqrt(200) / 0.05)) / 200, rel=1e-6)


def test_gaussian_kl_is_torchs_and_that_of_quadrature():
    mean, sd = torch.randn(4), torch.rand(4) + 0.5
    prior_mean, prior_sd = torch.randn(4), torch.rand(4) + 0.5
    truth = kl_divergence(Normal(mean, sd), Normal(prior_mean, prior_sd)).sum()
    found = gaussian_kl(mean, sd, prior_mean, prior_sd)
    assert_close(found, truth)
    total = 0.0
    for m, s, m0, s0 in zip(*(v.tolist() for v in (mean, sd, prior_mean, prior_sd)), strict=True):
        q, p = stats.norm(m, s), stats.norm(m0, s0)
        total += integrate.quad(
            lambda x, q=q, p=p: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), m - 12 * s, m + 12 * s
        )[0]
    assert found.item() == pytest.approx(total, rel=1e-8)


def test_gaussian_kl_is_zero_at_the_prior_and_has_a_gradient():
    sd = torch.tensor([2.0], requires_grad=True)
    found = gaussian_kl(torch.zeros(1), sd, torch.zeros(1), torch.ones(1))
    found.backward()
    assert_close(sd.grad, torch.tensor([2.0 - 0.5]))  # s - 1/s
    assert gaussian_kl(torch.zeros(1), torch.ones(1), torch.zeros(1), torch.ones(1)).item() == 0


def test_impossible_arguments_are_named():
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1\.0"):
        pac_bayes_gap(1.0, 10, 1.0)
    with pytest.raises(ValueError, match="gap must be positive, got 0"):
        vc_bound(10, 0.0, 4)
    with pytest.raises(ValueError, match="growth must be at least 1, got 0"):
        vc_gap(10, 0.1, 0)
    with pytest.raises(ValueError, match="kl must be >= 0, got -1"):
        pac_bayes_gap(-1.0, 10, 0.1)
    with pytest.raises(ValueError, match=r"risk must be in \[0, 1\], got 2"):
        pac_bayes_risk(2.0, 1.0, 10, 0.1)
    with pytest.raises(ValueError, match="positive"):
        gaussian_kl(torch.zeros(1), torch.zeros(1), torch.zeros(1), torch.ones(1))
