import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec
from ansatz.structures import Grid, registry


@pytest.mark.parametrize("size", [(20,), (12, 13), (5, 6, 7)])
def test_the_specification_is_channels_and_cells(size):
    assert Grid().spec(torch.zeros(4, 2, *size)) == InputSpec.grid(2, *size)
    assert Grid().spec((torch.zeros(4, 2, *size),)) == InputSpec.grid(2, *size)


def test_collating_stacks_examples():
    rows = [torch.randn(3, 4, 4) for _ in range(5)]
    (x,) = Grid().collate(rows)
    assert_close(x, torch.stack(rows))


@pytest.mark.parametrize("masks", [False, True])
def test_its_networks_exist_and_answer_as_the_outcome_needs(masks):
    grid = Grid(masks=masks)
    for name, options in ((grid.network, {"width": 4}), (grid.linear_network, {})):
        network = networks.create(name, InputSpec.grid(1, 16, 16), 3, **options)
        answer = network(torch.zeros(2, 1, 16, 16))
        assert answer.shape == ((2, 3, 16, 16) if masks else (2, 3))


def test_the_linear_network_is_linear():
    """f(a x + b y) - f(0) = a (f(x) - f(0)) + b (f(y) - f(0))."""
    x, y = torch.randn(2, 4, 1, 9, 9)
    for masks in (False, True):
        network = networks.create(Grid(masks=masks).linear_network, InputSpec.grid(1, 9, 9), 2)
        with torch.no_grad():
            for parameter in network.double().eval().parameters():
                parameter.normal_()
        zero = network(torch.zeros_like(x))
        sides = network(2 * x - 3 * y) - zero, 2 * (network(x) - zero) - 3 * (network(y) - zero)
        assert_close(*sides)


def test_it_is_found_by_its_name():
    assert registry.get("grid") is not None and Grid.name == "grid"


def test_what_is_no_grid_is_told():
    with pytest.raises(UsageError, match=r"\(B, C, H, W\).*got \(3, 4\)"):
        Grid().spec(torch.zeros(3, 4))
    with pytest.raises(UsageError, match=r"got str"):
        Grid().spec(("image",))
    with pytest.raises(UsageError, match=r"at least one"):
        Grid().collate([])
