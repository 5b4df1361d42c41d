import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from ansatz.connectionism import Hopfield
from ansatz.connectionism.hopfield import in_blocks, sweep


def signs(*shape):
    return torch.randint(0, 2, shape).to(torch.get_default_dtype()) * 2 - 1


def noisy(x, share):
    return torch.where(torch.rand(x.shape) < share, -x, x)


def plain_sweeps(memory, x, order, steps):
    """Neuron by neuron, state by state, with the sign of 0 positive."""
    x = x.clone()
    for _ in range(steps):
        for i in order.tolist():
            field = x @ memory.weight[i] - memory.bias[i]
            x[:, i] = torch.where(field >= -1e-9, 1.0, -1.0)
    return x


every_rule = pytest.mark.parametrize("rule", ["hebb", "pseudo_inverse", "storkey"])


@every_rule
def test_weights_are_symmetric_without_a_diagonal_and_hold_a_few_patterns(rule):
    patterns = signs(5, 100)
    memory = Hopfield(100, rule=rule).store(patterns)
    assert_close(memory.weight, memory.weight.T)
    assert (memory.weight.diagonal() == 0).all()
    assert torch.equal(memory(patterns), patterns)
    assert torch.equal(memory(noisy(patterns, 0.1)), patterns)


@every_rule
def test_patterns_stored_later_are_as_if_stored_at_once(rule):
    patterns = signs(6, 40)
    once = Hopfield(40, rule=rule).store(patterns)
    later = Hopfield(40, rule=rule).store(patterns[:2]).store(patterns[2]).store(patterns[3:])
    assert_close(later.weight, once.weight)
    assert int(later.count) == 6


def test_hebb_is_the_sum_of_outer_products():
    patterns = signs(7, 30)
    expected = sum(torch.outer(x, x) - torch.eye(30) for x in patterns) / 30
    memory = Hopfield(30).store(patterns)
    assert_close(memory.weight, expected)
    assert_close(memory.diagonal, torch.full((30,), 7 / 30))


def test_pseudo_inverse_is_the_projection_on_the_patterns():
    patterns = signs(12, 30)
    patterns[5] = patterns[2]  # nothing new
    memory = Hopfield(30, rule="pseudo_inverse").store(patterns)
    projection = torch.linalg.pinv(patterns) @ patterns
    assert_close(memory.weight + memory.diagonal.diag(), projection)
    assert_close(memory.weight, projection - projection.diagonal().diag())


def test_pseudo_inverse_holds_correlated_patterns_that_hebb_confuses():
    patterns = noisy(signs(1, 60).expand(20, 60), 0.3)
    assert torch.equal(Hopfield(60, rule="pseudo_inverse").store(patterns)(patterns), patterns)
    assert not torch.equal(Hopfield(60).store(patterns)(patterns), patterns)


def test_storkey_is_its_formula_written_out():
    patterns, n = signs(4, 7), 7
    w = torch.zeros(n, n)
    for x in patterns:
        new = w.clone()
        for i in range(n):
            for j in range(n):
                if i != j:
                    hij = sum(w[i, k] * x[k] for k in range(n) if k not in (i, j))
                    hji = sum(w[j, k] * x[k] for k in range(n) if k not in (i, j))
                    new[i, j] += (x[i] * x[j] - x[i] * hji - hij * x[j]) / n
        w = new
    assert_close(Hopfield(n, rule="storkey").store(patterns).weight, w)


