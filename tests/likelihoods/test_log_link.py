import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.logarithms import soft_cap, soft_clamp


def test_within_the_limit_nothing_changes():
    x = torch.linspace(-50, 50, 11)
    assert torch.equal(soft_clamp(x), x)


def test_beyond_the_limit_the_exponential_is_its_tangent():
    x = torch.tensor([60.0, 1e4], requires_grad=True)
    y = soft_cap(x).exp()
    assert_close(y.detach(), torch.tensor(50.0).exp() * (1 + x.detach() - 50))
    assert_close(torch.autograd.grad(y.sum(), x)[0], torch.tensor(50.0).exp().expand(2))


def test_it_is_odd_and_increasing():
    x = torch.linspace(-200, 200, 401)
    assert_close(soft_clamp(-x), -soft_clamp(x))
    assert (soft_clamp(x).diff() > 0).all()
