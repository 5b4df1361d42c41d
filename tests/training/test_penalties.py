import numpy as np
import pytest
import torch
from sklearn import linear_model
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.training.penalties import (
    L1,
    L2,
    ElasticNet,
    Group,
    Orthogonality,
    Penalty,
    Spectral,
    penalties,
    weights,
)

N = 50
X = torch.randn(N, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
Y = X @ torch.tensor([2.0, -1.0, 0, 0, 0.5, 0], dtype=torch.float64) + 0.1 * X[:, 0] ** 2
NAMES = ["l1", "l2", "elastic_net", "group", "orthogonality", "spectral"]


def linear(coefficients):
    net = nn.Linear(6, 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(coefficients).reshape(1, -1))
    return net


def gradient(net, penalty):
    """Of |y - Xw|^2 / 2n + penalty, at the weights of the net."""
    loss = ((net(X)[:, 0] - Y) ** 2).mean() / 2 + penalty(net)
    return torch.autograd.grad(loss, net.weight)[0][0]


@pytest.mark.parametrize(
    "penalty, model",
    [
        (L1(0.1), linear_model.Lasso(alpha=0.1, fit_intercept=False, tol=1e-12)),
        (
            ElasticNet(0.1, l1_ratio=0.3),
            linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3, fit_intercept=False, tol=1e-12),
        ),
        (L2(0.1), linear_model.Ridge(alpha=0.1 * N, fit_intercept=False)),
    ],
)
def test_the_minimiser_is_scikit_learns(penalty, model):
    w = torch.as_tensor(model.fit(X, Y).coef_)
    found = gradient(linear(w), penalty)
    assert_close(found[w != 0], torch.zeros(int((w != 0).sum())), atol=1e-7, rtol=0)
    # At a zero weight the loss alone pulls less than the penalty's kink resists.
    l1 = penalty.strength * getattr(penalty, "l1_ratio", 1.0)
    assert (found[w == 0].abs() <= l1).all()
    if isinstance(penalty, L1):
        assert (w == 0).any()


def test_l1_on_an_orthonormal_design_is_the_soft_threshold():
    Q = torch.linalg.qr(X).Q
    free, strength = Q.T @ Y, 0.3
    best = free.sign() * (free.abs() - strength).clamp(min=0)

    def objective(w):
        return 0.5 * ((Y - Q @ w) ** 2).sum() + L1(strength)(linear(w))

    for direction in torch.cat([torch.eye(6), -torch.eye(6), torch.randn(50, 6)]):
        assert objective(best) < objective(best + 1e-3 * direction)


def test_elastic_net_reduces_to_lasso_and_ridge():
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    assert_close(ElasticNet(0.7, l1_ratio=1.0)(net), L1(0.7)(net))
    assert_close(ElasticNet(0.7, l1_ratio=0.0)(net), L2(0.7)(net))


def test_a_gradient_step_on_l2_alone_shrinks_by_one_minus_rate_times_strength():
    net = linear(np.arange(6.0))
    before = net.weight.detach().clone()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    L2(0.5)(net).backward()
    optimizer.step()
    assert_close(net.weight.detach(), (1 - 0.1 * 0.5) * before)


def test_orthogonality_is_zero_for_orthonormal_rows_or_columns_and_the_formula_else():
    for shape in ((3, 5), (5, 3), (4, 4)):
        net = nn.Linear(*shape)
        nn.init.orthogonal_(net.weight)
        assert Orthogonality()(net) < 1e-20
        with torch.no_grad():
            net.weight *= 2  # singular values 2: |4 I - I|^2 = 9 per direction
        assert_close(Orthogonality(0.5)(net).item(), 0.5 * 9 * min(shape))


def test_spectral_is_half_the_squared_largest_singular_value():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
    top = [np.linalg.norm(layer.weight.detach().numpy(), 2) for layer in net]
    assert_close(Spectral(2.0)(net).item(), top[0] ** 2 + top[1] ** 2)


