import math

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peers
from torch.testing import assert_close

from ansatz import kernels
from ansatz.errors import NumericalError
from ansatz.kernels import condition, evidence, maximise_evidence

LENGTHS = [0.7, 1.3, 2.1]
ROWS = {  # ours, scikit-learn's
    "rbf": (kernels.RBF(length=LENGTHS), peers.RBF(LENGTHS)),
    "matern12": (kernels.Matern12(length=LENGTHS), peers.Matern(LENGTHS, nu=0.5)),
    "matern32": (kernels.Matern32(length=LENGTHS), peers.Matern(LENGTHS, nu=1.5)),
    "matern52": (kernels.Matern52(length=LENGTHS), peers.Matern(LENGTHS, nu=2.5)),
    "rational_quadratic": (
        kernels.RationalQuadratic(length=1.4, alpha=0.6),
        peers.RationalQuadratic(1.4, 0.6),
    ),
    "linear": (kernels.Linear(), peers.DotProduct(sigma_0=1e-300)),
    "constant": (kernels.Constant(variance=2.5), peers.ConstantKernel(2.5)),
    "white": (kernels.White(variance=0.3), peers.WhiteKernel(0.3)),
    "polynomial": (
        kernels.Polynomial(degree=3, scale=0.4, constant=0.9),
        None,
    ),
    "periodic": (kernels.Periodic(period=2.2, length=0.8), None),
    "arc_cosine": (kernels.ArcCosine(weight=1.7, bias=0.4), None),
    "sum of products": (
        2.0 * kernels.RBF(length=LENGTHS) + kernels.Linear(variance=[0.2, 0.5, 1.0]) * 0.7,
        None,
    ),
}
every_kernel = pytest.mark.parametrize("ours, peer", ROWS.values(), ids=ROWS)


def rows(count, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=draw, dtype=torch.float64)


def test_every_kernel_by_name_is_tested():
    assert set(kernels.names()) <= set(ROWS)


@every_kernel
def test_it_is_what_scikit_learn_computes(ours, peer):
    if peer is None:
        pytest.skip("scikit-learn has no such kernel for several inputs")
    x, other = rows(7), rows(4, 1)
    assert_close(ours(x), torch.from_numpy(peer(x.numpy())))
    assert_close(ours(x, other), torch.from_numpy(peer(x.numpy(), other.numpy())))


@every_kernel
def test_it_is_a_covariance_with_its_diagonal(ours, peer):
    x = rows(30)
    matrix = ours(x)
    assert_close(matrix, matrix.mT)
    assert_close(ours.diagonal(x), matrix.diagonal())
    assert float(torch.linalg.eigvalsh(matrix).min()) > -1e-9 * float(matrix.diagonal().max())


@every_kernel
def test_its_gradient_is_the_difference_quotient(ours, peer):
    x, weight = rows(9), rows(81, 2)[:, 0].reshape(9, 9)
    found, h = ours.gradient(x, weight), 1e-6
    assert len(found) == len(ours.names) == len(ours.vector)
    for k, each in enumerate(found):
        shift = torch.zeros_like(ours.vector)
        shift[k] = h
        high, low = (ours.with_vector(ours.vector + s)(x) for s in (shift, -shift))
        assert_close(each, (weight * (high - low)).sum() / (2 * h), atol=1e-7, rtol=1e-6)


def test_the_arc_cosine_is_the_mean_over_rectifiers():
    draw = torch.Generator().manual_seed(0)
    x, count = rows(2), 400_000
    w = torch.randn(3, count, generator=draw, dtype=torch.float64) * (1.7 / 3) ** 0.5
    b = torch.randn(count, generator=draw, dtype=torch.float64) * 0.4**0.5
    hidden = (x @ w + b).clamp(min=0)
    product = hidden[0] * hidden[1]
    error = float(product.std()) / count**0.5
    expected = float(kernels.ArcCosine(weight=1.7, bias=0.4)(x)[0, 1])
    assert abs(float(product.mean()) - expected) < 4 * error


def test_a_length_for_each_input_begins_with_the_one_of_all():
    x = rows(5)
    one = kernels.RBF(length=1.5)
    assert_close(one.with_inputs(3)(x), one(x))
    assert one.with_inputs(3).names == ["length[0]", "length[1]", "length[2]"]
    both = (2.0 * kernels.Matern52()).with_inputs(3)
    assert both.names == ["0.variance", "1.length[0]", "1.length[1]", "1.length[2]"]


