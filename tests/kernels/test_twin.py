import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.kernels import RBF, ArcCosine, empirical_ntk, linearize, ntk_vector_product, twin
from ansatz.kernels.moments import moments_of
from ansatz.layers import Dense, Erf, Residual, Sine, activations, initialize
from ansatz.networks import MLP, Linear, RandomFeatureNetwork
from ansatz.spec import InputSpec

ACTIVATIONS = {
    "relu": nn.ReLU(),
    "leaky_relu": nn.LeakyReLU(0.3),
    "erf": Erf(),
    "gelu": nn.GELU(),
    "sin": Sine(1.3),
    "tanh": nn.Tanh(),
    "silu": nn.SiLU(),
    "softplus": nn.Softplus(),
    "identity": nn.Identity(),
}


def rows(*shape, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


def integral(function, a, b, c):
    """E[f(u, v)] by the trapezoidal rule on a fine grid, u and v independent but for c."""
    z = torch.arange(-8, 8, 0.02, dtype=torch.float64)
    density = 0.02 * (-0.5 * z**2).exp() / math.sqrt(2 * math.pi)
    u = math.sqrt(a) * z[:, None]
    v = c / math.sqrt(a) * z[:, None] + math.sqrt(b - c**2 / a) * z
    return float(density @ function(u, v) @ density)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("a, b, c", [(1.0, 1.0, 0.3), (0.7, 2.2, -0.9)])
def test_moments_are_integrals(name, a, b, c):
    phi = ACTIVATIONS[name]
    moments = moments_of(phi)
    numbers = [torch.tensor(v, dtype=torch.float64) for v in (a, b, c)]
    product, dot = moments.product(*numbers, True)
    kinked = name in ("relu", "leaky_relu")
    tolerance = 1e-4 if kinked else 1e-9  # of the rule in this test
    expected = integral(lambda u, v: phi(u) * phi(v), a, b, c)
    assert float(product) == pytest.approx(expected, abs=tolerance)

    def slope(u):
        u = u.clone().requires_grad_()
        return torch.autograd.grad(phi(u).sum(), u)[0]

    expected = integral(lambda u, v: slope(u) * slope(v), a, b, c)
    assert float(dot) == pytest.approx(expected, abs=4e-3 if kinked else 1e-7)
    assert float(moments.mean(numbers[0])) == pytest.approx(
        integral(lambda u, v: phi(u) + 0 * v, a, b, c), abs=tolerance
    )
    assert float(moments.square(numbers[0])) == pytest.approx(
        integral(lambda u, v: phi(u) ** 2 + 0 * v, a, b, c), abs=tolerance
    )


def test_what_is_not_a_function_of_single_numbers_has_no_moments():
    assert moments_of(nn.Softmax(-1)) is None
    assert moments_of(nn.PReLU()) is None
    assert moments_of(nn.MaxPool1d(2)) is None
    assert moments_of(activations.create("mish")) is not None


def test_one_hidden_layer_of_rectifiers_is_the_arc_cosine_kernel():
    x, z = rows(5, 3), rows(4, 3, seed=1)
    found = twin(MLP(3, 1, widths=(8,), activation="relu", output_scale=1.0))
    assert_close(found.nngp(x, z), 2 * ArcCosine(weight=2.0, bias=1e-300)(x, z))
    assert_close(found.variance(x), found.nngp(x).diagonal())


def test_a_linear_network_is_ridge_regression_and_random_features_their_kernel():
    x, z = rows(5, 3), rows(4, 3, seed=1)
    assert_close(twin(Linear(3, 1)).nngp(x, z), x @ z.mT + 1)
    assert_close(twin(Linear(3, 1)).ntk(x, z), x @ z.mT + 1)
    network = RandomFeatureNetwork(3, 1, features=10, bandwidth=1.7)
    assert_close(twin(network).ntk(x, z), RBF(length=1.7)(x, z) + 1)
    network = RandomFeatureNetwork(3, 1, features=10, kind="relu", bandwidth=1.7)
    draw = torch.Generator().manual_seed(0)
    wide = RandomFeatureNetwork(
        3, 1, features=200_000, kind="relu", bandwidth=1.7, generator=draw
    ).double()
    found = wide.features(x) @ wide.features(z).mT + 1
    assert_close(twin(network).nngp(x, z), found, atol=0.03, rtol=0.02)


def depth_two(**options):
    return MLP(3, 1, widths=(128, 128), output_scale=1.0, **options).double()


CASES = {
    "mlp": (lambda: depth_two(activation="relu"), (3,)),
    "residual of softplus": (
        lambda: depth_two(activation="softplus", connection="residual"),
        (3,),
    ),
    "torch's own start": (
        lambda: nn.Sequential(nn.Linear(3, 128), nn.Tanh(), nn.Linear(128, 1)).double(),
        (3,),
    ),
    "dense and residual": (
        lambda: nn.Sequential(
            Dense(3, 128, activation="gelu"),
            Residual(128, activation="gelu"),
            initialize(nn.Linear(128, 1), "lecun_normal"),
        ).double(),
        (3,),
    ),
    "convolutions, flattened": (
        lambda: nn.Sequential(
            initialize(nn.Conv2d(2, 64, 3, padding=1), "he_normal"),
            nn.ReLU(),
            initialize(nn.Conv2d(64, 64, 3, stride=2), "he_uniform"),
            nn.ReLU(),
            nn.Flatten(),
            initialize(nn.Linear(64 * 4, 1), "lecun_normal"),
        ).double(),
        (2, 5, 5),
    ),
    "convolutions, pooled": (
        lambda: nn.Sequential(
            initialize(nn.Conv1d(2, 64, 3, padding=1), "he_normal"),
            nn.ReLU(),
            nn.AvgPool1d(2),
            initialize(nn.Conv1d(64, 64, 3, padding=2, dilation=2), "he_normal"),
            nn.Tanh(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            initialize(nn.Linear(64, 1), "lecun_normal"),
        ).double(),
        (2, 6),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wide_networks_have_the_kernels_of_their_twin(name):
    build, shape = CASES[name]
    x = rows(3, *shape)
    torch.manual_seed(0)
    outputs, tangents = [], []
    for k in range(120):
        network = build()
        with torch.no_grad():
            outputs.append(network(x)[:, 0])
        if k < 5:
            tangents.append(empirical_ntk(network, x, parametrization="ntk"))
    found = twin(network)
    nngp, ntk = found.both(x)
    samples = torch.stack(outputs)
    products = samples[:, :, None] * samples[:, None]
    error = products.std(0) / 120**0.5
    assert float(((products.mean(0) - nngp) / error).abs().max()) < 4.5
    deviation = torch.stack(tangents).std(0) / 5**0.5
    gap = (torch.stack(tangents).mean(0) - ntk).abs()
    assert bool((gap < 5 * deviation + 0.06 * float(ntk.abs().max())).all())


def test_blocks_are_the_whole(monkeypatch):
    x, z = rows(7, 3), rows(5, 3, seed=1)
    found = twin(depth_two(activation="silu"))
    whole = found.both(x), found.both(x, z)
    monkeypatch.setattr("ansatz.kernels.infinite_width.AT_ONCE", 4)
    for (a, b), (c, d) in zip(whole, (found.both(x), found.both(x, z)), strict=True):
        assert_close(a, c)
        assert_close(b, d)


def test_levels_of_categories_are_vectors_of_their_own():
    spec = InputSpec(features=1, cardinalities=(3,))
    network = MLP(spec, 1, widths=(8,), activation="identity", category_dim=4, output_scale=1.0)
    x, codes = torch.tensor([[1.0], [1.0], [2.0]]), torch.tensor([[1], [2], [1]])
    # (1 number + 4 of the level, which have variance 1/4) / 5, then 2 * 2
    expected = torch.tensor([[2.0, 1.0, 3.0], [1.0, 2.0, 2.0], [3.0, 2.0, 5.0]]) / 5 * 4
    assert_close(twin(network).nngp((x, codes)), expected.double())


@pytest.mark.parametrize("layers", [None, ["output"]])
def test_the_empirical_kernel_is_the_product_of_jacobians_in_any_blocks(layers):
    torch.manual_seed(1)
    network = MLP(3, 2, widths=(5,), activation="tanh").double()
    x, z = rows(7, 3), rows(4, 3, seed=1)
    own = network.output if layers else network

    def jacobian(at):
        return torch.stack(
            [
                torch.stack(
                    [
                        torch.cat([g.reshape(-1) for g in torch.autograd.grad(
                            network(row[None])[0, p], list(own.parameters()))])
                        for p in range(2)
                    ]
                )
                for row in at
            ]
        )  # fmt: skip

    expected = torch.einsum("npd,mqd->nmpq", jacobian(x), jacobian(z))
    found = empirical_ntk(network, x, z, layers=layers, outputs="all", block=3)
    assert_close(found, expected)
    assert_close(
        empirical_ntk(network, x, z, layers=layers),
        expected.diagonal(dim1=2, dim2=3).mean(-1),
    )
    if layers is None:
        v = rows(4, 2, seed=2)
        product = torch.einsum("nmpq,mq->np", expected, v)
        assert_close(ntk_vector_product(network, x, v, z), product)


def test_a_linearised_network_has_the_tangent_kernel_of_the_network():
    torch.manual_seed(1)
    network = MLP(3, 1, widths=(6,), activation="tanh").double()
    x = rows(5, 3)
    line = linearize(network)
    assert_close(line(x), network(x))
    gradients = [
        torch.cat(
            [
                g.reshape(-1)
                for g in torch.autograd.grad(each, list(line.parameters()), retain_graph=True)
            ]
        )
        for each in line(x)[:, 0]
    ]
    J = torch.stack(gradients)
    assert_close(J @ J.mT, empirical_ntk(network, x))
    h = 1e-5
    with torch.no_grad():
        for delta, p in zip(line.delta, network.parameters(), strict=True):
            step = torch.randn_like(p)
            delta.add_(h * step)
            p.add_(h * step)
    assert_close(line(x), network(x), atol=1e-8, rtol=0)


REFUSED = {
    r"layer 1 \(BatchNorm1d\)": nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)),
    r"layer 0.1 \(MaxPool2d\)": nn.Sequential(nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2))),
    "LSTM": nn.LSTM(2, 3),
    "biases start at 0.5": MLP(2, 1, widths=(3,), bias=0.5),
    "embedding of numbers": MLP(2, 1, numeric_embedding="periodic"),
    "a normalisation has none": MLP(2, 1, norm="layer"),
    r"hidden.0 \(Highway\)|Highway": MLP(2, 1, connection="highway"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_layer_without_a_twin_is_named(words):
    with pytest.raises(UsageError, match=words):
        twin(REFUSED[words])


def test_a_wrong_layer_is_named():
    with pytest.raises(UsageError, match=r"no layer 'hidden\.9'"):
        empirical_ntk(MLP(2, 1), rows(2, 2).float(), layers=["hidden.9"])


FIXTURES = Path(__file__).parents[1] / "fixtures" / "neural-tangents.json"


@pytest.mark.parametrize("name", json.loads(FIXTURES.read_text()))
def test_kernels_are_those_of_neural_tangents(name):
    case = json.loads(FIXTURES.read_text())[name]
    x, z = (torch.tensor(np.array(case[key])) for key in ("x", "z"))
    layers = {
        "relu": nn.ReLU, "erf": Erf, "gelu": nn.GELU, "sin": Sine,
        "leaky_relu": lambda: nn.LeakyReLU(0.2),
    }  # fmt: skip
    kind, _, activation = name.partition(" ")
    act = layers[activation]
    lecun = {"name": "lecun_normal", "gain": 1.5}
    if kind == "dense":
        parts = [nn.Linear(3, 4), act(), nn.Linear(4, 4), act(), nn.Linear(4, 1)]
    elif kind == "flat":
        parts = [nn.Conv2d(2, 4, 3, padding=1), act(), nn.Conv2d(4, 4, 3, padding=1), act(),
                 nn.Flatten(), nn.Linear(4 * 16, 1)]  # fmt: skip
    else:
        parts = [nn.Conv2d(2, 4, 3, padding=1), act(), nn.Conv2d(4, 4, 3, padding=1), act(),
                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1)]  # fmt: skip
    network = initialize(nn.Sequential(*parts), **lecun)
    found = twin(network).both(x, z)
    for ours, theirs in zip(found, (case["nngp"], case["ntk"]), strict=True):
        assert_close(ours, torch.tensor(theirs, dtype=torch.float64), rtol=1e-7, atol=1e-9)
