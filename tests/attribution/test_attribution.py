"""Attributions obey their axioms and closed forms, and leave the network as they found it."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.attribution import (
    convolutions,
    feature_maps,
    filters,
    grad_cam,
    integrated_gradients,
    last_maps,
    occlusion,
    saliency,
    score,
    smooth_grad,
)
from ansatz.networks import DenseNet121, LeNet5, SlidingWindow
from ansatz.spec import InputSpec

SIZES = {"signal": (12,), "image": (8, 6), "volume": (4, 5, 3)}
every_grid = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def linear(size, channels=2, outputs=3):
    cells = channels * torch.Size(size).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(cells, outputs))


def pooled(dimensions=2, channels=2, outputs=3, inplace=False):
    """Convolutions, a mean over all cells, a linear layer."""
    conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dimensions]
    pool = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}[dimensions]
    return nn.Sequential(
        conv(channels, 5, 3, padding=1),
        nn.Tanh(),
        conv(5, 4, 3, padding=1),
        nn.ReLU(inplace=inplace),
        pool(1),
        nn.Flatten(),
        nn.Linear(4, outputs),
    )


def examples(size, rows=3, channels=2):
    return torch.randn(rows, channels, *size)


@every_grid
def test_the_gradient_of_a_linear_network_is_its_weight(size):
    network, x = linear(size), examples(size)
    for k in range(3):
        weight = network[1].weight[k].detach().reshape(1, *x.shape[1:]).expand_as(x)
        assert_close(saliency(network, x, k), weight)
        assert_close(smooth_grad(network, x, k, samples=3), weight)


@every_grid
@pytest.mark.parametrize("rule", ["gauss", "midpoint"])
def test_integrated_gradients_of_a_linear_network_are_weight_times_way(size, rule):
    network, x, start = linear(size), examples(size), torch.randn(1, 2, *size)
    found = integrated_gradients(network, x, 1, baseline=start, steps=2, rule=rule)
    weight = network[1].weight[1].detach().reshape(1, *x.shape[1:])
    assert_close(found, weight * (x - start))


def test_integrated_gradients_of_a_quadratic_form_are_exact():
    """s = x'Ax/2 from 0: a_i = x_i (Sx)_i / 2 with S the symmetric part of A."""
    A, x = torch.randn(6, 6), torch.randn(4, 6)
    found = integrated_gradients(lambda x: torch.einsum("bi,ij,bj->b", x, A, x) / 2, x, steps=1)
    assert_close(found, x * (x @ (A + A.T) / 2) / 2)


@every_grid
def test_attributions_add_up_to_the_difference_of_the_scores(size):
    network, x, start = pooled(len(size)), examples(size), 0.3
    found = integrated_gradients(network, x, 2, baseline=start, steps=400)
    difference = network(x)[:, 2] - network(torch.full_like(x, start))[:, 2]
    assert_close(found.flatten(1).sum(1), difference.detach(), atol=1e-3, rtol=0)


def test_the_midpoint_rule_converges_at_second_order_and_gauss_at_once():
    network = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(3, 5)
    whole = (network(x) - network(torch.zeros_like(x))).detach()[:, 0]

    def gap(steps, rule):
        found = integrated_gradients(network, x, 0, steps=steps, rule=rule)
        return float((found.sum(1) - whole).abs().max())

    assert gap(20, "midpoint") / gap(40, "midpoint") == pytest.approx(4, rel=0.02)
    assert gap(16, "gauss") < 1e-12


def test_batches_of_any_size_give_the_same_attributions():
    network, x = pooled(), examples((6, 6))
    whole = integrated_gradients(network, x, steps=10)
    assert_close(integrated_gradients(network, x, steps=10, batch_size=4), whole)
    covered = occlusion(network, x, window=3, stride=2)
    assert_close(occlusion(network, x, window=3, stride=2, batch_size=7), covered)


def test_a_row_is_explained_alike_alone_and_in_a_batch():
    network, x = pooled(), examples((6, 6))
    for method in (saliency, integrated_gradients, occlusion, grad_cam):
        assert_close(method(network, x)[1:2], method(network, x[1:2]))


@every_grid
def test_occlusion_of_a_linear_network_is_weight_times_what_is_covered(size):
    network, x = linear(size), examples(size)
    weight = network[1].weight[2].detach().reshape(1, *x.shape[1:])
    assert_close(occlusion(network, x, 2, window=1, fill=0.5), (weight * (x - 0.5)).sum(1))


