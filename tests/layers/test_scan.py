"""The recurrence in chunks is the loop, with its gradients."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import scan


def loop(a, b, initial, reverse=False):
    """h_t = a_t h_{t-1} + b_t, step by step."""
    steps, h = range(b.shape[1]), initial
    found = {}
    for t in reversed(steps) if reverse else steps:
        h = found[t] = a[:, t] * h + b[:, t]
    return torch.stack([found[t] for t in steps], 1)


def draw(steps, dtype=torch.float64, batch=2, features=3):
    a = torch.randn(batch, steps, features, dtype=dtype)
    a = a / (1 + a.abs())  # |a| < 1
    b, initial = torch.randn_like(a), torch.randn(batch, features, dtype=dtype)
    return [x.requires_grad_() for x in (a, b, initial)]


@pytest.mark.parametrize("steps", [1, 2, 63, 64, 65, 200, 10_000])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_is_the_loop_with_its_gradients(steps, reverse, dtype):
    inputs = draw(steps, dtype, batch=1 if steps > 999 else 2)
    ours, naive = scan(*inputs, reverse=reverse), loop(*inputs, reverse)
    assert_close(ours, naive, atol=1e-10, rtol=0)
    weight = torch.randn_like(naive)
    ours, naive = (torch.autograd.grad(h, inputs, weight) for h in (ours, naive))
    assert_close(ours, naive, atol=1e-10, rtol=1e-10)


def test_factors_that_are_zero_or_one_stay_exact():
    a, b, initial = torch.ones(1, 300, 2), torch.ones(1, 300, 2), torch.zeros(1, 2)
    a[:, 200] = 0
    expected = torch.cat([torch.arange(1.0, 201), torch.arange(1.0, 101)])
    assert_close(scan(a, b, initial)[0, :, 0], expected, rtol=0, atol=0)


def test_slow_decay_over_many_chunks_is_the_geometric_sum():
    h = scan(torch.tensor(0.9999), torch.ones(1, 64 * 64 * 3 + 5, 1))[0, -1, 0]
    assert_close(h, (1 - torch.tensor(0.9999) ** (64 * 64 * 3 + 5)) / 1e-4, rtol=1e-10, atol=0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_of_both_orders(reverse, dtype):
    inputs = draw(130, dtype, batch=1, features=1)
    assert torch.autograd.gradcheck(lambda *x: scan(*x, reverse=reverse), inputs, fast_mode=True)
    inputs = draw(5, dtype, batch=1, features=1)
    assert torch.autograd.gradgradcheck(lambda *x: scan(*x, reverse=reverse), inputs)


def test_vmap_is_a_loop_over_its_axis_and_takes_gradients():
    a, b, initial = (torch.stack(x, 1).detach() for x in zip(draw(130), draw(130), strict=True))
    found = torch.vmap(scan, in_dims=1, out_dims=1)(a, b, initial)
    assert_close(found, torch.stack([scan(a[:, k], b[:, k], initial[:, k]) for k in (0, 1)], 1))

    def score(a, b):
        return scan(a, b).square().sum()

    shared = torch.vmap(torch.func.grad(score), in_dims=(None, 1))(a[:, 0], b)
    each = torch.stack([torch.func.grad(score)(a[:, 0], b[:, k]) for k in (0, 1)])
    assert_close(shared, each)


def test_a_factor_for_each_feature_is_shared_by_the_steps():
    a, b = torch.rand(3, requires_grad=True), torch.randn(2, 100, 3)
    ours, naive = scan(a, b), loop(a.expand(2, 100, 3), b, torch.zeros(2, 3))
    assert_close(ours, naive)
    assert_close(*(torch.autograd.grad(h.square().sum(), a) for h in (ours, naive)))


def test_wrong_shapes_are_named():
    with pytest.raises(UsageError, match=r"\(B, T, D\) with T >= 1, got \(4, 3\)"):
        scan(torch.ones(4, 3), torch.ones(4, 3))
    with pytest.raises(UsageError, match=r"broadcasts to b \(2, 4, 3\)"):
        scan(torch.ones(2, 5, 3), torch.ones(2, 4, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler looks at gradients between its graphs
def test_a_compiled_function_may_scan():
    a, b, _ = draw(130)

    @torch.compile(backend="aot_eager")
    def compiled(a, b):
        return scan(torch.tanh(a), 2 * b).square().sum()

    assert_close(compiled(a, b), scan(torch.tanh(a), 2 * b).square().sum())
    found = torch.autograd.grad(compiled(a, b), (a, b))
    assert_close(found, torch.autograd.grad(scan(torch.tanh(a), 2 * b).square().sum(), (a, b)))
