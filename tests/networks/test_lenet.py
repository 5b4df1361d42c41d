import pytest
import torch
from torch import nn
from torch.nn.functional import avg_pool2d, conv2d
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import LeNet5
from ansatz.networks.lenet import C3_TABLE, ScaledTanh, SparseConvolution
from ansatz.spec import InputSpec

DIGITS = InputSpec.grid(1, 28, 28)


def counts(network):
    return [
        sum(p.numel() for p in module.parameters())
        for module in (network.c1, network.s2, network.c3, network.s4, network.c5, network.f6)
    ]


def test_the_modern_variant_has_61_706_parameters():
    network = LeNet5(DIGITS, 10)
    assert counts(network) == [156, 0, 2416, 0, 48_120, 10_164]
    assert sum(p.numel() for p in network.parameters()) == 61_706
    with_margin = LeNet5(InputSpec.grid(1, 32, 32), 10, padding=0)
    assert sum(p.numel() for p in with_margin.parameters()) == 61_706


def test_the_network_of_1998_has_the_published_parameters_per_layer():
    found = counts(LeNet5(DIGITS, 10, classic=True))
    assert found == [156, 12, 1516, 32, 48_120, 10_164]
    assert sum(found) == 60_000


def test_padding_inside_is_padding_before():
    network, x = LeNet5(DIGITS, 3), torch.randn(2, 1, 28, 28)
    outside = LeNet5(InputSpec.grid(1, 32, 32), 3, padding=0)
    outside.load_state_dict(network.state_dict())
    assert_close(network(x), outside(nn.functional.pad(x, (2, 2, 2, 2))))


def test_maps_of_c3_see_the_maps_of_table_1_only():
    assert [len(seen) for seen in C3_TABLE] == [3] * 6 + [4] * 9 + [6]
    layer, x = SparseConvolution(), torch.randn(1, 6, 5, 5, requires_grad=True)
    for k, seen in enumerate(C3_TABLE):
        (gradient,) = torch.autograd.grad(layer(x)[0, k, 0, 0], x)
        reached = gradient.abs().amax((0, 2, 3)).nonzero().flatten().tolist()
        assert reached == sorted(seen)


def test_the_sparse_convolution_is_a_sum_of_kernels_per_connection():
    layer, x = SparseConvolution(), torch.randn(2, 6, 7, 8)
    kernels, expected = iter(layer.weight), []
    for k, seen in enumerate(C3_TABLE):
        maps = [conv2d(x[:, c : c + 1], next(kernels)[None, None]) for c in seen]
        expected.append(torch.stack(maps).sum(0) + layer.bias[k])
    assert_close(layer(x), torch.cat(expected, 1))


def test_the_trained_pool_scales_the_mean_of_each_channel():
    pool, x = LeNet5(DIGITS, 3, classic=True).s2, torch.randn(2, 6, 8, 8)
    nn.init.normal_(pool.weight)
    nn.init.normal_(pool.bias)
    a, b = pool.weight.view(6, 1, 1), pool.bias.view(6, 1, 1)
    assert_close(pool(x), a * avg_pool2d(x, 2) + b)


def test_the_squashing_function_maps_one_to_one():
    z = torch.tensor([-1.0, 0.0, 1.0, 1e9])
    assert_close(ScaledTanh()(z), torch.tensor([-1.0, 0.0, 1.0, 1.7159]), rtol=1e-4, atol=1e-4)


def test_the_classic_one_is_for_images():
    with pytest.raises(UsageError, match="classic lenet5 takes images, got 1 axes"):
        LeNet5(InputSpec.grid(1, 40), 2, classic=True)
