import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import beta_binomial as beta_binomial_tail
from ansatz.likelihoods.beta_binomial import BetaBinomialDistribution, log_sum_below


def exact_tails(k, a, b, n):
    """Both tails as sums of probabilities, one count at a time."""
    with mpmath.workdps(40):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        mass = [
            mpmath.binomial(n, j) * mpmath.beta(j + a, n - j + b) / mpmath.beta(a, b)
            for j in range(n + 1)
        ]
        low, high = mpmath.fsum(mass[: k + 1]), mpmath.fsum(mass[k + 1 :])
        return float(mpmath.log(low)), float(mpmath.log(high))


@pytest.mark.parametrize("a, b", [(0.01, 5.0), (0.3, 0.2), (2.0, 3.0), (400.0, 100.0)])
@pytest.mark.parametrize("k", [0, 3, 20, 39])
def test_both_tails_are_the_sums(k, a, b):
    n, phi = 40, a + b
    distribution = BetaBinomialDistribution(
        torch.tensor([a / phi]).logit(), torch.tensor([1 / phi]), torch.tensor([float(n)])
    )
    at, (low, high) = torch.tensor([float(k)]), exact_tails(k, a, b, n)
    assert distribution.log_cdf(at).item() == pytest.approx(low, rel=1e-12)
    assert distribution.log_survival(at).item() == pytest.approx(high, rel=1e-12)


def test_twice_differentiable_in_both_shapes():
    y, n = torch.tensor([0.0, 1.0, 4.0, 7.0]), torch.full((4,), 8.0)
    a, b = (torch.rand(4, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: log_sum_below(y, a, b, n), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: log_sum_below(y, a, b, n), (a, b))


def test_rows_are_summed_in_any_blocks(monkeypatch):
    n = torch.randint(1, 60, (3, 50)).double()
    y = (n * torch.rand(3, 50)).floor()
    a, b = torch.rand(3, 50) + 0.1, torch.rand(3, 50) + 0.1
    whole = log_sum_below(y, a, b, n)
    monkeypatch.setattr(beta_binomial_tail, "_BLOCK", 64)
    assert_close(log_sum_below(y, a, b, n), whole, rtol=1e-14, atol=0)


def test_a_tail_that_underflows_has_a_logarithm():
    """With a huge precision the likelihood is binomial: log P(Y <= 0) = n log(1 - p)."""
    distribution = BetaBinomialDistribution(
        torch.zeros(1), torch.tensor([1e-12]), torch.tensor([1e4])
    )
    assert distribution.log_cdf(torch.zeros(1)).item() == pytest.approx(-6931.4718, rel=1e-6)
    assert distribution.log_survival(torch.tensor([9999.0])).item() == pytest.approx(
        -6931.4718, rel=1e-6
    )
