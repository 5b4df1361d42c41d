import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.layers import Dense, activations
from ansatz.networks import MLP
from ansatz.spec import InputSpec

X = torch.randn(9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def count(net):
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("d, m, k", [(1, 1, 1), (4, 7, 3)])
def test_a_two_layer_net_has_m_d_plus_1_plus_k_m_plus_1_parameters(d, m, k):
    assert count(MLP(d, k, widths=(m,))) == m * (d + 1) + k * (m + 1)


def test_a_two_layer_net_is_a_sum_over_hidden_units():
    net = MLP(4, 1, widths=(6,), activation="tanh", bias=0.2)
    (layer,), a = net.hidden, net.output.weight[0]
    expected = sum(a[j] * torch.tanh(X @ layer.weight[j] + layer.bias[j]) for j in range(6))
    assert_close(net(X)[:, 0], expected + net.output.bias[0])


@pytest.mark.parametrize("name", ["relu", "sigmoid", "gelu"])
def test_it_is_affine_maps_with_activations_between_and_none_at_the_end(name):
    net, phi = MLP(4, 2, widths=(8, 7, 6), activation=name), activations.create(name)
    h = X
    for layer in net.hidden:
        h = phi(h @ layer.weight.T + layer.bias)
    expected = h @ net.output.weight.T + net.output.bias
    assert_close(net(X), expected)
    with torch.no_grad():  # the last map is affine: raw outputs have any sign and size
        net.output.bias.fill_(-1e3)
    assert (net(X) < 0).all()
    assert net.is_plain and net.widths == (8, 7, 6)


def test_permuting_hidden_units_changes_nothing():
    net, order = MLP(4, 2, widths=(8, 8)), torch.randperm(8)
    before = net(X)
    with torch.no_grad():
        first, second = net.hidden
        first.weight.copy_(first.weight[order]), first.bias.copy_(first.bias[order])
        second.weight.copy_(second.weight[:, order])
    assert not torch.equal(order, torch.arange(8))
    assert_close(net(X), before)


def test_a_deep_linear_net_is_one_matrix():
    net = MLP(4, 3, widths=(5, 6, 7), activation="identity", bias=0.1)
    W, b = torch.eye(4), torch.zeros(4)
    for layer in (*net.hidden, net.output):
        W, b = layer.weight @ W, layer.weight @ b + layer.bias
    assert_close(net(X), X @ W.T + b)


def test_no_width_is_the_linear_map():
    net = MLP(4, 3, widths=())
    assert_close(net(X), X @ net.output.weight.T + net.output.bias)
    assert net.is_plain and count(net) == 15


def test_its_features_move_in_training():
    """Random features keep their kernel; a trained hidden layer changes it."""
    net = MLP(4, 1, widths=(32,))

    def kernel():
        h = net.activation(net.hidden[0](X))
        return (h @ h.T).detach()

    before, optimizer = kernel(), torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        ((net(X)[:, 0] - X[:, 0] ** 2) ** 2).mean().backward()
        optimizer.step()
    assert (kernel() - before).norm() > 1e-3 * before.norm()


def same_seed(**options):
    return MLP(4, 2, widths=(16,), generator=torch.Generator().manual_seed(0), **options)


def test_the_output_scale_multiplies_the_first_predictions():
    full = same_seed(output_scale=1.0)(X)
    assert_close(same_seed()(X), 0.1 * full)
    assert not same_seed(output_scale=0.0)(X).any()


def test_dropout_is_on_hidden_units_and_its_mean_is_the_net():
    net = MLP(4, 1, widths=(16,), dropout=0.3)
    x, n = X[:1], 20_000
    draws = net(x.expand(n, 4))[:, 0]
    exact = net.eval()(x)[0, 0]
    assert draws.std() > 0
    assert abs(draws.mean() - exact) < 5 * draws.std() / n**0.5
    assert net.dropout == 0.3 and net.is_plain


def test_an_activation_that_learns_has_its_own_copy_in_each_layer():
    net = MLP(4, 1, widths=(5, 5), activation="prelu")
    slopes = [layer.activation.weight for layer in net.hidden]
    assert slopes[0] is not slopes[1] and not net.is_plain
    learned = MLP(4, 1, widths=(5,), activation="swish", activation_options={"learned": True})
    assert isinstance(learned.hidden[0], Dense)
    fixed = MLP(4, 1, widths=(5,), activation="swish", activation_options={"beta": 0.4})
    assert fixed.is_plain and fixed.activation.beta == 0.4


@pytest.mark.parametrize("norm", ["batch", "layer", "rms", "weight"])
@pytest.mark.parametrize("connection", ["plain", "residual", "dense", "highway"])
def test_norms_and_connections_combine_and_are_not_plain(norm, connection):
    net = MLP(4, 2, widths=(8, 6), norm=norm, connection=connection, dropout=0.2)
    net(X).sum().backward()
    assert not net.is_plain and all(p.grad is not None for p in net.parameters())


def test_plain_layers_with_a_norm_keep_their_order():
    net = MLP(4, 2, widths=(8,), norm="layer", activation="relu")
    h = nn.functional.layer_norm(net.hidden[0].linear(X), (8,)).relu()
    assert_close(net(X), net.output(h))


def test_dense_connections_hand_every_layer_all_that_came_before():
    net = MLP(4, 2, widths=(8, 6), connection="dense")
    assert [layer.in_features for layer in net.hidden] == [4, 12]
    assert net.output.in_features == 4 + 8 + 6


def test_residual_layers_of_zeros_leave_the_projected_input():
    net = MLP(4, 2, widths=(8, 8, 8), connection="residual", init="zeros", activation="sigmoid")
    with torch.no_grad():
        net.output.weight.copy_(torch.eye(2, 8))
    assert_close(net(X), (X @ net.hidden[0].skip.weight.T)[:, :2])


@pytest.mark.parametrize("embedding", ["periodic", "piecewise_linear"])
def test_numeric_embeddings_feed_the_net_and_are_not_plain(embedding):
    net = MLP(4, 2, widths=(8,), numeric_embedding=embedding, numeric_options={"dim": 3})
    net.observe(X)
    assert net.hidden[0].in_features == 12 and not net.is_plain
    h = net.activation(net.hidden[0](net.inputs.numeric(X)))
    assert_close(net(X), net.output(h))
    assert torch.autograd.gradcheck(net, (X[:2] + 0.01).requires_grad_())  # off the edges


def fit(net, x, y, steps=150):
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((net(x)[:, 0] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.parametrize(
    "embedding, options", [("periodic", {"scale": 1.0}), ("piecewise_linear", {"bins": 32})]
)
def test_an_embedding_lets_a_small_net_follow_a_wave_that_plain_columns_miss(embedding, options):
    x = torch.linspace(-1.5, 1.5, 128).unsqueeze(1)
    y = torch.sin(12 * x[:, 0])

    def error(**extra):
        generator = torch.Generator().manual_seed(0)
        net = MLP(1, 1, widths=(16,), activation="tanh", generator=generator, **extra)
        net.observe(x)
        return fit(net, x, y)

    plain = error()
    assert error(numeric_embedding=embedding, numeric_options=options) < 0.2 * plain


def test_categories_enter_beside_the_numbers():
    spec = InputSpec(features=4, cardinalities=(3,))
    net, codes = MLP(spec, 2, widths=(8,), category_dim=5), torch.arange(9).unsqueeze(1) % 4
    h = torch.cat([X, net.inputs.categories(codes)], 1)
    assert_close(net(X, codes), net.output(net.activation(net.hidden[0](h))))
    assert not net.is_plain
    net.observe(X)  # nothing to do, and allowed
