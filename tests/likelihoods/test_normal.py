import mpmath
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import MSE, Normal, NormalDistribution
from ansatz.likelihoods.likelihood import unit_and_floor


def test_a_fixed_sd_has_the_gradient_of_squared_error():
    """M081: with sigma known, d loss / d mu = (mu - y) / sigma^2, half that of the MSE at 1."""
    raw, y = torch.randn(10, 1, requires_grad=True), torch.randn(10)
    (normal,) = torch.autograd.grad(Normal(dispersion=1.0).loss(raw, y).sum(), raw)
    (squared,) = torch.autograd.grad(MSE().loss(raw, y).sum(), raw)
    assert_close(normal, squared / 2)


def test_the_loss_is_torchs_gaussian_nll():
    likelihood, raw, y = Normal(), torch.randn(10, 2), torch.randn(10)
    torchs = torch.nn.GaussianNLLLoss(full=True, eps=1e-12, reduction="none")
    assert_close(likelihood.loss(raw, y), torchs(raw[:, 0], y, likelihood.dispersion(raw) ** 2))


def test_beta_nll_weights_rows_by_their_predicted_sd():
    likelihood, y = Normal(beta=1.0).double(), torch.randn(10)
    raw = torch.randn(10, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(likelihood.training_loss(raw, y).sum(), raw)
    assert_close(gradient[:, 0], (raw[:, 0] - y).detach())  # beta = 1: the mean sees plain MSE
    assert_close(Normal(beta=0.0).training_loss(raw, y), Normal(beta=0.0).loss(raw, y))


@pytest.mark.parametrize("z", [-37.0, -8.0, 0.5, 8.0, 37.0])
def test_both_tails_are_mpmaths(z):
    distribution = NormalDistribution(torch.zeros(1), torch.ones(1))
    with mpmath.workdps(50):
        lower, upper = (float(mpmath.log(mpmath.ncdf(s * mpmath.mpf(z)))) for s in (1, -1))
    assert distribution.log_cdf(torch.tensor([z])).item() == pytest.approx(lower, rel=1e-12)
    assert distribution.log_survival(torch.tensor([z])).item() == pytest.approx(upper, rel=1e-12)


def test_float32_has_a_survival_beyond_six_sd():
    distribution = NormalDistribution(torch.zeros(1), torch.ones(1))
    assert distribution.log_survival(torch.tensor([6.0])).item() == pytest.approx(
        -20.7368, abs=1e-3
    )


def test_rounded_outcomes_set_the_floor():
    y = torch.randn(1000).mul(3).round()
    _, floor = unit_and_floor(y, torch.ones(1000))
    assert floor.item() == pytest.approx(1 / 12**0.5)
    likelihood = Normal()
    likelihood.observe(y, torch.ones(1000))
    assert_close(likelihood.dispersion(torch.tensor([[0.0, -1e4]])), floor.reshape(1))


def test_a_weight_per_outcome_leaves_out_missing_ones():
    y, weight = torch.randn(20, 2), torch.ones(20, 2)
    y[3, 1], weight[3, 1] = torch.nan, 0
    likelihood = Normal()
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    keep = torch.arange(20) != 3
    one = Normal()
    one.observe(y[keep, 1], torch.ones(19))
    assert_close(shift[1], one.start(y[keep, 1], torch.ones(19))[0])


@pytest.mark.parametrize("dispersion", [0.0, -1.0, float("inf"), "learned", True])
def test_an_impossible_dispersion_is_refused(dispersion):
    with pytest.raises(ValueError, match="dispersion must be"):
        Normal(dispersion=dispersion)


def test_an_impossible_beta_is_refused():
    with pytest.raises(ValueError, match=r"beta of Normal must be in \[0, 1\], got 2"):
        Normal(beta=2)


@pytest.mark.parametrize("z", [-3.0, -6.0, -12.0, -37.0])
def test_the_cdf_keeps_its_digits_in_the_lower_tail(z):
    with mpmath.workdps(30):
        exact = float(mpmath.ncdf(mpmath.mpf(z)))
    distribution = NormalDistribution(torch.zeros(1), torch.ones(1))
    assert distribution.cdf(torch.tensor([z])).item() == pytest.approx(exact, rel=1e-13)
