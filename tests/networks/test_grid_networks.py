"""The likelihoods of the family: what every network on grids by name obeys."""

import copy

import pytest
import torch
from tests.networks.test_registry import ROWS as TABLES
from torch import nn
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

ROWS = {  # name, options, what x looks like
    "alexnet": ("alexnet", {"width": 4, "hidden": 8}, InputSpec.grid(2, 63, 65)),
    "alexnet original": (
        "alexnet",
        {"original": True, "width": 6, "hidden": 8},
        InputSpec.grid(1, 67, 67),
    ),
    "alexnet signal": ("alexnet", {"width": 4, "hidden": 8}, InputSpec.grid(1, 70)),
    "densenet121": (
        "densenet121",
        {"growth": 2, "blocks": (2, 1, 1, 1), "dropout": 0.1},
        InputSpec.grid(1, 29, 30),
    ),
    "densenet121 small": (
        "densenet121",
        {"growth": 2, "blocks": (1, 1, 1, 1), "stem": "small"},
        InputSpec.grid(2, 9),
    ),
    "googlenet": ("googlenet", {"width": 0.1}, InputSpec.grid(1, 15, 15)),
    "googlenet alone": ("googlenet", {"width": 0.1, "auxiliary": False}, InputSpec.grid(2, 20)),
    "highway": ("highway", {"width": 4, "depth": 3}, InputSpec.grid(1, 6, 7)),
    "highway dense": ("highway", {"width": 4, "depth": 3, "kind": "dense"}, InputSpec.grid(2, 5)),
    "lenet5": ("lenet5", {}, InputSpec.grid(2, 14, 13)),
    "lenet5 classic": ("lenet5", {"classic": True}, InputSpec.grid(1, 14, 14)),
    "lenet5 signal": ("lenet5", {}, InputSpec.grid(2, 20)),
    "lenet5 volume": ("lenet5", {}, InputSpec.grid(1, 12, 12, 12)),
    "linear_grid": ("linear_grid", {}, InputSpec.grid(2, 5, 6)),
    "linear_grid pooled": ("linear_grid", {"limit": 20}, InputSpec.grid(2, 5, 6)),
    "neocognitron": ("neocognitron", {"places": 2}, InputSpec.grid(3, 9, 10)),
    "resnet18": ("resnet18", {"width": 4}, InputSpec.grid(3, 16, 20)),
    "resnet18 signal": ("resnet18", {"width": 2, "stem": "small"}, InputSpec.grid(1, 9)),
    "resnet50": ("resnet50", {"width": 2, "zero_init_last": True}, InputSpec.grid(1, 9, 9)),
    "small_resnet": ("small_resnet", {"depth": 8, "width": 4}, InputSpec.grid(3, 9, 8)),
    "small_resnet plain": (
        "small_resnet",
        {"depth": 8, "width": 4, "residual": False, "dropout": 0.2},
        InputSpec.grid(1, 11),
    ),
    "small_resnet volume": ("small_resnet", {"depth": 8, "width": 2}, InputSpec.grid(1, 5, 6, 7)),
    "vgg11": ("vgg11", {"width": 2, "hidden": 8}, InputSpec.grid(1, 32, 33)),
    "vgg11 signal": ("vgg11", {"width": 2, "hidden": 8, "batch_norm": True}, InputSpec.grid(1, 40)),
}
DEEPER = (
    "resnet34",
    "resnet101",
    "resnet152",
    "vgg13",
    "vgg16",
    "vgg19",
)  # the same code with other numbers
SEQUENCES = ("bag", "bert", "distilbert", "gpt", "gru", "linear_text", "lru", "lstm")
SEQUENCES += ("mingru", "minlstm", "ngram", "rnn", "text_cnn", "transformer")
PAIRS = ("encoder_decoder", "pointer", "seq2seq")
SERIES = ("linear_window", "window")
JOINED = ("joined", "linear_joined")
TRIPLES = ("complex", "distmult", "dot", "tail_frequencies", "transe")
SETS = ("deepsets", "invariant_points", "linear_points", "linear_set", "pine", "pointnet")
SETS += ("set_transformer",)
MOLECULES = ("deeppot", "element_counts", "schnet")
GRAPHS = ("adamic_adar", "chebnet", "gae", "gat", "gated_graph", "gatv2", "gcn", "gin", "gnn")
GRAPHS += ("graph_gru", "graph_lstm", "graph_unet", "graphsage", "kgnn", "linear_graph")
GRAPHS += ("linear_node", "mpnn", "relational", "sgc", "spectral", "vgae")
GAMES = ("dcgan", "patchgan")
DENOISING = ("denoising_mlp", "denoising_unet")  # of x and a time
VISION = ("vit_b_16", "vit_tiny")
DENSE = ("attention_unet", "fcn", "linear_pixels", "sliding_window", "unet", "unet3d")
every_network = pytest.mark.parametrize("name, options, spec", ROWS.values(), ids=ROWS)


