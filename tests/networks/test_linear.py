import torch
from sklearn.linear_model import LinearRegression
from torch.testing import assert_close

from ansatz.networks import Linear
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
