"""The likelihoods of the family: what every network that answers at every cell obeys."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

SMALL = {"depth": 2, "width": 3}
ROWS = {  # name, options, what x looks like
    "unet": ("unet", SMALL, InputSpec.grid(2, 7, 9)),
    "unet plain": ("unet", {**SMALL, "norm": None, "up": "upsample"}, InputSpec.grid(1, 8, 5)),
    "unet signal": ("unet", SMALL, InputSpec.grid(2, 11)),
    "unet volume": ("unet", {"depth": 1, "width": 2}, InputSpec.grid(1, 3, 4, 5)),
    "unet3d": ("unet3d", {"depth": 1, "width": 2}, InputSpec.grid(2, 4, 3, 5)),
    "attention_unet": ("attention_unet", SMALL, InputSpec.grid(2, 7, 9)),
    "attention_unet signal": ("attention_unet", SMALL, InputSpec.grid(1, 13)),
    "fcn": ("fcn", {"depth": 3, "width": 2, "skips": 1}, InputSpec.grid(2, 9, 10)),
    "fcn volume": ("fcn", {"depth": 2, "width": 2, "skips": 1}, InputSpec.grid(1, 4, 5, 3)),
    "sliding_window": (
        "sliding_window",
        {"widths": (3, 4), "kernel": 2, "hidden": 5},
        InputSpec.grid(2, 6, 7),
    ),
    "sliding_window signal": (
        "sliding_window",
        {"widths": (3,), "hidden": 5},
        InputSpec.grid(1, 9),
    ),
    "linear_pixels": ("linear_pixels", {}, InputSpec.grid(2, 6, 7)),
    "linear_pixels volume": ("linear_pixels", {"kernel": 3}, InputSpec.grid(1, 3, 4, 5)),
}
every_network = pytest.mark.parametrize("name, options, spec", ROWS.values(), ids=ROWS)


def build(name, options, spec, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return networks.create(name, inputs=spec, outputs=3, generator=generator, **options)


def grids(spec, n=2):
    return torch.randn(n, spec.features, *spec.size)


@every_network
def test_it_answers_at_every_cell_in_either_precision(name, options, spec):
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        y = build(name, options, spec)(grids(spec))
        assert y.shape == (2, 3, *spec.size) and y.dtype == dtype and y.isfinite().all()


@every_network
def test_the_size_may_change_from_call_to_call(name, options, spec):
    net = build(name, options, spec).eval()
    for more in (1, 2, 5):
        size = [n + more for n in spec.size]
        assert net(torch.randn(1, spec.features, *size)).shape == (1, 3, *size)


@every_network
def test_it_is_a_function_of_its_generator_and_leaves_the_global_one_alone(name, options, spec):
    state = torch.get_rng_state()
    a, b, c = (build(name, options, spec, seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a[key], b[key]) for key in a)
    if name != "linear_pixels":
        assert any(not torch.equal(a[key], c[key]) for key in a)


@every_network
def test_it_runs_on_the_meta_device(name, options, spec):
    with torch.device("meta"):
        net = networks.create(name, inputs=spec, outputs=3, **options)
        assert net(torch.empty(2, spec.features, *spec.size)).shape == (2, 3, *spec.size)
    assert all(t.is_meta for t in (*net.parameters(), *net.buffers()))


@every_network
def test_a_copy_and_a_state_dict_give_the_same_function(name, options, spec):
    net, twin, x = build(name, options, spec), build(name, options, spec, seed=1), grids(spec)
    twin.load_state_dict(net.state_dict(), strict=True)
    assert torch.equal(twin.eval()(x), net.eval()(x))
    assert torch.equal(copy.deepcopy(net)(x), net(x))


@every_network
def test_every_weight_gets_a_gradient(name, options, spec):
    net = build(name, options, spec)
    for parameter in net.parameters():  # away from zero, where some gradients vanish
        nn.init.normal_(parameter, 0, 0.3)
    (net(grids(spec)) ** 2).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


@every_network
def test_examples_do_not_see_each_other_when_evaluating(name, options, spec):
    net, x = build(name, options, spec).eval(), grids(spec, 3)
    assert_close(net(x)[:1], net(x[:1]))


@every_network
def test_layer_groups_hold_every_weight_once_and_end_with_the_heads(name, options, spec):
    net = build(name, options, spec)
    groups = [[p for layer in group for p in layer.parameters()] for group in net.layer_groups()]
    found = [id(p) for group in groups for p in group]
    assert sorted(found) == sorted(id(p) for p in net.parameters())
    heads = {id(p) for head in net.heads for p in getattr(net, head).parameters()}
    assert heads == {id(p) for p in groups[-1]}


@pytest.mark.parametrize("name", ["unet", "attention_unet", "fcn", "sliding_window", "unet3d"])
def test_inputs_of_another_kind_are_refused(name):
    options = {"width": 2} if name != "sliding_window" else {"widths": (2,), "hidden": 2}
    net = networks.create(name, inputs=2, outputs=1, **options)
    axes = "D, H, W" if name == "unet3d" else "H, W"
    with pytest.raises(UsageError, match=rf"{name} needs x of shape \(B, 2, {axes}\), got"):
        net(torch.zeros(1, 3, *(8,) * (3 if name == "unet3d" else 2)))
    with pytest.raises(UsageError, match=f"{name} takes grids"):
        networks.create(name, inputs=InputSpec(structure="graph", features=3), outputs=1)
