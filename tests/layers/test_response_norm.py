import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.layers import LocalResponseNorm, create, norms


def paper(a, n, alpha, beta, k):
    """Channel by channel, the window cut off at both ends."""
    out, channels = torch.empty_like(a), a.shape[1]
    for i in range(channels):
        window = a[:, max(0, i - n // 2) : min(channels, i + (n - 1) // 2 + 1)]
        out[:, i] = a[:, i] / (k + alpha * (window**2).sum(1)) ** beta
    return out


@pytest.mark.parametrize("size", [(4,), (3, 2), (2, 3, 2)])
@pytest.mark.parametrize("n", [1, 3, 4, 5])
def test_is_the_papers_formula(size, n):
    a = 3 * torch.randn(2, 7, *size)
    assert_close(LocalResponseNorm(n, 0.3, 0.6, 1.5)(a), paper(a, n, 0.3, 0.6, 1.5))


def test_the_defaults_are_alexnets():
    a = 100 * torch.randn(2, 9, 3, 3)
    for layer in (
        LocalResponseNorm(),
        create("local_response_norm"),
        norms.create("local_response"),
    ):
        assert_close(layer(a), paper(a, n=5, alpha=1e-4, beta=0.75, k=2.0))


def test_torch_divides_alpha_by_the_window():
    a = 3 * torch.randn(2, 7, 3, 3)
    assert_close(LocalResponseNorm(5, 0.1)(a), nn.LocalResponseNorm(5, 0.5, 0.75, 2.0)(a))
    assert_close(LocalResponseNorm(5, 0.1 / 5, 0.75, 1.0)(a), nn.LocalResponseNorm(5, 0.1)(a))


def test_gradient():
    layer = LocalResponseNorm(3, alpha=1.0)
    assert torch.autograd.gradcheck(layer, torch.randn(1, 4, 2, 2, requires_grad=True))
