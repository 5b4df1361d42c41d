import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.beta import beta_quantile
from ansatz.likelihoods.special.beta import log_betainc, log_betaincc

SHAPES = [(1.045, 0.263), (2.3, 3.07), (5.8, 35.7), (7.7, 0.17), (400.0, 20.0)]


@pytest.mark.parametrize("a, b", SHAPES)
def test_quantiles_far_down_have_their_level(a, b):
    """SciPy's betaincinv is nan for some of these."""
    q = 10.0 ** -torch.arange(1.0, 290.0, 9.0)
    a, b = torch.full_like(q, a), torch.full_like(q, b)
    x = beta_quantile(a, b, q)
    held = x > 1e-300  # below, no double has its digits
    assert held.sum() > 5
    assert_close(log_betainc(a, b, x)[held], q.log()[held], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("a, b", SHAPES)
def test_quantiles_of_the_upper_half_have_the_complement(a, b):
    rest = 2.0 ** -torch.arange(2.0, 40.0)
    a, b = torch.full_like(rest, a), torch.full_like(rest, b)
    x = beta_quantile(a, b, 1 - rest)
    held = x < 1 - 1e-8
    slack = 1e-15 / (1 - x)  # of x's own rounding
    gap = (log_betaincc(a, b, x) - rest.log()).abs()
    assert (gap[held] < 1e-12 + 100 * slack[held]).all()


def test_levels_outside_have_no_quantile():
    one = torch.ones(4)
    x = beta_quantile(2 * one, 3 * one, torch.tensor([-0.1, 0.0, 1.0, 1.1]))
    assert_close(x, torch.tensor([torch.nan, 0.0, 1.0, torch.nan]), equal_nan=True)
