import mpmath
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Poisson, PoissonDistribution


def test_the_gradient_is_that_of_torchs_poisson_loss():
    raw, y = torch.randn(20, 1, requires_grad=True), torch.poisson(torch.full((20,), 3.0))
    torchs = torch.nn.PoissonNLLLoss(log_input=True, reduction="none")
    (theirs,) = torch.autograd.grad(torchs(raw[:, 0], y).sum(), raw)
    for loss in (Poisson().loss, Poisson().training_loss):
        (ours,) = torch.autograd.grad(loss(raw, y).sum(), raw)
        assert_close(ours, theirs)


def test_mean_equals_variance():
    """M092."""
    distribution = Poisson().distribution(torch.randn(5, 1))
    assert_close(distribution.mean, distribution.variance)


@pytest.mark.parametrize("count", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("sd", [-3.0, 0.0, 3.0])
def test_large_counts_keep_their_digits(count, sd):
    rate = count + sd * count**0.5
    with mpmath.workdps(50):
        r, y = mpmath.mpf(rate), mpmath.mpf(count)
        exact = float(y * mpmath.log(r) - r - mpmath.loggamma(y + 1))
    for dtype, error in ((torch.float64, 1e-9), (torch.float32, 0.3)):
        raw = torch.tensor([[rate]]).log().to(dtype)
        loss = Poisson().loss(raw, torch.tensor([count], dtype=dtype))
        # the log rate itself is only known to eps log(rate), a shift of count * that * z sd
        assert loss.item() == pytest.approx(-exact, abs=error)


def test_large_counts_have_tails_and_quantiles():
    likelihood, frozen = PoissonDistribution(torch.tensor([1e9]).log()), stats.poisson(1e9)
    y = torch.tensor([1e9 + 1e5])
    assert_close(
        likelihood.log_survival(y), torch.as_tensor(frozen.logsf(y.numpy())), rtol=1e-5, atol=0
    )
    q = torch.tensor([0.975])
    assert (likelihood.icdf(q) - 1e9).item() == pytest.approx(1.959964 * 1e9**0.5, rel=1e-3)
    assert likelihood.icdf(torch.tensor([0.0])).item() == 0
    assert likelihood.icdf(torch.tensor([1.0])).isinf()


@pytest.mark.parametrize(
    "rate, y", [(3.0, 0.0), (3.0, 200.0), (500.0, 5.0), (2000.0, 100.0), (1e-3, 50.0)]
)
def test_both_far_tails_are_mpmaths(rate, y):
    distribution = PoissonDistribution(torch.tensor([rate]).log())
    with mpmath.workdps(60):
        lower = mpmath.gammainc(mpmath.mpf(y) + 1, rate, mpmath.inf, regularized=True)
        upper = mpmath.gammainc(mpmath.mpf(y) + 1, 0, rate, regularized=True)
        lower, upper = float(mpmath.log(lower)), float(mpmath.log(upper))
    at = torch.tensor([y])
    assert distribution.log_cdf(at).item() == pytest.approx(lower, rel=1e-10)
    assert distribution.log_survival(at).item() == pytest.approx(upper, rel=1e-10)


def test_what_is_no_count_has_no_probability():
    distribution = PoissonDistribution(torch.zeros(3))
    assert_close(
        distribution.log_prob(torch.tensor([-1.0, 0.5, torch.inf])), torch.full((3,), -torch.inf)
    )
    assert_close(
        distribution.cdf(torch.tensor([-1.0, 0.5, torch.inf]))[:2], torch.tensor([0, 1 / torch.e])
    )


def test_enormous_rates_are_sampled():
    distribution = PoissonDistribution(torch.tensor([30.0, 50.0]))
    draws = distribution.sample((1000,), torch.Generator().manual_seed(0))
    z = (draws - distribution.mean) / distribution.stddev
    assert (z.mean(0).abs() < 5 / 1000**0.5).all()


def test_all_zeros_start_at_half_a_count():
    shift, _ = Poisson().start(torch.zeros(9), torch.ones(9))
    assert shift.exp().item() == pytest.approx(0.05)


def test_a_mean_below_a_thousandth_is_exact():
    weight = torch.tensor([1e6, 1.0])
    shift, _ = Poisson().start(torch.tensor([0.0, 1.0]), weight)
    assert shift.exp().item() == pytest.approx(1 / (1e6 + 1))
