"""Sizes from a stranger's file are refused in one line, before anything is allocated."""

import pytest
import torch

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.networks import MLP, check_size
from ansatz.spec import InputSpec


def create(**options):
    return networks.create("mlp", inputs=3, outputs=1, **options)


@pytest.mark.parametrize(
    "widths, message",
    [
        ([8] * 10_000, "up to 1000 hidden layers, got 10000"),
        ([2**31], r"widths\[0\] of mlp must be a whole number in \[1, 1048576\], got 2147483648"),
        ([8, -1], r"widths\[1\] of mlp .* got -1"),
        ([0], r"widths\[0\] of mlp .* got 0"),
        ([float("nan")], r"got nan"),
        ([64.0], r"got 64.0"),
        ([True], "got True"),
        (["64"], "got '64'"),
        ([[[[1]]]], "got "),
        ([10**100], "got 1000"),
        (64, "must be a list such as"),
        ("64", "must be a list such as"),
        (None, "must be a list such as"),
    ],
)
def test_impossible_widths(widths, message):
    with pytest.raises(UsageError, match=message) as caught:
        create(widths=widths)
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_a_network_beyond_two_gigabytes_is_refused_and_a_smaller_one_is_not():
    with pytest.raises(UsageError, match=r"mlp would take 8796.* GB, above the limit of 2.1 GB"):
        create(widths=[2**20, 2**20])
    with pytest.raises(UsageError, match="above the limit"):
        networks.create("linear", inputs=2**30, outputs=1000)
    with pytest.raises(UsageError, match="above the limit"):
        networks.create("mlp", inputs=InputSpec(cardinalities=(2**31,)), outputs=1)
    with pytest.raises(UsageError, match="above the limit"):
        networks.create("random_features", inputs=10_000, outputs=1, features=2**20)
    with pytest.raises(UsageError, match="above the limit"):
        networks.create("mlp", inputs=10**6, outputs=1, numeric_embedding="piecewise_linear")
    assert create(widths=[1000, 1000]).widths == (1000, 1000)


def test_the_deepest_network_is_built_and_runs():
    net = create(widths=[2] * 1000)
    assert net(torch.ones(1, 3)).shape == (1, 1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"activation": "os.system"}, "unknown activation 'os.system'"),
        ({"activation": "reluu"}, "Did you mean 'relu'"),
        ({"activation_options": {"alpha": 1}, "activation": "relu"}, "activation 'relu'"),
        ({"init": "builtins:eval"}, "unknown initialisation"),
        ({"norm": "bach"}, "norm must be None or one of batch, layer, rms, weight, got 'bach'"),
        ({"connection": "skip"}, "connection of mlp must be one of plain, residual, dense"),
        ({"numeric_embedding": "fourier"}, "unknown numeric embedding 'fourier'"),
        ({"numeric_embedding": "periodic", "numeric_options": {"k": 1}}, "Its arguments:"),
        ({"dropout": 1.5}, r"dropout must be a number in \[0, 1\), got 1.5"),
        ({"dropout": float("nan")}, "got nan"),
        ({"width": 3}, "unexpected keyword argument 'width'. Its arguments: .*widths"),
    ],
)
def test_options_that_do_not_exist(options, message):
    with pytest.raises(UsageError, match=message):
        create(**options)


@pytest.mark.parametrize("outputs", [0, -1, 1.5, float("nan"), 2**31])
def test_impossible_outputs(outputs):
    with pytest.raises(UsageError, match="outputs of mlp must be a whole number"):
        networks.create("mlp", inputs=3, outputs=outputs)


@pytest.mark.parametrize("inputs", [-1, 2.5, float("nan"), InputSpec(features=-3)])
def test_impossible_inputs(inputs):
    with pytest.raises(UsageError, match=r"inputs must be|features of mlp must be"):
        networks.create("mlp", inputs=inputs, outputs=1)


def test_an_unknown_network_is_named():
    with pytest.raises(UsageError, match=r"unknown network 'mpl'\. Did you mean 'mlp'"):
        networks.create("mpl", inputs=3, outputs=1)


def test_the_limit_counts_parameters_and_buffers_in_bytes():
    net = MLP(3, 1, widths=(8,), norm="batch")
    size = sum(t.numel() * t.element_size() for t in net.state_dict().values())
    check_size("mlp", net, limit=size)
    with pytest.raises(UsageError):
        check_size("mlp", net, limit=size - 1)
