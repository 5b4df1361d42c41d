import torch
from torch.testing import assert_close

from ansatz.likelihoods import MAE, Laplace, LaplaceDistribution


def test_the_optimum_is_the_median():
    """M082: no other constant has a smaller mean loss than the median of y."""
    y, likelihood = torch.randn(101).exp(), Laplace(dispersion=1.0)
    likelihood.observe(y, torch.ones(101))
    shift, _ = likelihood.start(y, torch.ones(101))
    assert_close(shift, y.median().reshape(1))
    grid = torch.linspace(0, 5, 200)
    risks = likelihood.loss(grid.reshape(-1, 1, 1).expand(-1, 101, 1), y.expand(200, 101)).mean(1)
    assert (risks >= likelihood.loss(shift.expand(101, 1), y).mean()).all()


def test_a_fixed_scale_is_the_absolute_error():
    raw, y = torch.randn(10, 1), torch.randn(10)
    gap = Laplace(dispersion=1.0).loss(raw, y) - MAE().loss(raw, y)
    assert_close(gap, torch.tensor(2.0).log().expand(10))


def test_far_tails_are_straight_lines():
    distribution = LaplaceDistribution(torch.zeros(1), torch.full((1,), 2.0))
    y = torch.tensor([-1e5])
    assert_close(distribution.log_cdf(y), y / 2 - torch.tensor(2.0).log())
    assert_close(distribution.log_survival(-y), y / 2 - torch.tensor(2.0).log())