def test_as_gamma_goes_to_zero_an_rbf_becomes_constant():
    """exp(-gamma |x - x'|²) with gamma = 1 / (2 length²)."""
    assert_close(kernels.RBF(length=1e9)(rows(4)), torch.ones(4, 4))


def data(count=40):
    x = rows(count)
    return x, x[:, 0].sin() + 0.3 * x[:, 1] + 0.2 * x[:, 2] ** 2 + 0.1 * rows(count, 5)[:, 0]


def test_the_evidence_and_its_maximum_are_scikit_learns():
    x, y = data()
    kernel = 1.3 * kernels.RBF(length=LENGTHS)
    peer = peers.ConstantKernel(1.3) * peers.RBF(LENGTHS) + peers.WhiteKernel(0.2)
    model = GaussianProcessRegressor(peer, optimizer=None, alpha=0.0).fit(x.numpy(), y.numpy())
    value, slope = model.log_marginal_likelihood(peer.theta, eval_gradient=True)
    found = evidence(kernel, 0.2, x, y)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert_close(found.gradient, torch.from_numpy(slope), rtol=1e-8, atol=1e-8)

    best, noise, highest = maximise_evidence(kernel, x, y, noise=0.2, restarts=1)
    fitted = GaussianProcessRegressor(peer, alpha=0.0).fit(x.numpy(), y.numpy())
    assert highest >= fitted.log_marginal_likelihood_value_ - 1e-3
    assert float(evidence(best, noise, x, y).gradient.abs().max()) < 0.05


def test_predictions_are_scikit_learns():
    x, y = data()
    peer = peers.ConstantKernel(1.3) * peers.RBF(LENGTHS)
    model = GaussianProcessRegressor(peer, optimizer=None, alpha=0.2).fit(x.numpy(), y.numpy())
    new = rows(6, 9)
    mean, variance = condition(1.3 * kernels.RBF(length=LENGTHS), 0.2, x, y).predict(new)
    expected, sd = model.predict(new.numpy(), return_std=True)
    assert_close(mean, torch.from_numpy(expected))
    assert_close(variance.sqrt(), torch.from_numpy(sd))


def test_without_noise_it_passes_through_the_outcomes_and_far_away_it_knows_nothing():
    x, y = data(20)
    process = condition(kernels.Matern52(), 1e-12, x, y)
    mean, variance = process.predict(x)
    assert_close(mean, y, atol=1e-6, rtol=0)
    assert float(variance.max()) < 1e-6
    mean, variance = process.predict(x + 1e6)
    assert_close(mean, torch.zeros(20))
    assert_close(variance, torch.ones(20))


def test_a_linear_kernel_is_ridge_regression():
    x, y = data()
    mean, _ = condition(kernels.Linear(variance=2.0), 0.5, x, y).predict(x)
    ridge = torch.linalg.solve(x.mT @ x + 0.5 / 2.0 * torch.eye(3), x.mT @ y)
    assert_close(mean, x @ ridge)


def test_equal_rows_without_noise_get_a_little():
    x = torch.zeros(3, 1)
    mean, _ = condition(kernels.RBF(), 0.0, x, torch.ones(3)).predict(x)
    assert_close(mean, torch.ones(3).double(), atol=1e-3, rtol=0)


def test_what_is_not_a_covariance_is_refused():
    class Minus(kernels.RBF):
        def matrix(self, x, other=None):
            return -super().matrix(x, other)

    with pytest.raises(NumericalError, match="not positive definite"):
        condition(Minus(), 0.0, rows(3), torch.ones(3))


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match=r"length of RBF must be positive, got \[1.0, -1.0\]"):
        kernels.RBF(length=[1.0, -1.0])
    with pytest.raises(ValueError, match="degree of Polynomial must be 1 or more, got 0"):
        kernels.Polynomial(degree=0)
    with pytest.raises(ValueError, match=r"takes rows \(N, D\), got the shape \(3,\)"):
        kernels.RBF()(torch.zeros(3))


def test_a_kernel_shows_its_parameters():
    assert repr(2.0 * kernels.RBF(length=[1.0, 2.0])) == (
        "Constant(variance=2) * RBF(length=[1, 2])"
    )
    assert math.isclose(kernels.create("rbf", length=3.0).log["length"].exp(), 3.0)


def test_the_parts_of_a_sum_have_their_gradients_by_name():
    kernel, x = 2.0 * kernels.RBF(length=LENGTHS) + kernels.White(), rows(6)
    found = kernel.backward(x, torch.ones(6, 6).double())
    assert list(found) == kernel.names
    assert_close(torch.stack(list(found.values())), kernel.gradient(x, torch.ones(6, 6).double()))
