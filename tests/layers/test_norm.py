import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import Dense, LocalResponseNorm, create, normalize, norms


def test_batch_norm_gives_mean_0_variance_1_over_the_batch_and_stores_running_ones():
    norm, x = norms.create("batch", 4, momentum=0.1), 3 + 2 * torch.randn(50, 4)
    y = norm(x)
    assert_close(y.mean(0), torch.zeros(4))
    v = x.var(0, correction=0)
    assert_close(y.var(0, correction=0), v / (v + 1e-5))
    assert_close(norm.running_mean, 0.1 * x.mean(0))
    assert_close(norm.running_var, 0.9 + 0.1 * x.var(0))
    norm.eval()
    rows = torch.randn(3, 4)
    expected = (rows - norm.running_mean) / (norm.running_var + 1e-5).sqrt()
    assert_close(norm(rows), expected)


def test_batch_norm_of_a_linear_unit_is_weight_normalisation_in_the_centred_covariance():
    x, layer = 5 + torch.randn(64, 3) @ torch.randn(3, 3), nn.Linear(3, 4)
    norm = norms.create("batch", 4, eps=1e-30)
    W = layer.weight
    sigma = torch.as_tensor(np.cov(x.numpy().T, bias=True))  # centred, not E[x x^T]
    size = (W @ sigma * W).sum(1).sqrt()
    expected = (x - x.mean(0)) @ W.T / size
    assert_close(norm(layer(x)), expected)
    with torch.no_grad():
        layer.weight *= torch.tensor([[0.1], [1.0], [7.0], [100.0]])
    assert_close(norm(layer(x)), expected)  # invariant to the length of w


def test_layer_norm_does_not_see_the_batch_and_batch_norm_does():
    x = torch.randn(10, 6)
    for name, alone in [("layer", True), ("rms", True), ("batch", False)]:
        norm = norms.create(name, 6)
        assert bool(((norm(x)[:2] - norm(x[:2])).abs() < 1e-12).all()) == alone


def test_layer_norm_is_the_formula_over_features():
    x = 2 + torch.randn(5, 6)
    expected = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
    assert_close(norms.create("layer", 6)(x), expected)


def test_gain_and_shift_of_a_norm_can_undo_it():
    """gamma = sd and beta = mean give back what was normalised."""
    x = 3 + 2 * torch.randn(50, 4)
    norm = norms.create("batch", 4, eps=1e-30)
    with torch.no_grad():
        norm.weight.copy_(x.std(0, correction=0))
        norm.bias.copy_(x.mean(0))
    assert_close(norm(x), x)


def test_the_gradient_of_a_normalised_weight_is_projected_off_it():
    layer, x = weight_norm(nn.Linear(5, 3)), torch.randn(7, 5)
    W = layer.weight.detach().clone().requires_grad_()
    (dW,) = torch.autograd.grad((x @ W.T + layer.bias).sin().sum(), W)
    layer(x).sin().sum().backward()
    gamma = layer.parametrizations.weight.original0.detach()  # (3, 1)
    V = layer.parametrizations.weight.original1
    for i in range(3):
        w, v = W[i].detach(), V[i].detach()
        P = torch.eye(5) - torch.outer(w, w) / w.dot(w)
        assert_close(V.grad[i], gamma[i] / v.norm() * P @ dW[i])
        assert V.grad[i].dot(w).abs() < 1e-12


def test_local_response_norm_is_alexnets_formula():
    n, alpha, beta, k = 3, 0.02, 0.75, 2.0
    x = torch.randn(2, 6, 4)
    expected = torch.empty_like(x)
    for i in range(6):
        near = x[:, max(0, i - n // 2) : i + n // 2 + 1] ** 2
        expected[:, i] = x[:, i] / (k + alpha * near.sum(1)) ** beta
    found = norms.create("local_response", n, alpha=alpha, beta=beta, k=k)(x)
    assert_close(found, expected)


def test_weight_norm_re_parametrises_the_layer_and_changes_nothing_at_first():
    layer, x = nn.Linear(3, 4), torch.randn(5, 3)
    before = layer(x)
    assert isinstance(normalize(layer, "weight"), nn.Identity)
    assert_close(layer(x), before)
    assert_close(layer.parametrizations.weight.original0.squeeze(), layer.weight.norm(dim=1))


@pytest.mark.parametrize("norm", ["batch", "layer", "rms"])
def test_a_dense_layer_normalises_between_map_and_activation(norm):
    layer, x = Dense(3, 4, activation="tanh", norm=norm), torch.randn(9, 3)
    assert_close(layer(x), torch.tanh(norms.create(norm, 4)(layer.linear(x))))


def test_a_norm_without_a_place_in_a_table_network_is_refused():
    with pytest.raises(UsageError, match="one of batch, layer, rms, weight, got 'local_response'"):
        normalize(nn.Linear(2, 2), "local_response")


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
