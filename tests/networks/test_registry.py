"""The likelihoods of the family: what every network on tables by name obeys."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

TABLE = InputSpec(features=4, cardinalities=(3, 7))
ROWS = {  # name, options
    "linear": ("linear", {}),
    "mlp": ("mlp", {"widths": (8, 6)}),
    "mlp linear": ("mlp", {"widths": ()}),
    "mlp residual": ("mlp", {"widths": (8, 8), "connection": "residual", "norm": "batch"}),
    "mlp dense": ("mlp", {"widths": (8, 6), "connection": "dense", "norm": "layer"}),
    "mlp highway": ("mlp", {"widths": (8, 6), "connection": "highway", "norm": "weight"}),
    "mlp prelu": ("mlp", {"widths": (8, 6), "activation": "prelu", "dropout": 0.1}),
    "mlp periodic": ("mlp", {"widths": (8,), "numeric_embedding": "periodic"}),
    "mlp piecewise": ("mlp", {"widths": (8,), "numeric_embedding": "piecewise_linear"}),
    "random_features": ("random_features", {"features": 16}),
    "random_features relu": ("random_features", {"features": 16, "kind": "relu"}),
}
every_network = pytest.mark.parametrize("name, options", ROWS.values(), ids=ROWS)


def build(name, options, inputs=TABLE, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return networks.create(name, inputs=inputs, outputs=3, generator=generator, **options)


def rows(n=5):
    return torch.randn(n, 4), torch.stack([torch.arange(n) % 4, torch.arange(n) % 8], 1)


@every_network
def test_it_maps_rows_to_raw_outputs_in_either_precision(name, options):
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        x, codes = rows()
        y = build(name, options)(x, codes)
        assert y.shape == (5, 3) and y.dtype == dtype and y.isfinite().all()
        assert build(name, options, inputs=4)(x).shape == (5, 3)


@every_network
def test_it_is_a_function_of_its_generator_and_leaves_the_global_one_alone(name, options):
    state = torch.get_rng_state()
    a, b, c = build(name, options), build(name, options), build(name, options, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    first, second, third = (net.state_dict() for net in (a, b, c))
    assert all(torch.equal(first[key], second[key]) for key in first)
    if name != "linear":
        assert any(not torch.equal(first[key], third[key]) for key in first)


@every_network
def test_it_follows_torchs_seed_without_a_generator(name, options):
    nets = []
    for _ in range(2):
        torch.manual_seed(5)
        nets.append(networks.create(name, inputs=TABLE, outputs=3, **options).state_dict())
    assert all(torch.equal(nets[0][key], nets[1][key]) for key in nets[0])


@every_network
def test_it_runs_on_the_meta_device(name, options):
    with torch.device("meta"):
        net = networks.create(name, inputs=TABLE, outputs=3, **options)
        x, codes = torch.empty(5, 4), torch.zeros(5, 2, dtype=torch.long)
        assert net(x, codes).shape == (5, 3)
    assert all(t.is_meta for t in (*net.parameters(), *net.buffers()))
    moved = build(name, options).to("meta")
    assert moved(x, codes).is_meta


@every_network
def test_a_copy_and_a_state_dict_give_the_same_function(name, options):
    net, (x, codes) = build(name, options).eval(), rows()
    twin = build(name, options, seed=1).eval()
    twin.load_state_dict(net.state_dict(), strict=True)
    assert torch.equal(twin(x, codes), net(x, codes))
    assert torch.equal(copy.deepcopy(net)(x, codes), net(x, codes))


@every_network
def test_no_two_entries_of_its_state_share_memory(name, options):
    """Safetensors refuses shared tensors."""
    state = build(name, options).state_dict()
    places = [t.data_ptr() for t in state.values() if t.numel()]
    assert len(set(places)) == len(places)


@every_network
def test_every_trained_weight_gets_a_gradient(name, options):
    net, (x, codes) = build(name, options), rows(40)
    for parameter in net.parameters():  # away from zero, where some gradients vanish
        if parameter.requires_grad:
            nn.init.normal_(parameter, 0, 0.3)
    (net(x, codes) ** 2).sum().backward()
    missing = [key for key, p in net.named_parameters() if p.requires_grad and p.grad is None]
    assert not missing
    assert all(p.grad.isfinite().all() for p in net.parameters() if p.requires_grad)


@every_network
def test_rows_do_not_see_each_other_when_evaluating(name, options):
    net, (x, codes) = build(name, options).eval(), rows()
    assert_close(net(x, codes)[:2], net(x[:2], codes[:2]))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # weight norm under vmap
@every_network
def test_members_of_an_ensemble_batch_under_vmap(name, options):
    nets, (x, codes) = [build(name, options, seed=i).eval() for i in range(3)], rows()
    parameters, buffers = torch.func.stack_module_state(nets)

    def one(p, b):
        return torch.func.functional_call(nets[0], (p, b), (x, codes))

    stacked = torch.func.vmap(one)(parameters, buffers)
    assert_close(stacked, torch.stack([net(x, codes) for net in nets]))


def test_columns_of_codes_only_are_enough():
    for name, options in ROWS.values():
        net = build(name, options, inputs=InputSpec(features=0, cardinalities=(3, 7)))
        assert net(torch.empty(5, 0), rows()[1]).shape == (5, 3)


@pytest.mark.parametrize("name", ["linear", "mlp", "random_features"])
def test_rows_of_other_columns_are_refused(name):
    plain, table = build(name, {}, inputs=4), build(name, {})
    x, codes = rows()
    with pytest.raises(UsageError, match=rf"{name} needs x of shape \(B, 4\), got \(5, 3\)"):
        plain(x[:, :3])
    with pytest.raises(UsageError, match=rf"{name} needs x of shape \(B, 4\), got \(4,\)"):
        plain(x[0])
    with pytest.raises(UsageError, match=f"{name} was built for no codes"):
        plain(x, codes)
    with pytest.raises(UsageError, match=f"{name} was built for codes as a second input"):
        table(x)
    with pytest.raises(UsageError, match=f"{name} takes vectors, got inputs of structure 'graph'"):
        networks.create(name, inputs=InputSpec(structure="graph", features=3), outputs=1)


def test_the_pixels_of_a_grid_are_columns_to_an_mlp():
    grid = networks.create("mlp", inputs=InputSpec.grid(2, 3, 4), outputs=2, widths=(5,))
    flat = networks.create("mlp", inputs=24, outputs=2, widths=(5,))
    flat.load_state_dict(grid.state_dict())
    x = torch.randn(6, 2, 3, 4)
    assert_close(grid(x), flat(x.flatten(1)))


def test_a_network_of_the_users_own_is_built_by_its_name():
    def tiny(inputs, outputs, *, generator=None):
        return nn.Linear(inputs.features, outputs)

    networks.register("tiny_of_a_test", tiny)
    try:
        assert networks.create("tiny_of_a_test", inputs=2, outputs=3)(torch.ones(1, 2)).shape
        with pytest.raises(UsageError, match="is taken"):
            networks.register("mlp", tiny)
    finally:
        del networks.registry._members["tiny_of_a_test"]


def test_a_shape_is_an_input():
    generator = torch.Generator().manual_seed(0)
    network = networks.create("small_resnet", inputs=(3, 16, 16), outputs=2, generator=generator)
    assert network(torch.randn(2, 3, 16, 16)).shape == (2, 2)
    assert (
        networks.summary(network, (3, 16, 16)).parameters
        == networks.summary(network, InputSpec.grid(3, 16, 16)).parameters
    )
    assert InputSpec.of((5,)) == InputSpec.of(5)
    for wrong in ((), (3, 0), (1, 2, 3, 4, 5), (3, 2.5), "abc", None):
        with pytest.raises(UsageError):
            InputSpec.of(wrong)