def build(name, options, spec, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return networks.create(name, inputs=spec, outputs=3, generator=generator, **options)


def test_every_network_by_name_takes_tables_grids_or_sequences():
    tables, grids = {name for name, _ in TABLES.values()}, {name for name, *_ in ROWS.values()}
    assert set(networks.names()) == tables | grids | {*DEEPER} | {
        *DENSE,
        *SEQUENCES,
        *PAIRS,
        *SERIES,
        *VISION,
        *JOINED,
        *TRIPLES,
        *DENOISING,
        *GAMES,
        *SETS,
        *MOLECULES,
        *GRAPHS,
    }


def grids(spec, n=4):
    return torch.randn(n, spec.features, *spec.size)


@every_network
def test_it_maps_grids_to_raw_outputs_in_either_precision(name, options, spec):
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        y = build(name, options, spec).eval()(grids(spec, 2))
        assert y.shape == (2, 3) and y.dtype == dtype and y.isfinite().all()


@every_network
def test_it_is_a_function_of_its_generator_and_leaves_the_global_one_alone(name, options, spec):
    state = torch.get_rng_state()
    first, second, third = (build(name, options, spec, seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[key], second[key]) for key in first)
    if name != "linear_grid":
        assert any(not torch.equal(first[key], third[key]) for key in first)


@every_network
def test_it_is_built_on_the_meta_device_without_memory(name, options, spec):
    with torch.device("meta"):
        net = networks.create(name, inputs=spec, outputs=3, **options)
    assert all(t.is_meta for t in (*net.parameters(), *net.buffers()))


@every_network
def test_a_copy_and_a_state_dict_give_the_same_function(name, options, spec):
    net, x = build(name, options, spec).eval(), grids(spec, 2)
    twin = build(name, options, spec, seed=1).eval()
    twin.load_state_dict(net.state_dict(), strict=True)
    assert torch.equal(twin(x), net(x))
    assert torch.equal(copy.deepcopy(net)(x), net(x))
    places = [t.data_ptr() for t in net.state_dict().values() if t.numel()]
    assert len(set(places)) == len(places)  # safetensors refuses shared tensors


@every_network
def test_every_trained_weight_gets_a_gradient(name, options, spec):
    net, x = build(name, options, spec), grids(spec, 6)
    for key, parameter in net.named_parameters():  # away from zero, where some gradients vanish
        if parameter.requires_grad and (parameter == 0).all() and "weight" in key:
            nn.init.normal_(parameter, 0, 0.3)
    out = net(x)
    loss = sum((head**2).sum() for head in out) if isinstance(out, tuple) else (out**2).sum()
    loss.backward()
    wanted = {key: p.grad for key, p in net.named_parameters() if p.requires_grad}
    assert [key for key, gradient in wanted.items() if gradient is None] == []
    assert all(gradient.isfinite().all() for gradient in wanted.values())


@every_network
def test_rows_do_not_see_each_other_when_evaluating(name, options, spec):
    net, x = build(name, options, spec).eval(), grids(spec)
    assert_close(net(x)[:2], net(x[:2]))


@every_network
def test_its_groups_hold_every_weight_once_and_its_heads_are_the_last(name, options, spec):
    net = build(name, options, spec)
    found = [p for group in net.layer_groups() for m in group for p in m.parameters()]
    assert len(found) == len(set(found)) and set(found) == set(net.parameters())
    last = {p for m in net.layer_groups()[-1] for p in m.parameters()}
    assert last == {p for head in net.heads for p in net.get_submodule(head).parameters()}


@every_network
def test_x_of_another_shape_is_refused(name, options, spec):
    net, x = build(name, options, spec).eval(), grids(spec)
    with pytest.raises(UsageError, match=rf"{name} needs x of shape \(B, {spec.features}"):
        net(torch.cat([x, x], 1))
    with pytest.raises(UsageError, match=rf"{name} needs x of shape"):
        net(x[0])


def test_a_table_is_no_grid():
    with pytest.raises(UsageError, match=r"resnet18 takes grids .*structure 'vector'"):
        networks.create("resnet18", InputSpec(features=3, cardinalities=(4,)), 2)
    with pytest.raises(UsageError, match=r"got \(5, 3\). For rows of a table take mlp."):
        networks.create("small_resnet", 3, 2, depth=8)(torch.randn(5, 3))


def test_a_network_whose_weights_depend_on_the_size_asks_for_it():
    for name in ("lenet5", "linear_grid"):
        with pytest.raises(UsageError, match=f"weights of {name} depend on the size"):
            networks.create(name, 3, 2)


LEAST = {  # name, options, pixels: one less, and torch itself finds nothing left
    "lenet5": ("lenet5", {}, 12),
    "alexnet": ("alexnet", {"width": 4, "hidden": 8}, 63),
    "alexnet original": ("alexnet", {"original": True, "width": 6, "hidden": 8}, 67),
    "vgg13": ("vgg13", {"width": 2, "hidden": 4}, 32),
    "densenet121": ("densenet121", {"growth": 2, "blocks": (1, 1, 1, 1)}, 29),
    "densenet121 small": (
        "densenet121",
        {"growth": 2, "blocks": (1, 1, 1, 1), "stem": "small"},
        8,
    ),
    "googlenet": ("googlenet", {"width": 0.1}, 15),
    "highway": ("highway", {"width": 2, "depth": 3}, 4),
}


@pytest.mark.parametrize("name, options, least", LEAST.values(), ids=LEAST)
def test_a_grid_that_would_vanish_inside_is_refused(name, options, least):
    fits, vanishes = InputSpec.grid(1, least, least), InputSpec.grid(1, least + 9, least - 1)
    net = build(name, options, fits)
    assert net.eval()(grids(fits, 1)).isfinite().all()
    message = rf"{name} needs at least {least} pixels .* got {least + 9} x {least - 1}"
    with pytest.raises(UsageError, match=message):
        build(name, options, vanishes)
    if name != "lenet5":
        net.grid, net.least = net.grid._replace(size=()), least
        with pytest.raises(UsageError, match=message):
            net(grids(vanishes, 1))


@pytest.mark.parametrize("blocks", [(), 5, "ab"])
def test_a_dense_network_has_blocks(blocks):
    with pytest.raises(UsageError, match="blocks of densenet121 must be"):
        networks.create("densenet121", InputSpec.grid(1, 32, 32), 2, blocks=blocks)


@pytest.mark.parametrize("name", ["lenet5", "small_resnet", "unet"])
def test_another_precision_is_named(name):
    network = networks.create(name, InputSpec.grid(1, 16, 16), 2).float()
    x = torch.randn(2, 1, 16, 16, dtype=torch.float64)
    says = rf"{name} computes in float32, got x of float64: use x.to\(torch.float32\)"
    with pytest.raises(UsageError, match=says):
        network(x)
    with torch.autocast("cpu", torch.bfloat16):  # it brings both to one precision
        assert network(x.float()).isfinite().all()
