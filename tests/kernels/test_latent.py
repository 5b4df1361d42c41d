import math

import pytest
import torch
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as peers
from torch.nn.functional import log_softmax, softplus
from torch.testing import assert_close

from ansatz import kernels
from ansatz.kernels import approximate, approximate_evidence, condition, evidence
from ansatz.kernels.latent import ClassCurvature, DiagonalCurvature


def rows(count=25, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(count, 2, generator=draw, dtype=torch.float64)


def test_bernoulli_is_scikit_learns_approximation():
    x = rows()
    y = (x[:, 0] + 0.5 * rows(25, 1)[:, 0] > 0).double()
    kernel = 2.0 * kernels.RBF(length=0.8)
    peer = GaussianProcessClassifier(
        peers.ConstantKernel(2.0) * peers.RBF(0.8), optimizer=None, max_iter_predict=500
    ).fit(x.numpy(), y.numpy())
    value, slope = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    found, process = approximate_evidence(kernel, x, lambda f: softplus(-(2 * y - 1) * f[:, 0]), 1)
    assert found.value == pytest.approx(value, abs=1e-8)
    assert_close(found.gradient, torch.from_numpy(slope), rtol=1e-5, atol=1e-6)
    mode = torch.from_numpy(peer.base_estimator_.f_cached)
    assert_close(process.mode[:, 0], mode, atol=1e-6, rtol=1e-6)


def test_a_normal_likelihood_is_exact():
    x = rows()
    y = x[:, 0].sin() + 0.1 * x[:, 1]
    noise = 0.3

    def loss(f):
        return 0.5 * (y - f[:, 0]) ** 2 / noise + 0.5 * math.log(2 * math.pi * noise)

    kernel = 1.3 * kernels.Matern52(length=[0.7, 1.4])
    exact = evidence(kernel, noise, x, y)
    found, process = approximate_evidence(kernel, x, loss, 1)
    assert found.value == pytest.approx(exact.value, rel=1e-10)
    assert_close(found.gradient, exact.gradient[:-1], rtol=1e-7, atol=1e-9)
    mean, covariance = process.predict(rows(6, 3))
    expected, variance = condition(kernel, noise, x, y).predict(rows(6, 3))
    assert_close(mean[:, 0], expected)
    assert_close(covariance[:, 0, 0], variance)


def test_the_curvature_of_classes_is_the_dense_formula():
    x, weight = rows(6), torch.rand(6, dtype=torch.float64) + 0.5
    K = kernels.RBF()(x)
    probs = torch.randn(6, 3, dtype=torch.float64).softmax(1)
    W = torch.zeros(3, 6, 3, 6, dtype=torch.float64)
    for i in range(6):
        W[:, i, :, i] = weight[i] * (probs[i].diag() - torch.outer(probs[i], probs[i]))
    W, block = W.reshape(18, 18), torch.block_diag(K, K, K)
    found = ClassCurvature(K, probs, weight)
    whole = torch.eye(18, dtype=torch.float64) + block @ W
    assert found.log_det == pytest.approx(float(whole.logdet()), rel=1e-8)
    inverse = W @ torch.linalg.inv(whole)  # (W^-1 + K)^-1, W being singular
    v = torch.randn(6, 3, dtype=torch.float64)
    assert_close(found.solve(v).T.reshape(-1), inverse @ v.T.reshape(-1))
    blocks = inverse.reshape(3, 6, 3, 6)
    assert_close(found.trace(), sum(blocks[c, :, c] for c in range(3)))
    posterior = (block - block @ inverse @ block).reshape(3, 6, 3, 6)
    assert_close(found.blocks(K), torch.stack([posterior[:, i, :, i] for i in range(6)]))


@pytest.mark.parametrize("kind", ["counts", "gamma", "classes", "weighted classes"])
def test_the_gradient_of_the_evidence_is_the_difference_quotient(kind):
    x = rows(12)
    kernel = 1.5 * kernels.RBF(length=[0.8, 1.2])
    parameters, others, functions = [], {}, 1
    if kind == "counts":
        y = torch.arange(12) % 4

        def loss(f):
            return f[:, 0].exp() - y * f[:, 0] + torch.lgamma(y + 1.0)

    elif kind == "gamma":
        y = x[:, 0].exp() + 0.1
        log_shape = torch.tensor([0.4], dtype=torch.float64, requires_grad=True)
        parameters = [log_shape]

        def loss(f):
            a = log_shape.exp()
            own = a * (y * (-f[:, 0]).exp() + f[:, 0] - y.log() - log_shape)
            return own + y.log() + torch.lgamma(a)

    else:
        functions, y = 3, torch.arange(12) % 3
        shift = torch.tensor([0.3, -0.2, 0.0], dtype=torch.float64)
        weight = torch.ones(12, dtype=torch.float64)
        weight = weight if kind == "classes" else weight + torch.rand(12, dtype=torch.float64)
        others = {"shift": shift, "weight": weight}

        def loss(f):
            return -weight * log_softmax(shift + f, 1)[torch.arange(12), y]

    def value(vector):
        made = kernel.with_vector(vector[:3])
        if parameters:
            with torch.no_grad():
                parameters[0].copy_(vector[3:])
        return approximate_evidence(made, x, loss, functions, parameters=parameters, **others)[0]

    begin = torch.cat([kernel.vector, *(p.detach() for p in parameters)])
    found, h = value(begin).gradient, 1e-4
    for k, each in enumerate(found):
        shift_by = torch.zeros_like(begin)
        shift_by[k] = h
        quotient = (value(begin + shift_by).value - value(begin - shift_by).value) / (2 * h)
        assert_close(float(each), quotient, rtol=1e-5, atol=1e-6)


def test_far_from_all_rows_nothing_is_known():
    x, y = rows(10), torch.arange(10) % 3
    found = approximate(kernels.RBF(), x, lambda f: -log_softmax(f, 1)[torch.arange(10), y], 3)
    mean, covariance = found.predict(torch.full((1, 2), 1e3))
    assert_close(mean, torch.zeros(1, 3))
    assert_close(covariance[0], torch.eye(3))


def test_the_diagonal_curvature_without_slope_is_the_prior():
    K = kernels.RBF()(rows(5))
    found = DiagonalCurvature(K, torch.zeros(5))
    assert found.log_det == 0.0
    assert_close(found.blocks(K)[:, 0, 0], K.diagonal())
