import math

import pytest
import torch
from scipy import integrate, optimize, stats
from torch import nn
from torch.testing import assert_close

from ansatz.layers import SelfGated, Step, Swish, activations, gain, softmax

X = torch.linspace(-6, 6, 241, dtype=torch.float64)
OPTIONS = {"self_gated": {"cdf": "normal"}}
every_activation = pytest.mark.parametrize("name", activations.names())


def make(name, **options):
    return activations.create(name, **(options or OPTIONS.get(name, {})))


def slope(phi, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(phi(x).sum(), x)[0]


@every_activation
def test_every_activation_keeps_shape_and_dtype_and_is_finite_far_out(name):
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([[-80.0, -1.0, 0.0, 1.0, 80.0]], dtype=dtype, requires_grad=True)
        y = make(name).to(dtype)(x)
        assert y.shape == x.shape and y.dtype == dtype and y.isfinite().all()
        if y.requires_grad:
            assert torch.autograd.grad(y.sum(), x)[0].isfinite().all()


def test_torchs_own_classes_are_not_wrapped():
    own = {"erf", "sin", "swish", "self_gated", "step", "softmax"}
    assert all(
        activations.get(name).__module__.startswith("torch.nn")
        for name in activations.names()
        if name not in own
    )


def test_sigmoid_has_slope_at_most_a_quarter_and_a_point_symmetry():
    sigmoid = make("sigmoid")
    assert slope(sigmoid, X).max() == pytest.approx(0.25)  # at 0, which is in X
    assert_close(sigmoid(-X), 1 - sigmoid(X))
    assert_close(sigmoid(X), 1 / (1 + (-X).exp()))


def test_sigmoid_saturates_so_gradients_die_at_least_by_a_quarter_per_layer():
    net = nn.Sequential(*[make("sigmoid") for _ in range(8)])
    assert slope(net, X).max() <= 0.25**8
    assert slope(make("sigmoid"), torch.tensor([10.0])) < 5e-5  # sigma(10)(1 - sigma(10))
    assert slope(make("relu"), torch.tensor([10.0])) == 1


def test_tanh_is_odd_bounded_and_has_slope_one_minus_its_square():
    tanh = make("tanh")
    assert_close(tanh(-X), -tanh(X))
    assert tanh(X).abs().max() < 1
    assert_close(tanh(X), (X.exp() - (-X).exp()) / (X.exp() + (-X).exp()))
    assert_close(slope(tanh, X), 1 - tanh(X) ** 2)  # not 1 - z^2


@pytest.mark.parametrize("scale", [0.0, 0.3, 7.0])
def test_relu_is_positively_homogeneous(scale):
    assert_close(make("relu")(scale * X), scale * make("relu")(X))


def test_leaky_relu_is_the_maximum_of_two_lines_for_slopes_up_to_one():
    assert_close(make("leaky_relu")(X), torch.maximum(0.01 * X, X))


@pytest.mark.parametrize("a", [0.25, 3.0])
def test_prelu_is_right_beyond_slope_one_and_its_slope_learns_by_min_x_0(a):
    prelu = make("prelu", init=a)
    assert_close(prelu(X), torch.where(X > 0, X, a * X))
    if a > 1:  # the formula max(ax, x) would pick the wrong branch
        assert not torch.equal(prelu(X), torch.maximum(a * X, X))
    for x in (-2.0, 3.0):
        (found,) = torch.autograd.grad(prelu(torch.tensor([x])).sum(), prelu.weight)
        assert found.item() == min(x, 0.0)


def test_softplus_has_the_sigmoid_as_slope_and_tends_to_relu():
    assert_close(make("softplus")(X), torch.log1p(X.exp()))
    assert_close(slope(make("softplus"), X), torch.sigmoid(X))
    # The largest gap to ReLU is log(2) / beta, at 0.
    gap = (make("softplus", beta=100.0, threshold=1e9)(X) - X.relu()).abs().max()
    assert gap == pytest.approx(math.log(2) / 100)


def test_gelu_is_x_times_the_normal_cdf_with_its_minimum_near_minus_three_quarters():
    assert_close(make("gelu")(X), X * torch.as_tensor(stats.norm.cdf(X)))
    best = optimize.minimize_scalar(lambda x: make("gelu")(torch.tensor(x)).item())
    assert best.x == pytest.approx(-0.7518, abs=1e-3)
    assert best.fun == pytest.approx(-0.1700, abs=1e-4)
    assert 1e-4 < (make("gelu")(X) - make("gelu", approximate="tanh")(X)).abs().max() < 1e-3


@pytest.mark.parametrize("beta", [0.4, 1.0, 1.4])
def test_swish_is_x_times_sigmoid_of_beta_x(beta):
    assert_close(Swish(beta)(X), X / (1 + (-beta * X).exp()))


def test_swish_goes_from_half_the_identity_over_silu_to_relu():
    assert_close(Swish(0.0)(X), X / 2)
    assert_close(Swish(1.0)(X), make("silu")(X))
    # |x sigma(bx) - relu(x)| = |x| sigma(-b|x|) <= max_t t sigma(-t) / b = 0.2785 / b
    assert (Swish(1000.0)(X) - X.relu()).abs().max() <= 0.2785 / 1000


def test_a_learned_swish_trains_its_beta():
    phi = Swish(0.5, learned=True)
    (found,) = torch.autograd.grad(phi(X).sum(), phi.beta)
    s = torch.sigmoid(0.5 * X)
    assert_close(found, (X**2 * s * (1 - s)).sum())  # d/db x sigma(bx) = x^2 sigma'
    assert not list(Swish(0.5).parameters())


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_elu_is_continuous_and_smooth_only_for_alpha_one(alpha):
    elu = make("elu", alpha=alpha)
    assert_close(elu(X[X < 0]), alpha * torch.expm1(X[X < 0]))
    tiny = torch.tensor([-1e-9, 1e-9])
    assert_close(elu(tiny), torch.zeros(2), atol=1e-8, rtol=0)
    left, right = slope(elu, tiny)
    assert left.item() == pytest.approx(alpha, abs=1e-8) and right == 1


def expectation(function):
    """E function(z) for z ~ N(0, 1), with the kink at 0 told to the quadrature."""
    value, _ = integrate.quad(
        lambda z: function(torch.tensor(z)).item() * stats.norm.pdf(z), -12, 12, points=[0]
    )
    return value


def test_selu_has_mean_0_and_variance_1_as_a_fixed_point():
    selu = make("selu")
    assert expectation(selu) == pytest.approx(0, abs=1e-7)
    assert expectation(lambda z: selu(z) ** 2) == pytest.approx(1, abs=1e-7)
    assert gain("selu") == pytest.approx(1, abs=1e-3)


def test_selu_draws_the_variance_to_one_under_lecun_weights():
    """Wide layers with LeCun weights map v to E selu(sqrt(v) z)^2: a contraction to 1."""
    for v in (0.5, 2.0):
        start = abs(v - 1)
        for _ in range(3):
            root, before = math.sqrt(v), abs(v - 1)
            v = expectation(lambda z, root=root: make("selu")(root * z) ** 2)
            assert abs(v - 1) < before
        assert abs(v - 1) < start


@pytest.mark.parametrize(
    "name, likelihood",
    [
        ("normal", stats.norm),
        ("logistic", stats.logistic),
        ("laplace", stats.laplace),
        ("cauchy", stats.cauchy),
    ],
)
def test_self_gated_is_x_times_the_cdf_of_its_likelihood(name, likelihood):
    assert_close(SelfGated(name)(X), X * torch.as_tensor(likelihood.cdf(X)))
    x = torch.tensor([-2.0, -0.3, 0.7], requires_grad=True)
    assert torch.autograd.gradcheck(SelfGated(name), x)
    assert slope(SelfGated(name), torch.zeros(1)) == 0.5  # F(0), at the kink of Laplace too


def test_self_gated_contains_gelu_and_silu_and_takes_any_cdf():
    assert_close(SelfGated("normal")(X), make("gelu")(X))
    assert_close(SelfGated("logistic")(X), make("silu")(X))
    uniform = SelfGated(lambda x: ((x + 3) / 6).clamp(0, 1))
    assert_close(uniform(X), make("hardswish")(X))
    with pytest.raises(ValueError, match="normal, logistic, laplace, cauchy, got 'weibull'"):
        SelfGated("weibull")


def test_step_computes_logic_gates_but_learns_nothing():
    """McCulloch and Pitts: AND fires at threshold 2, OR at threshold 1."""
    bits = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    assert Step()(bits.sum(1) - 2).tolist() == [0, 0, 0, 1]
    assert Step()(bits.sum(1) - 1).tolist() == [0, 1, 1, 1]
    assert Step(low=-1)(torch.tensor([-2.0, 0.0])).tolist() == [-1, 1]
    assert not Step()(X.clone().requires_grad_()).requires_grad


def test_softmax_is_the_formula_sums_to_one_and_ignores_shifts():
    x = torch.randn(3, 5)
    assert_close(softmax()(x), x.exp() / x.exp().sum(1, keepdim=True))
    assert_close(softmax()(x).sum(-1), torch.ones(3))
    assert_close(softmax()(x + 1000), softmax()(x))
    assert_close(softmax(dim=0)(x).sum(0), torch.ones(5))


@pytest.mark.parametrize("name, zero", [("relu", True), ("tanh", False), ("silu", False)])
def test_relu_nets_have_no_laplacian_and_smooth_ones_do(name, zero):
    """Why ReLU is poor where a loss holds second derivatives."""
    net = nn.Sequential(nn.Linear(3, 16), make(name), nn.Linear(16, 16), make(name))
    hessian = torch.autograd.functional.hessian(lambda x: net(x).sum(), torch.randn(3))
    assert bool(hessian.trace() == 0) == zero


def test_the_cauchy_gate_keeps_its_digits_far_out():
    """F(x) = 1 / (pi |x|) - 1 / (3 pi |x|^3) + ..., so x F(x) tends to -1 / pi."""
    x = -torch.logspace(2, 12, 6).float()
    expected = -(1 - x.double() ** -2 / 3) / torch.pi
    assert_close(SelfGated("cauchy")(x).double(), expected, rtol=1e-6, atol=0)
    assert torch.autograd.gradcheck(SelfGated("cauchy"), torch.randn(9, requires_grad=True))
