import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn
from torch.testing import assert_close

from ansatz.networks import Linear, LinearGrid
from ansatz.spec import InputSpec


def test_it_starts_as_the_constant_model_without_drawing_anything():
    x, codes = torch.randn(5, 3), torch.ones(5, 1, dtype=torch.long)
    state = torch.get_rng_state()
    net = Linear(InputSpec(features=3, cardinalities=(4,)), 2)
    assert not net(x, codes).any()
    assert torch.equal(torch.get_rng_state(), state)


def test_codes_are_one_hot_columns_of_a_linear_model():
    """Least squares by L-BFGS fits the same values as scikit-learn on the one-hot matrix."""
    x, codes = torch.randn(60, 2), torch.stack([torch.arange(60) % 4, torch.arange(60) % 3], 1)
    y = x[:, 0] - codes[:, 0] ** 2 + 0.5 * codes[:, 1] + torch.randn(60)
    net = Linear(InputSpec(features=2, cardinalities=(3, 2)), 1)
    optimizer = torch.optim.LBFGS(
        net.parameters(),
        max_iter=500,
        tolerance_grad=1e-10,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimizer.zero_grad()
        loss = ((net(x, codes)[:, 0] - y) ** 2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    hot = [torch.nn.functional.one_hot(codes[:, c]).double() for c in (0, 1)]
    design = torch.cat([x, *hot], 1).numpy()
    expected = LinearRegression().fit(design, y.numpy()).predict(design)
    assert_close(net(x, codes)[:, 0].detach(), torch.as_tensor(expected), atol=1e-6, rtol=0)


def test_several_outputs_have_their_own_coefficients_per_level():
    net = Linear(InputSpec(features=1, cardinalities=(2, 5)), 3)
    for p in net.parameters():
        torch.nn.init.normal_(p)
    x, codes = torch.randn(4, 1), torch.tensor([[0, 1], [1, 5], [2, 0], [2, 3]])
    a, b = (table.weight for table in net.levels.tables)
    expected = net.output(x) + a[codes[:, 0]] + b[codes[:, 1]]
    assert_close(net(x, codes), expected)


def test_it_looks_like_an_mlp_without_hidden_layers():
    net = Linear(3, 2)
    assert net.is_plain and len(net.hidden) == 0 and net.dropout == 0 and net.widths == ()
    assert not Linear(InputSpec(features=3, cardinalities=(2,)), 2).is_plain


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
        assert LinearGrid(spec, 2).pooled_size == cells


def test_blocks_of_equal_size_are_averaged():
    network, x = LinearGrid(InputSpec.grid(1, 4, 6), 1, limit=6), torch.randn(2, 1, 4, 6)
    nn.init.ones_(network.output.weight)
    assert_close(network(x), x.reshape(2, 1, 2, 2, 3, 2).mean((3, 5)).sum((1, 2, 3)).unsqueeze(1))