@pytest.mark.parametrize("size", [1, 5, 128, 300])
@pytest.mark.parametrize("order", ["fixed", "given"])
def test_a_blocked_sweep_is_the_plain_loop(size, order):
    memory = Hopfield(size, bias=0.3 * torch.randn(size)).store(signs(max(size // 4, 1), size))
    x = signs(9, size)
    permutation = torch.arange(size) if order == "fixed" else torch.randperm(size)
    found = memory.recall(x, 1, order="fixed" if order == "fixed" else permutation)
    assert torch.equal(found.state, plain_sweeps(memory, x, permutation, 1))


def test_a_block_in_which_every_neuron_follows_the_one_before_it():
    """The longest chain: each new state depends on the last, and iteration must go all the way."""
    weight = torch.zeros(100, 100)
    weight[torch.arange(1, 100), torch.arange(99)] = 1.0
    active = torch.zeros(100, 3)
    active[:, 1] = torch.arange(100) == 0
    active[:, 2] = torch.arange(100) == 50
    threshold = torch.full((100,), 0.5)
    threshold[0] = 0  # always on
    assert sweep(active, in_blocks(weight, threshold, torch.arange(100))).all()
    assert (active == 1).all()


def test_batches_larger_than_a_chunk_are_as_state_by_state():
    memory, x = Hopfield(40).store(signs(12, 40)), signs(1300, 40)
    found = memory.recall(x, 3, order="fixed")
    some = [0, 511, 512, 1024, 1299]
    alone = [memory.recall(x[k], 3, order="fixed") for k in some]
    assert torch.equal(found.state[some], torch.stack([one.state for one in alone]))
    assert found.steps[some].tolist() == [int(one.steps) for one in alone]
    assert found.settled[some].tolist() == [bool(one.settled) for one in alone]


def test_a_sweep_says_which_states_changed():
    memory = Hopfield(200).store(signs(5, 200))
    active = (signs(200, 6) > 0).double()
    before = active.clone()
    changed = sweep(active, in_blocks(memory.weight, memory.weight.sum(1) / 2, torch.arange(200)))
    assert torch.equal(changed, (before != active).any(0))


def test_energy_is_the_double_sum_and_autograd_gives_the_field():
    memory, x = Hopfield(6, bias=torch.randn(6)).store(signs(3, 6)), signs(4, 6)
    W, b = memory.weight, memory.bias
    for state, energy in zip(x, memory.energy(x), strict=True):
        pairs = sum(W[i, j] * state[i] * state[j] for i in range(6) for j in range(6))
        assert_close(energy, -0.5 * pairs + (b * state).sum())
    y = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad((y * (b - 0.5 * (y @ W))).sum(), y)
    assert_close(memory.fields(x), -slope)


def test_energy_never_rises_from_sweep_to_sweep():
    memory, x = Hopfield(120, bias=0.1 * torch.randn(120)).store(signs(60, 120)), signs(50, 120)
    energy = memory.energy(x)
    for _ in range(8):
        x = memory.recall(x, 1).state
        assert (memory.energy(x) <= energy + 1e-12).all()
        energy = memory.energy(x)


def test_recall_stops_at_a_fixed_point_and_counts_the_sweeps():
    memory = Hopfield(120).store(signs(40, 120))
    x = signs(30, 120)
    found = memory.recall(x, 200)
    assert found.settled.all() and not found.cycling.any()
    assert torch.equal(memory.recall(found.state).state, found.state)
    assert (memory.recall(found.state).steps == 0).all()
    one = memory.recall(x[3], 200)
    assert torch.equal(one.state, found.state[3]) and one.steps == found.steps[3]


@pytest.mark.parametrize("dynamics", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("rows", [1, 3])
def test_recall_leaves_what_it_was_given(rows, dynamics):
    memory, x = Hopfield(60).store(signs(9, 60)), signs(rows, 60)
    before = x.clone()
    memory.recall(x, dynamics=dynamics)
    assert torch.equal(x, before)


def test_too_few_steps_are_reported():
    memory = Hopfield(200).store(signs(60, 200))
    found = memory.recall(signs(20, 200), 1)
    assert not found.settled.all()
    again = memory.recall(signs(5, 200), 0)
    assert (again.steps == 0).all()


def test_synchronous_neurons_that_follow_each_other_cycle():
    memory = Hopfield(2).store(torch.tensor([[1.0, 1.0]]))  # each takes the sign of the other
    x = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    found = memory.recall(x, 50, dynamics="synchronous")
    assert found.cycling.tolist() == [True, False] and found.settled.tolist() == [False, True]
    assert memory.recall(x).settled.all()


def test_synchronous_is_the_sign_of_the_field():
    memory, x = Hopfield(90).store(signs(9, 90)), signs(12, 90)
    found = memory.recall(x, 1, dynamics="synchronous").state
    assert torch.equal(found, torch.where(memory.fields(x) >= -1e-12, 1.0, -1.0))


def test_ties_go_up_in_any_precision_and_order():
    for dtype in (torch.float32, torch.float64):
        patterns = signs(2, 90).to(dtype)
        memory = Hopfield(90).to(dtype).store(patterns)
        where = patterns[0] != patterns[1]  # a state between the two: half of these fields are 0
        x = torch.where(where & (where.cumsum(0) % 2 == 0), patterns[1], patterns[0])
        exact = torch.where(x.double() @ (patterns.double().T @ patterns.double()
                            - 2 * torch.eye(90)) >= 0, 1.0, -1.0)  # fmt: skip
        found = memory.recall(x, 1, dynamics="synchronous").state
        assert torch.equal(found.double(), exact)


def test_a_bias_decides_where_nothing_is_stored():
    memory = Hopfield(3, bias=torch.tensor([1.0, -1.0, 0.0]))
    assert memory(signs(5, 3)).tolist() == [[-1, 1, 1]] * 5


def test_the_memory_is_saved_as_tensors(tmp_path):
    patterns = signs(6, 50)
    source = Hopfield(50, rule="pseudo_inverse").store(patterns[:4])
    save_file(source.state_dict(), tmp_path / "memory.safetensors")
    target = Hopfield(50, rule="pseudo_inverse")
    target.load_state_dict(load_file(tmp_path / "memory.safetensors"))
    x = noisy(patterns, 0.1)
    assert torch.equal(target(x), source(x)) and int(target.count) == 4
    assert_close(target.store(patterns[4:]).weight, source.store(patterns[4:]).weight)


def test_random_orders_repeat_with_their_generator():
    memory, x = Hopfield(100).store(signs(30, 100)), signs(40, 100)
    runs = [memory.recall(x, generator=torch.Generator().manual_seed(s)).state for s in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])


def test_half_precision_states_and_integers_are_taken():
    patterns = signs(3, 50)
    memory = Hopfield(50).store(patterns.long())
    assert torch.equal(memory(patterns.int()), patterns)


def test_wrong_input_is_named():
    memory = Hopfield(4)
    with pytest.raises(ValueError, match=r"shape \(..., 4\), got \(3,\)"):
        memory(torch.ones(3))
    with pytest.raises(ValueError, match="-1 and 1, got 0"):
        memory.store(torch.zeros(4))
    with pytest.raises(ValueError, match="'random', 'fixed' or a permutation"):
        memory.recall(torch.ones(4), order="sorted")
    with pytest.raises(ValueError, match="each of the 4 neurons once"):
        memory.recall(torch.ones(4), order=torch.tensor([0, 1, 2, 2]))
    with pytest.raises(ValueError, match="dynamics of recall is one of"):
        memory.recall(torch.ones(4), dynamics="both")
    with pytest.raises(ValueError, match="rule of Hopfield is one of"):
        Hopfield(4, rule="heb")
    with pytest.raises(ValueError, match=r"bias of Hopfield needs shape \(4,\)"):
        Hopfield(4, bias=torch.zeros(3))
