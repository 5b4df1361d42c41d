import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import create
from ansatz.likelihoods.special.tensors import absolute, in_blocks

X = torch.tensor([-3.5, -0.0, 0.0, 1e-300, 2.0, float("inf"), float("-inf"), float("nan")])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_slope_are_torchs(dtype):
    x = X.to(dtype).requires_grad_()
    torch.testing.assert_close(absolute(x), x.abs(), rtol=0, atol=0, equal_nan=True)
    ours, theirs = (torch.autograd.grad(f(x).sum(), x)[0] for f in (absolute, torch.abs))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


def test_second_derivatives_are_plain_zeros():
    """Torch's own are symbolic, and to add two of them it imports its compiler: a second."""

    def curvature(f):
        x = X[:5].clone().requires_grad_()
        (slope,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0]

    assert curvature(torch.abs)._is_zerotensor()  # else there is no need for ours
    assert not curvature(absolute)._is_zerotensor() and not curvature(absolute).any()


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # by torch of itself
def test_it_maps_over_a_batch_and_forward():
    x = torch.randn(3, 4)
    torch.testing.assert_close(
        torch.vmap(torch.func.grad(lambda r: absolute(r).sum()))(x), x.sign()
    )
    _, slope = torch.func.jvp(absolute, (x,), (torch.ones(3, 4),))
    torch.testing.assert_close(slope, x.sign())


def names(node):
    """Of the nodes of an autograd graph."""
    return {node.name()}.union(*(names(below) for below, _ in node.next_functions if below))


@pytest.mark.parametrize("likelihood", ["laplace", "student_t"])
def test_likelihoods_that_are_compared_by_default_do_not_import_torchs_compiler(likelihood):
    """Second derivatives of torch's abs are symbolic zeros, whose sum imports it: a second."""
    raw = torch.tensor([[0.5], [-0.5]], requires_grad=True)
    loss = create(likelihood, dispersion=1.0).double().loss(raw, torch.zeros(2)).sum()
    assert "AbsBackward0" not in names(loss.grad_fn)
    assert "AbsBackward0" in names(raw.abs().sum().grad_fn)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_blocks_of_any_size_give_the_whole(shape):
    x, y = torch.randn(shape), torch.randn(shape)
    for size in (1, 3, 100):
        assert_close(in_blocks(torch.add, x, y, size=size), x + y)
        pairs = in_blocks(lambda a, b: torch.stack([a, b], -1), x, y, size=size)
        assert_close(pairs, torch.stack([x, y], -1))