@pytest.mark.parametrize("window, stride", [(1, 1), (3, 1), (3, 2), (4, 4), ((2, 6), (1, 3))])
def test_occlusion_is_the_mean_fall_over_the_windows_on_a_cell(window, stride):
    network, x = pooled(), examples((8, 6), rows=2)
    wins = (window, window) if isinstance(window, int) else window
    steps = (stride, stride) if isinstance(stride, int) else stride
    starts = [[*range(0, n - w, s), n - w] for n, w, s in zip((8, 6), wins, steps, strict=True)]
    total, count = torch.zeros(2, 8, 6), torch.zeros(8, 6)
    for i in starts[0]:
        for j in starts[1]:
            hidden = x.clone()
            hidden[:, :, i : i + wins[0], j : j + wins[1]] = -1
            fall = (network(x) - network(hidden)).detach()[:, 1]
            total[:, i : i + wins[0], j : j + wins[1]] += fall[:, None, None]
            count[i : i + wins[0], j : j + wins[1]] += 1
    assert_close(occlusion(network, x, 1, window=window, stride=stride, fill=-1.0), total / count)


@every_grid
@pytest.mark.parametrize("inplace", [False, True])
def test_grad_cam_after_a_mean_over_cells_is_the_class_activation_map(size, inplace):
    """s = sum_k w_k mean_i A^k_i, so alpha_k = w_k / Z and L = relu(sum_k w_k A^k) / Z."""
    network, x = pooled(len(size), inplace=inplace), examples(size)
    maps = network[:4](x)
    for k in range(3):
        cam = torch.einsum("k,bk...->b...", network[6].weight[k], maps).relu()
        expected = cam.detach() / torch.Size(size).numel()
        assert_close(grad_cam(network, x, k), expected)
        assert_close(grad_cam(network, x, k, layer="3"), expected)
        assert_close(grad_cam(network, x, k, layer=network[3]), expected)


def test_grad_cam_at_any_layer_is_its_two_equations():
    network, x = pooled(), examples((8, 6))
    A = network[:2](x).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network[2:](A)[:, 1].sum(), A)
    alpha = gradient.mean((2, 3))
    assert_close(
        grad_cam(network, x, 1, layer="1"), torch.einsum("bk,bkhw->bhw", alpha, A.detach()).relu()
    )


