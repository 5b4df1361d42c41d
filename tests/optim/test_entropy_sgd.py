import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import EntropySGD
from ansatz.seeds import generator


def step(rule, x, loss):
    rule.zero_grad()
    loss(x).sum().backward()
    rule.step()


def test_it_is_algorithm_1():
    x = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    options = {"lr": 0.1, "gamma": 0.5, "noise": 0.3, "inner": 3, "memory": 0.6, "outer": 0.8}
    rule = EntropySGD([x], **options)
    center = x.detach().clone()
    for _ in range(6):
        step(rule, x, lambda t: t**2)
    for outer in range(2):
        inner = mean = center
        for number in range(3):
            z = torch.randn(2, generator=generator(0, "entropy_sgd", 1, 3 * outer + number))
            slope = 2 * inner - 0.5 * (center - inner)
            inner = inner - 0.1 * slope + 0.1**0.5 * 0.3 * z
            mean = 0.4 * mean + 0.6 * inner
        center = center - 0.8 * (center - mean)
    assert_close(x.detach(), center)


def test_a_move_follows_the_gradient_of_the_local_entropy():
    """For h = c x^2 / 2 the local entropy's mean of x' is gamma x / (c + gamma)."""
    c, gamma = torch.tensor([0.5, 2.0, 8.0]), 1.0
    x = torch.nn.Parameter(torch.full((3,), 3.0))
    rule = EntropySGD([x], lr=0.05, gamma=gamma, noise=0.0, inner=400, memory=0.75)
    for _ in range(400):
        step(rule, x, lambda t: c * t**2 / 2)
    assert_close(x.detach(), gamma * 3.0 / (c + gamma), rtol=1e-6, atol=0)


def valleys(x):
    """A sharp valley at 0, and a wide one that is as deep at 1.5."""
    sharp, wide = torch.exp(-(x**2) / (2 * 0.05**2)), torch.exp(-((x - 1.5) ** 2) / (2 * 0.6**2))
    return -sharp - wide


def sharpness(x):
    """The second derivative, entry by entry."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(valleys(x).sum(), x, create_graph=True)
    return torch.autograd.grad(slope.sum(), x)[0]


def test_it_ends_in_flatter_minima_than_gradient_descent():
    torch.manual_seed(0)
    start = torch.linspace(-0.2, 0.6, 40)
    plain, entropic = (torch.nn.Parameter(start.clone()) for _ in range(2))
    descent = torch.optim.SGD([plain], lr=2e-3)
    rule = EntropySGD([entropic], lr=2e-3, gamma=0.1, noise=2.0, inner=50, memory=0.1, outer=0.5)
    for _ in range(3000):
        step(descent, plain, valleys)
        step(rule, entropic, valleys)
    for _ in range(500):  # both to the bottom of the valley that they have chosen
        step(descent, plain, valleys)
    bottom = torch.nn.Parameter(rule.state[entropic]["center"].clone())
    settle = torch.optim.SGD([bottom], lr=2e-3)
    for _ in range(3000):
        step(settle, bottom, valleys)
    assert sharpness(bottom).mean() < 0.7 * sharpness(plain).mean()


@pytest.mark.parametrize("options", [{"inner": 0}, {"memory": 0.0}, {"gamma": -1.0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(UsageError, match="entropy_sgd"):
        EntropySGD([torch.nn.Parameter(torch.zeros(1))], **options)
