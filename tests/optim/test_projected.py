import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import ProjectedGradient


def run(theta, loss, count=50, **options):
    rule, seen = ProjectedGradient([theta], **options), []
    for _ in range(count):
        rule.zero_grad()
        loss(theta).backward()
        rule.step()
        seen.append(theta.detach().clone())
    return torch.stack(seen)


@pytest.mark.parametrize("norm, length", [("l2", 2.0), ("inf", torch.inf)])
@pytest.mark.parametrize("maximize", [False, True])
def test_iterates_stay_in_the_ball_around_the_start(norm, length, maximize):
    start = torch.randn(4)
    theta = torch.nn.Parameter(start.clone())
    seen = run(theta, lambda t: t.pow(3).sum(), lr=0.3, radius=0.7, norm=norm, maximize=maximize)
    apart = torch.linalg.vector_norm(seen - start, ord=length, dim=1)
    assert (apart <= 0.7 + 1e-12).all() and apart[-1] > 0.69


def test_a_linear_function_has_its_maximum_where_the_gradient_leaves_the_ball():
    theta, slope = torch.nn.Parameter(torch.zeros(3)), torch.tensor([1.0, -2.0, 2.0])
    run(theta, lambda t: t @ slope, lr=0.1, radius=1.5, maximize=True)
    assert_close(theta.detach(), 1.5 * slope / 3)
    box = torch.nn.Parameter(torch.zeros(3))
    run(box, lambda t: t @ slope, lr=0.1, radius=1.5, norm="inf", maximize=True)
    assert_close(box.detach(), 1.5 * slope.sign())


def test_it_finds_the_nearest_point_of_a_ball_around_the_origin():
    target = torch.tensor([3.0, 4.0])
    theta = torch.nn.Parameter(torch.tensor([0.1, 0.2]))
    run(theta, lambda t: (t - target).square().sum() / 2, 300, lr=0.1, radius=2.0, around="origin")
    assert_close(theta.detach(), 2.0 * target / 5, atol=1e-6, rtol=0)


def test_in_a_large_ball_it_is_plain_descent():
    one, two = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    run(one, lambda t: t.square().sum(), 5, lr=0.1, radius=1e6)
    plain = torch.optim.SGD([two], lr=0.1)
    for _ in range(5):
        plain.zero_grad()
        two.square().sum().backward()
        plain.step()
    assert_close(one, two)


def test_the_ball_is_one_for_all_parameters_of_a_group():
    tensors = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))]
    rule = ProjectedGradient(tensors, lr=1.0, radius=1.0)
    sum(t.sum() for t in tensors).backward()
    rule.step()
    assert_close(torch.cat(tensors).detach(), torch.full((5,), -(5**-0.5)))


@pytest.mark.parametrize("options", [{"radius": 0.0}, {"norm": "l1"}, {"around": "here"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(UsageError, match="projected_gradient"):
        ProjectedGradient([torch.nn.Parameter(torch.zeros(1))], **options)