def test_grad_cam_is_enlarged_to_the_input():
    network = nn.Sequential(nn.Conv2d(1, 3, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    x = torch.randn(2, 1, 9, 9)
    network(x)
    small = grad_cam(network, x, 0, upsample=False)
    assert small.shape == (2, 4, 4) and grad_cam(network, x, 0).shape == (2, 9, 9)
    assert (grad_cam(network, x, 0) >= 0).all()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.inner, self.norm, self.act = (
            nn.Conv2d(4, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = self.stem(x)
        x = self.act(x + self.norm(self.inner(x)))
        return self.fc(self.pool(x).flatten(1))


class Shared(nn.Module):
    """One activation for all layers, and a last convolution down to a single cell."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 3, 3), nn.Conv2d(3, 8, 4)
        self.act, self.fc = nn.ReLU(), nn.Linear(8, 2)

    def forward(self, x):
        maps = self.act(self.first(x))
        return self.act(self.fc(self.act(self.second(maps)).flatten(1)))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Conv2d(1, 3, 1), nn.Conv2d(1, 5, 1)

    def forward(self, x):
        return torch.cat([self.left(x), self.right(x)], 1)


@pytest.mark.parametrize(
    "network, expected",
    [
        (Residual(), ("act", 0)),
        (Shared(), ("act", 0)),
        (nn.Sequential(Branches(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), ("0", 0)),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1)), ("1", 0)),  # dense
        (nn.Sequential(nn.AvgPool2d(2), nn.Flatten()), ("0", 0)),
    ],
    ids=["residual", "shared activation", "branches", "segmentation", "no convolution"],
)
def test_the_last_maps_are_those_of_the_last_convolution_after_norm_and_activation(
    network, expected
):
    assert last_maps(network.double(), torch.randn(2, 1, 6, 6)) == expected


def test_grad_cam_takes_the_right_call_of_a_layer_that_is_called_often():
    network, x = Shared(), torch.randn(3, 1, 6, 6)
    A = network.act(network.first(x)).detach().requires_grad_()
    head = network.act(network.fc(network.act(network.second(A)).flatten(1)))
    (gradient,) = torch.autograd.grad(head[:, 1].sum(), A)
    L = torch.einsum("bk,bkhw->bhw", gradient.mean((2, 3)), A.detach()).relu()
    assert_close(grad_cam(network, x, 1, upsample=False), L)


def test_a_network_without_maps_is_named():
    with pytest.raises(ValueError, match="no layer of Linear gives maps"):
        last_maps(nn.Linear(3, 2), torch.randn(2, 1, 3, 3))


def test_dense_outputs_are_explained_by_their_sum_over_cells():
    network = nn.Conv2d(1, 3, 3, padding=1, bias=False)
    x = torch.randn(2, 1, 6, 6)
    found = integrated_gradients(network, x, 1, steps=2)
    assert_close(found.sum((1, 2, 3)), network(x)[:, 1].sum((1, 2)).detach())
    centre = saliency(network, x, lambda y: y[:, 2, 3, 3])  # any number that one can write
    assert_close(centre[0, 0, 2:5, 2:5], network.weight[2, 0].detach())
    assert int((centre != 0).sum()) == 2 * 9


def test_scores_by_index_by_row_by_function_and_by_default():
    y = torch.randn(4, 3)
    rows = torch.tensor([0, 2, 1, 1])
    assert_close(score(y, 2), y[:, 2])
    assert_close(score(y, -1), y[:, 2])
    assert_close(score(y, rows), y[torch.arange(4), rows])
    assert_close(score(y), y.max(1).values)
    assert_close(score(y[:, 0]), y[:, 0])
    assert_close(score((y, "heads"), 1), y[:, 1])
    assert_close(score(y, lambda y: y.logsumexp(1)), y.logsumexp(1))


def test_the_default_target_stays_the_one_that_is_largest_at_x():
    network, x = pooled(), examples((6, 6))
    top = network(x).argmax(1)
    for method in (saliency, integrated_gradients, occlusion, grad_cam):
        assert_close(method(network, x), method(network, x, top))


def test_smooth_grad_is_the_gradient_of_the_smoothed_score():
    """s = sum x^3: E 3 (x + e)^2 = 3 x^2 + 3 sd^2, sd = noise times the range of the row."""
    x = torch.tensor([[0.0, 1.0, 2.0]])
    found = smooth_grad(lambda x: (x**3).sum(1), x, noise=0.25, samples=400)
    spread = 0.5
    # var 3 (x + e)^2 = 9 (4 x^2 sd^2 + 2 sd^4)
    error = 3 * (4 * x**2 * spread**2 + 2 * spread**4).sqrt() / 400**0.5
    assert ((found - 3 * x**2 - 3 * spread**2).abs() < 5 * error).all()


def test_feature_maps_are_what_the_layer_gives_before_others_change_it():
    network, x = pooled(inplace=True), examples((6, 6))
    assert_close(feature_maps(network, x), network[0](x).detach())
    assert_close(feature_maps(network, x, "2"), network[:3](x).detach())
    assert float(feature_maps(network, x, "2").min()) < 0  # not yet rectified


def test_filters_are_a_copy_of_the_first_convolutions_weights():
    network = pooled()
    found = filters(network)
    assert_close(found, network[0].weight.detach())
    found.zero_()
    assert network[0].weight.any()
    assert filters(network, "2").shape == (4, 5, 3, 3)
    assert list(convolutions(network)) == ["0", "2"]


METHODS = {
    "saliency": saliency,
    "smooth_grad": smooth_grad,
    "integrated_gradients": integrated_gradients,
    "occlusion": occlusion,
    "grad_cam": grad_cam,
    "feature_maps": feature_maps,
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_network_is_left_as_it_was(method, around):
    network, x = Residual(), torch.randn(2, 1, 6, 6)
    network.stem.eval()
    network.fc.weight.requires_grad_(False)
    network.fc.bias.grad = torch.ones(2)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [module.training for module in network.modules()]
    with around():
        found = method(network, x)
    assert not found.requires_grad
    assert [module.training for module in network.modules()] == modes
    assert torch.equal(network.fc.bias.grad, torch.ones(2)) and network.stem.weight.grad is None
    assert not any(module._forward_hooks for module in network.modules())
    assert x.grad is None and not x.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_frozen_weights_are_no_obstacle():
    network, x = pooled(), examples((6, 6))
    free = grad_cam(network, x), integrated_gradients(network, x, steps=4)
    network.requires_grad_(False)
    assert_close((grad_cam(network, x), integrated_gradients(network, x, steps=4)), free)


def test_an_output_that_ignores_x_has_no_attributions():
    x = torch.randn(2, 1, 4)
    for method in (saliency, integrated_gradients, occlusion):
        assert not method(lambda x: torch.ones(len(x), 2), x).any()


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda f, x: saliency(f, x.to(torch.uint8)), r"floating point, got torch.uint8"),
        (lambda f, x: grad_cam(f, x[0, 0]), r"\(B, C, \*size\), got \(6, 6\)"),
        (lambda f, x: saliency(f, x[:0]), "a batch of examples"),
        (lambda f, x: saliency(f, x, 3), "from 0 to 2, got 3"),
        (lambda f, x: saliency(f, x, torch.tensor([1])), "each of 3 examples"),
        (lambda f, x: saliency(f, x, lambda y: y), r"each of 3 examples, got \(3, 3\)"),
        (lambda f, x: integrated_gradients(f, x, rule="simpson"), "gauss or midpoint"),
        (lambda f, x: integrated_gradients(f, x, steps=0), "1 or more, got 0"),
        (lambda f, x: occlusion(f, x, window=7), r"from 1 to \(6, 6\) pixels, got 7"),
        (lambda f, x: occlusion(f, x, window=2, stride=3), r"at most its window, \(2, 2\), got 3"),
        (lambda f, x: occlusion(f, x, fill=torch.zeros(4)), r"\(3, 2, 6, 6\), got \(4,\)"),
        (
            lambda f, x: integrated_gradients(f, x, baseline=x[:2]),
            r"broadcast to x.*\(2, 2, 6, 6\)",
        ),
        (lambda f, x: smooth_grad(f, x, samples=0), "samples >= 1"),
        (lambda f, x: grad_cam(f, x, layer="fetures"), "no layer 'fetures'"),
        (lambda f, x: grad_cam(f, x, layer="6"), "Choose an earlier one"),
        (lambda f, x: grad_cam(f, x, layer=nn.ReLU()), "ReLU is not a layer"),
        (lambda f, x: filters(f, "6"), "needs a convolution, got Linear"),
        (lambda f, x: feature_maps(nn.Linear(6, 2), x), "has no convolution"),
    ],
)
def test_a_wrong_request_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call(pooled(), examples((6, 6)))


def test_outputs_by_list_or_array_are_those_by_tensor():
    network, x = pooled(), examples((6, 6))
    rows = torch.tensor([2, 0, 1])
    for method in (saliency, smooth_grad, integrated_gradients, occlusion, grad_cam):
        options = {"generator": torch.Generator().manual_seed(0)} if method is smooth_grad else {}
        expected = method(network, x, rows, **options)
        for target in ([2, 0, 1], (2, 0, 1), rows.numpy()):
            if options:
                options["generator"].manual_seed(0)
            assert_close(method(network, x, target, **options), expected)


def test_grad_cam_of_lenet_sees_maps_that_are_activated_after_the_pool():
    network, x = LeNet5(InputSpec.grid(1, 28, 28), 3), torch.randn(2, 1, 28, 28)
    assert last_maps(network, x) == ("activation", 1)
    A = network.s4(network.c3(network.s2(network.c1(x)).relu())).relu().detach().requires_grad_()
    head = network.output(network.f6(network.c5(A.flatten(1)).relu()).relu())
    (gradient,) = torch.autograd.grad(head[:, 1].sum(), A)
    L = torch.einsum("bk,bkhw->bhw", gradient.mean((2, 3)), A.detach()).relu()
    assert_close(grad_cam(network, x, 1, upsample=False), L)


def naive_grad_cam(A, head):
    """L_i = max(0, sum_k A^k_i mean_j ds/dA^k_j), one map after the other."""
    A = A.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(head(A).sum(), A)
    L = [
        sum(g.sum() / g.numel() * a for g, a in zip(one, maps, strict=True))
        for one, maps in zip(gradient, A.detach(), strict=True)
    ]
    return torch.stack(L).clamp(min=0)


def test_grad_cam_of_the_classic_lenet_sees_the_activated_maps_of_c3():
    """Its kernels are of a class of their own, and both they and the pools are activated."""
    network = LeNet5(InputSpec.grid(1, 28, 28), 3, classic=True)
    x, phi = torch.randn(2, 1, 28, 28), network.activation
    assert last_maps(network, x) == ("before_pool", 1)

    def head(A):
        h = phi(network.c5(phi(network.s4(A)).flatten(1)))
        return network.output(phi(network.f6(h)))[:, 1]

    A = phi(network.c3(phi(network.s2(phi(network.c1(x))))))
    assert A.shape == (2, 16, 10, 10)
    assert_close(grad_cam(network, x, 1, upsample=False), naive_grad_cam(A, head))


@every_grid
def test_grad_cam_of_a_sliding_window_sees_the_rectified_hidden_layer(size):
    spec = InputSpec.grid(1, *size)
    network, x = SlidingWindow(spec, 2, widths=(3, 3), last=1, hidden=5), examples(size, 2, 1)
    assert last_maps(network, x) == ("activation", 2)
    with torch.no_grad():
        A = feature_maps(network, x, "hidden").relu()
    found = grad_cam(network, x, 1, upsample=False)
    assert_close(found, naive_grad_cam(A, lambda A: network.output(A)[:, 1].flatten(1).sum(1)))


def test_grad_cam_of_densenet_is_its_class_activation_map():
    network = DenseNet121(1, 3, stem="small", growth=2, blocks=(1, 1)).eval()
    x = torch.randn(2, 1, 8, 8)
    A = network.features(x).relu()
    cam = torch.einsum("k,bkhw->bhw", network.classifier.weight[2], A).relu() / 16
    assert_close(grad_cam(network, x, 2, upsample=False), cam.detach())
