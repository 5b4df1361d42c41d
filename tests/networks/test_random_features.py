import math

import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from torch.testing import assert_close

from ansatz.networks import RandomFeatureNetwork
from ansatz.spec import InputSpec

X, NEW = (
    torch.randn(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    for n in (40, 25)
)
Y = torch.sin(2 * X[:, 0]) + X[:, 1] ** 2
RIDGE = 0.1


def ridge_fit(m, seed=0, s=1.5):
    """Least squares with a ridge in closed form, written into the output layer."""
    generator = torch.Generator().manual_seed(seed)
    net = RandomFeatureNetwork(3, 1, features=m, bandwidth=s, generator=generator)
    phi = net.features(X)
    # (Phi^T Phi + r I)^-1 Phi^T = Phi^T (Phi Phi^T + r I)^-1, the smaller system.
    a = phi.T @ torch.linalg.solve(phi @ phi.T + RIDGE * torch.eye(len(X)), Y)
    with torch.no_grad():
        net.output.weight.copy_(a.unsqueeze(0))
    return net


def test_only_the_output_layer_is_trained_and_the_rest_is_saved():
    net = RandomFeatureNetwork(InputSpec(features=3, cardinalities=(4,)), 2, features=50)
    trained = {key for key, p in net.named_parameters() if p.requires_grad}
    assert trained == {"output.weight", "output.bias"}
    assert {"features.weight", "features.phase"} <= set(net.state_dict())


def test_squared_loss_is_convex_in_what_is_trained():
    net = RandomFeatureNetwork(3, 1, features=20)

    def loss(a):
        out = torch.func.functional_call(net, {"output.weight": a}, (X,))
        return ((out[:, 0] - Y) ** 2).sum()

    hessian = torch.autograd.functional.hessian(loss, torch.randn(1, 20)).reshape(20, 20)
    assert torch.linalg.eigvalsh(hessian).min() > -1e-9
    assert_close(hessian, 2 * net.features(X).T @ net.features(X))  # the same everywhere


def test_its_ridge_fit_tends_to_kernel_ridge_at_the_root_m_rate():
    oracle = KernelRidge(alpha=RIDGE, kernel="rbf", gamma=1 / (2 * 1.5**2)).fit(X, Y)
    expected = torch.as_tensor(oracle.predict(NEW))

    def error(m, draws=20):
        gaps = [(ridge_fit(m, seed)(NEW)[:, 0] - expected).detach() for seed in range(draws)]
        return torch.stack(gaps).square().mean().sqrt().item()

    small, large = error(256), error(4096)
    assert large < 0.1 * Y.std()
    # 20 draws of 25 correlated errors: a relative spread of at most 1/sqrt(2 * 20) on each.
    assert small / large == pytest.approx(4, rel=5 * math.sqrt(2) / math.sqrt(40) / 2)