@pytest.mark.parametrize("name", NAMES)
def test_biases_and_norm_gains_are_left_alone(name):
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    penalties.create(name, 0.1)(net).backward()
    assert net[0].bias.grad is None and net[1].weight.grad is None
    assert net[0].weight.grad.abs().sum() > 0
    assert sorted(penalties.names()) == sorted(NAMES)


def test_all_weights_are_penalised_on_request():
    net = nn.Linear(2, 2)
    nn.init.ones_(net.weight), nn.init.ones_(net.bias)
    assert L1(on="all")(net) == 6 and L1()(net) == 4


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_right(name):
    net, penalty = nn.Linear(3, 4, bias=False), penalties.create(name)

    def value(W):
        return penalty.strength * penalty.term(W)

    assert torch.autograd.gradcheck(value, net.weight)
    assert_close(penalty(net), value(net.weight))


def test_convolutions_are_matrices_of_their_output_channels():
    net = nn.Conv2d(2, 3, 3)
    W = net.weight.detach().reshape(3, 18).numpy()
    assert_close(Spectral()(net).item(), np.linalg.norm(W, 2) ** 2 / 2)


def test_shared_frozen_and_normalised_weights_are_counted_as_they_act():
    layer = nn.Linear(3, 3)
    assert len(list(weights(nn.Sequential(layer, nn.ReLU(), layer)))) == 1
    assert not list(weights(layer.requires_grad_(False)))
    normalised = weight_norm(nn.Linear(3, 4))
    with torch.no_grad():
        normalised.parametrizations.weight.original1 *= 10  # acts on nothing
    assert_close(L2()(normalised), 0.5 * (normalised.weight**2).sum())
    assert len(list(weights(normalised))) == 1


def test_a_network_without_matrices_costs_nothing():
    assert L1()(nn.ReLU()) == 0


@pytest.mark.parametrize("strength", [-1.0, float("nan"), float("inf"), True])
def test_impossible_strengths_are_refused(strength):
    with pytest.raises(UsageError, match="strength of a penalty"):
        L2(strength)


def test_other_bad_options_are_refused():
    with pytest.raises(UsageError, match="l1_ratio"):
        ElasticNet(l1_ratio=2.0)
    with pytest.raises(UsageError, match="on must be"):
        L1(on="biases")
    with pytest.raises(UsageError, match="Did you mean 'elastic_net'"):
        penalties.create("elastic_nets")


def test_the_group_lasso_is_the_sum_of_the_norms_of_columns():
    net = nn.Sequential(nn.Linear(3, 5), nn.Conv1d(2, 4, 3))
    W, V = net[0].weight, net[1].weight
    naive = sum(5**0.5 * (W[:, j] ** 2).sum() ** 0.5 for j in range(3))
    naive += sum(12**0.5 * (V[:, c] ** 2).sum() ** 0.5 for c in range(2))
    assert_close(Group(0.7)(net), 0.7 * naive)


def test_the_group_lasso_has_a_finite_gradient_where_a_group_is_zero():
    net = linear([0.0, 1, 1, 1, 1, 1])
    Group(1.0)(net).backward()
    assert_close(net.weight.grad[0, 0], torch.zeros(()))


@pytest.mark.parametrize(
    "text, name, strength",
    [("lasso=0.01", "l1", 0.01), ("ridge", "l2", None), ("Group_Lasso = 1e-3", "group", 1e-3)],
)
def test_a_penalty_is_read_from_its_name_and_strength(text, name, strength):
    found = Penalty.read(text)
    assert found == (name, strength) and Penalty.read(str(found)) == found


@pytest.mark.parametrize("text", ["lasoo=1", "l1=", "l1=-1", "l1=nan", 3])
def test_a_penalty_that_cannot_be_read_is_named(text):
    with pytest.raises(UsageError, match="penalty"):
        Penalty.read(text)


def test_the_penalty_of_a_network_needs_a_strength():
    with pytest.raises(UsageError, match=r"a network needs its strength, like l2=0\.001"):
        Penalty("l2").create()
    assert Penalty("l2", 0.5).create().strength == 0.5
