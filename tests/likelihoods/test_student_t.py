import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods import Normal, StudentT


def test_many_degrees_of_freedom_are_normal():
    """M083: the gap in the loss is O(1 / nu)."""
    raw, y = torch.randn(10, 1), torch.randn(10)
    normal = Normal(dispersion=1.0).loss(raw, y)
    near, far = (
        StudentT(dispersion=1.0, nu=nu).double().loss(raw, y) - normal for nu in (1e4, 1e5)
    )
    assert_close(near / far, torch.full((10,), 10.0), rtol=1e-2, atol=0)


def test_one_degree_of_freedom_is_cauchy_without_moments_or_crps():
    likelihood, raw, y = StudentT(dispersion=1.0, nu=1.0), torch.randn(5, 1), torch.randn(5)
    assert_close(likelihood.loss(raw, y), -torch.as_tensor(stats.cauchy(raw[:, 0]).logpdf(y)))
    predicted = likelihood.distribution(raw)
    assert predicted.mean.isnan().all()
    assert predicted.variance.isnan().all()
    assert predicted.crps(y).isinf().all()
    assert_close(likelihood.point(raw), raw[:, 0])
    lower, upper = predicted.interval(0.5)
    assert_close((lower, upper), (raw[:, 0] - 1, raw[:, 0] + 1))


def test_the_variance_is_infinite_between_one_and_two_degrees():
    assert StudentT(nu=1.5).distribution(torch.zeros(1, 2)).variance.isinf().all()


def test_a_learned_nu_stays_above_two():
    likelihood = StudentT()
    with torch.no_grad():
        likelihood.freedom.constant.fill_(-1e4)
    assert likelihood.freedom(torch.zeros(1, 2)).item() >= 2.0


def test_the_start_is_scipys_maximum_likelihood_fit():
    y = stats.t(4.0, 10, 3).rvs(2000, random_state=1)
    likelihood = StudentT(dispersion="constant")
    weight = torch.ones(2000)
    likelihood.observe(torch.as_tensor(y), weight)
    shift, _ = likelihood.start(torch.as_tensor(y), weight)
    nu, location, scale = stats.t.fit(y, 5.0, loc=np.median(y), scale=3.0)
    found = likelihood.distribution(shift.reshape(1, 1))
    assert found.nu.item() == pytest.approx(nu, rel=1e-3)
    assert found.location.item() == pytest.approx(location, abs=1e-3)
    assert found.scale.item() == pytest.approx(scale, rel=1e-3)


def test_light_tails_start_at_a_nu_of_a_thousand():
    y, weight = torch.rand(200), torch.ones(200)
    likelihood = StudentT()
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    assert likelihood.freedom(shift.reshape(1, 2)).item() == pytest.approx(1000)
    assert shift[0].item() == pytest.approx(y.mean().item(), abs=1e-3)


def test_an_outlier_hardly_moves_the_start():
    y = torch.cat([torch.randn(99), torch.tensor([1e6])])
    likelihood = StudentT(nu=3.0)
    likelihood.observe(y, torch.ones(100))
    assert likelihood.start(y, torch.ones(100))[0][0].abs() < 0.5


def test_an_impossible_nu_is_refused():
    with pytest.raises(ValueError, match="nu of StudentT must be 'learned' or a number > 0"):
        StudentT(nu="free")
    with pytest.raises(ValueError, match="positive and finite"):
        StudentT(nu=-1.0)


def test_many_rows_start_at_their_own_maximum():
    y, weight = torch.as_tensor(stats.t(3.0, 1, 2).rvs(30_000, random_state=2)), torch.ones(30_000)
    likelihood = StudentT()
    likelihood.observe(y, weight)
    shift = likelihood.start(y, weight)[0].requires_grad_()
    risk = likelihood.loss(shift.expand(30_000, 2), y).mean()
    for gradient in torch.autograd.grad(risk, [shift, *likelihood.parameters()]):
        assert gradient.abs().max() < 1e-9


def test_the_training_loss_has_the_gradient_of_the_loss():
    likelihood, y = StudentT(nu=3.0), torch.randn(10)
    raw = torch.randn(10, 2, requires_grad=True)
    gradients = [
        torch.autograd.grad(loss(raw, y).sum(), raw)[0]
        for loss in (likelihood.loss, likelihood.training_loss)
    ]
    assert_close(*gradients)
