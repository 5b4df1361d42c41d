import itertools

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from ansatz.connectionism import DenseAssociativeMemory, Hopfield

KINDS = {
    "log_sum_exp": {"energy": "log_sum_exp", "beta": 0.7},
    "square": {"energy": "polynomial", "order": 2},
    "quartic": {"energy": "polynomial", "order": 4},
    "rectified cubic": {"energy": "polynomial", "order": 3, "rectified": True},
}
every_energy = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


def signs(*shape):
    return torch.randint(0, 2, shape).to(torch.get_default_dtype()) * 2 - 1


def test_one_step_is_attention():
    patterns, x = torch.randn(9, 16), torch.randn(5, 16)
    found = DenseAssociativeMemory(patterns, beta=16**-0.5).step(x)
    assert_close(found, scaled_dot_product_attention(x, patterns, patterns))


def test_the_step_is_minus_the_gradient_of_the_log_sum_exp():
    memory = DenseAssociativeMemory(torch.randn(9, 6), beta=2.0)
    x = torch.randn(4, 6, requires_grad=True)
    (slope,) = torch.autograd.grad(memory.energy(x).sum(), x)
    assert_close(memory.step(x), x - slope)


@every_energy
@pytest.mark.parametrize("states", ["continuous", "binary"])
def test_energy_never_rises(options, states):
    if states == "binary":
        patterns, x = signs(30, 20), signs(50, 20)
    else:
        patterns, x = torch.randn(30, 20), torch.randn(50, 20)
        x = x * 20**0.5 / x.norm(dim=1, keepdim=True)  # on the sphere, where powers live
    memory = DenseAssociativeMemory(patterns, states=states, **options)
    energy = memory.energy(x)
    for _ in range(6):
        x = memory.step(x)
        assert (memory.energy(x) <= energy + 1e-10).all()
        energy = memory.energy(x)


@every_energy
def test_binary_states_end_where_no_single_sign_lowers_the_energy(options):
    memory = DenseAssociativeMemory(signs(6, 8), states="binary", **options)
    for state in memory.recall(signs(10, 8)):
        energies = [
            memory.energy(torch.where(torch.arange(8) == i, -state, state)) for i in range(8)
        ]
        assert (torch.stack(energies) >= memory.energy(state) - 1e-10).all()


@every_energy
def test_noisy_patterns_are_recalled(options):
    patterns = signs(8, 200)
    memory = DenseAssociativeMemory(patterns, states="binary", **options)
    assert torch.equal(memory(torch.where(torch.rand(8, 200) < 0.1, -patterns, patterns)), patterns)


def test_a_square_energy_is_hopfields_network():
    patterns, x = signs(7, 30), signs(20, 30)  # each field a sum of 7 odd numbers: never 0
    classic = Hopfield(30).store(patterns)
    dense = DenseAssociativeMemory(patterns, energy="polynomial", order=2, states="binary")
    # z^2 summed is x'(sum of outer products)x: Hebb's energy but for its diagonal, a constant.
    difference = 30 * 30 * dense.energy(x) / 2 - 30 * classic.energy(x)
    assert_close(difference, difference[:1].expand(20))
    assert torch.equal(dense(x), classic.recall(x, order="fixed").state)


def test_a_steep_energy_recalls_the_nearest_pattern():
    patterns = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=6)))[::3]
    memory = DenseAssociativeMemory(patterns, beta=50.0)
    x = torch.randn(30, 6)
    assert_close(memory(x), patterns[(x @ patterns.T).argmax(1)])


def test_high_orders_do_not_overflow_in_single_precision():
    patterns = signs(40, 500).float()
    memory = DenseAssociativeMemory(patterns, energy="polynomial", order=30, states="binary")
    assert torch.equal(memory(patterns), patterns) and memory.energy(patterns).isfinite().all()


def test_saved_with_any_number_of_patterns(tmp_path):
    source = (
        DenseAssociativeMemory(torch.randn(3, 5)).store(torch.randn(5)).store(torch.randn(2, 5))
    )
    save_file(source.state_dict(), tmp_path / "memory.safetensors")
    target = DenseAssociativeMemory(torch.zeros(1, 5))
    target.load_state_dict(load_file(tmp_path / "memory.safetensors"))
    assert_close(target.patterns, source.patterns)


def test_gradients_reach_the_query():
    memory = DenseAssociativeMemory(torch.randn(4, 3))
    assert torch.autograd.gradcheck(memory.step, torch.randn(2, 3, requires_grad=True))


def test_nothing_pulls_a_state_that_no_rectified_pattern_sees():
    memory = DenseAssociativeMemory(torch.ones(1, 4), energy="polynomial", rectified=True)
    assert_close(memory(-torch.ones(4)), -torch.ones(4))


@pytest.mark.parametrize("options, message", [
    ({"energy": "cubic"}, "energy of DenseAssociativeMemory is 'log_sum_exp' or 'polynomial'"),
    ({"states": "complex"}, "states of DenseAssociativeMemory is"),
    ({"beta": 0.0}, "beta of DenseAssociativeMemory must be > 0"),
    ({"order": 1}, "whole number >= 2, got 1"),
    ({"energy": "polynomial", "order": 3}, "not convex"),
    ({"states": "binary"}, "binary states are -1 and 1, got 0"),
])  # fmt: skip
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DenseAssociativeMemory(torch.zeros(2, 3), **options)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"shape \(N, D\), got \(3,\)"):
        DenseAssociativeMemory(torch.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(..., 3\), got \(4,\)"):
        DenseAssociativeMemory(torch.zeros(2, 3)).step(torch.zeros(4))
