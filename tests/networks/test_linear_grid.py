import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.networks import LinearGrid
from ansatz.spec import InputSpec


def test_it_is_a_linear_map_of_all_cells_that_starts_at_zero():
    network, x = LinearGrid(InputSpec.grid(2, 3, 4), 5), torch.randn(7, 2, 3, 4)
    assert not network(x).any()
    nn.init.normal_(network.output.weight)
    assert_close(network(x), torch.einsum("pk,bk->bp", network.output.weight, x.reshape(7, 24)))


@pytest.mark.parametrize(
    "spec, cells",
    [
        (InputSpec.grid(1, 28, 28), (28, 28)),
        (InputSpec.grid(3, 32, 32), (32, 32)),
        (InputSpec.grid(1, 64, 64), (64, 64)),
        (InputSpec.grid(1, 65, 65), (33, 33)),
        (InputSpec.grid(3, 224, 224), (32, 32)),
        (InputSpec.grid(1, 100_000), (4000,)),
        (InputSpec.grid(1, 91, 109, 91), (13, 16, 13)),
        (InputSpec.grid(5000, 8, 8), (1, 1)),
    ],
)
def test_neighbours_are_averaged_until_4096_numbers_are_left(spec, cells):
    with torch.device("meta"):
        assert LinearGrid(spec, 2).cells == cells


def test_blocks_of_equal_size_are_averaged():
    network, x = LinearGrid(InputSpec.grid(1, 4, 6), 1, limit=6), torch.randn(2, 1, 4, 6)
    nn.init.ones_(network.output.weight)
    assert_close(network(x), x.reshape(2, 1, 2, 2, 3, 2).mean((3, 5)).sum((1, 2, 3)).unsqueeze(1))
