"""Networks on sets: invariance, equivariance, and that sets do not see each other."""

import copy
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.data.sets.batch import ElementBatch, SetBatch
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

EXACT = {"rtol": 0, "atol": 1e-10}
SPEC = {"cardinalities": (3,), "beside": 2}
OF_SETS = {
    "sum": ("deepsets", {"pool": "sum"}),
    "mean": ("deepsets", {}),
    "max": ("deepsets", {"pool": "max"}),
    "attention": ("deepsets", {"pool": "attention"}),
    "set_transformer": ("set_transformer", {"width": 8, "heads": 2, "points": 3}),
    "pine": ("pine", {"widths": (8,)}),
    "linear_set": ("linear_set", {}),
}
OF_ELEMENTS = {name: each for name, each in OF_SETS.items() if name != "pine"}
of_sets = pytest.mark.parametrize("name, options", OF_SETS.values(), ids=OF_SETS)
of_elements = pytest.mark.parametrize("name, options", OF_ELEMENTS.values(), ids=OF_ELEMENTS)


def sets(lengths=(3, 0, 1, 6)):
    values = torch.randn(sum(lengths), 2)
    codes = torch.stack([torch.arange(len(values)) % 4, 1 + torch.arange(len(values)) % 2], 1)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return SetBatch(values, offsets, codes, torch.randn(len(lengths), 2))


def build(name, options, rows="sets"):
    spec = InputSpec.set(2, kinds=2, rows=rows, **SPEC)
    made = networks.create(name, spec, 3, **options).eval()
    for p in made.parameters():  # linear_set begins at 0
        torch.nn.init.normal_(p, std=0.5)
    return made


def within(offsets):
    """A random order of the elements of each set."""
    return torch.cat([a + torch.randperm(b - a) for a, b in pairwise(offsets.tolist())])


@of_sets
def test_the_order_of_elements_does_not_matter(name, options):
    network, x = build(name, options), sets()
    order = within(x.offsets)
    moved = x._replace(values=x.values[order], codes=x.codes[order])
    assert_close(network(*moved), network(*x), **EXACT)


@of_sets
def test_a_set_alone_answers_as_in_a_batch(name, options):
    network, x = build(name, options), sets()
    found = network(*x)
    for row in range(4):
        alone = network(*x.take_rows(torch.tensor([row])))
        assert_close(alone[0], found[row], rtol=0, atol=1e-12)


@of_elements
def test_answers_of_elements_move_with_them(name, options):
    network, x = build(name, options, "elements"), sets()
    order = within(x.offsets)
    moved = x._replace(values=x.values[order], codes=x.codes[order])
    found = network(*x)
    assert found.shape == (10, 3)
    assert_close(network(*moved), found[order], **EXACT)
    chosen = torch.tensor([9, 0, 4])
    batch = ElementBatch(*x, chosen)
    assert_close(network(*batch), found[chosen])
    assert_close(network(*batch.take_rows(torch.tensor([2, 0]))), found[chosen[[2, 0]]], **EXACT)


@of_sets
def test_gradients_are_those_of_differences(name, options):
    network, x = build(name, options), sets()
    values = x.values.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: network(v, *x[1:]), values)


@of_sets
def test_every_weight_has_a_gradient_and_a_copy_the_same_function(name, options):
    network, x = build(name, options), sets((5, 8, 4))
    network(*x).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert torch.equal(copy.deepcopy(network)(*x), network(*x))


def test_elements_of_different_kinds_may_not_be_exchanged_in_pine():
    network, x = build("pine", OF_SETS["pine"][1]), sets()
    swapped = x._replace(codes=x.codes.flip(0))
    assert not torch.allclose(network(*swapped), network(*x), atol=1e-3)


def test_deepsets_is_rho_of_a_pool_of_phi():
    network = networks.create("deepsets", 2, 1, widths=(4,), head=(5,), pool="sum").eval()
    x, offsets = torch.randn(5, 2), torch.tensor([0, 2, 5])
    phi, rho = network.elements[0], network.head[0]
    for row, part in enumerate((x[:2], x[2:])):
        pooled = torch.nn.functional.silu(phi(part)).sum(0)
        size = torch.tensor([len(part)]).double().log1p()
        assert_close(network(x, offsets)[row], network.output(rho(torch.cat([pooled, size]))))


def test_linear_set_is_linear_in_the_mean_and_the_log_size():
    network = networks.create("linear_set", 2, 1)
    torch.nn.init.normal_(network.output.weight)
    x, offsets = torch.randn(5, 2), torch.tensor([0, 2, 5])
    rows = [torch.cat([p.mean(0), torch.tensor([len(p)]).double().log1p()]) for p in (x[:2], x[2:])]
    assert_close(network(x, offsets), network.output(torch.stack(rows)))


def test_induced_attention_is_attention_of_each_set():
    from ansatz.networks.set_transformer import PooledAttention

    layer, x, offsets = PooledAttention(4, 3, 2), torch.randn(5, 4), torch.tensor([0, 2, 5])
    found = layer(x, offsets)
    for row, part in enumerate((x[:2], x[2:])):
        q, k, v = layer.query(layer.points), layer.key(part), layer.value(part)
        q, k, v = (t.unflatten(-1, (2, 2)).transpose(0, 1) for t in (q, k, v))
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(0, 1)
        assert_close(found[row], layer.finish(layer.points, heads))


def test_what_is_not_a_set_is_refused():
    with pytest.raises(UsageError, match="deepsets takes sets, got inputs of structure 'grid'"):
        networks.create("deepsets", InputSpec.grid(3, 8, 8), 1)
    with pytest.raises(UsageError, match="pine needs the kind"):
        networks.create("pine", 2, 1)
    with pytest.raises(UsageError, match="multiple of heads"):
        networks.create("set_transformer", 2, 1, width=10, heads=4)
    with pytest.raises(UsageError, match=r"needs values of shape \(E, 2\)"):
        networks.create("deepsets", 2, 1)(torch.randn(3, 4), torch.tensor([0, 3]))
