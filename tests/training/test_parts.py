"""The small parts of the loop, each against the obvious version of itself."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.layers.mode import evaluation_mode
from ansatz.training.diagnosis import all_finite
from ansatz.training.early_stopping import EarlyStopping
from ansatz.training.gradient_step import micro_batches
from ansatz.training.machine import choose_threads, own_randomness, random_state, set_random_state
from ansatz.training.processes.gradients import clip_gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf])
def test_all_finite_is_isfinite_of_everything_and_leaves_the_values(dtype, bad):
    tensors = [torch.randn(5, dtype=dtype), torch.full((2, 3), 1e-40, dtype=dtype)]
    if bad is not None:
        tensors[1][1, 2] = bad
    kept = [t.clone() for t in tensors]
    assert all_finite(tensors) == (bad is None)
    assert_close(tensors, kept, rtol=0, atol=0, equal_nan=True)


def test_all_finite_takes_mixed_and_sparse_tensors():
    sparse = torch.sparse_coo_tensor([[0, 2]], [1.0, math.nan], (4,), check_invariants=True)
    assert all_finite([]) and all_finite([torch.arange(3), torch.ones(2)])
    assert not all_finite([torch.ones(2), sparse])


@pytest.mark.parametrize("pieces", [1, 2, 3, 5, 9])
def test_micro_batches_are_the_batch_in_order(pieces):
    batch = Batch.of((torch.randn(5, 2), torch.arange(5)), torch.randn(5), offset=torch.randn(5))
    parts = micro_batches(batch, pieces)
    assert len(parts) == min(pieces, 5) and all(len(part.index) for part in parts)
    for name in ("target", "weight", "offset", "index"):
        assert_close(torch.cat([getattr(part, name) for part in parts]), getattr(batch, name))
    assert_close(torch.cat([part.inputs[1] for part in parts]), torch.arange(5))


def test_an_offset_that_is_one_row_for_all_is_not_cut():
    batch = Batch.of(torch.randn(4, 2), torch.randn(4), offset=torch.randn(1, 3))
    assert all(part.offset is batch.offset for part in micro_batches(batch, 2))


def test_patience_counts_evaluations_since_the_best():
    stopping = EarlyStopping(2)
    for loss, ended in [(2.0, False), (3.0, False), (1.0, False), (1.0, False), (1.5, True)]:
        stopping.observe(loss)
        assert stopping.exhausted == ended
    other = EarlyStopping(2)
    other.load_state_dict(stopping.state_dict())
    assert (other.best, other.waited, other.exhausted) == (1.0, 2, True)


def test_patience_of_nothing_never_ends_and_zero_is_refused():
    stopping = EarlyStopping(None)
    assert not any(stopping.observe(1.0) and stopping.exhausted for _ in range(1000))
    assert not stopping.exhausted and stopping.state_dict()["waited"] == 999
    with pytest.raises(UsageError, match="patience must be at least 1"):
        EarlyStopping(0)


def test_evaluation_mode_gives_each_part_its_own_mode_back():
    network = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2), nn.Dropout())
    network[1].eval()
    with pytest.raises(KeyError), evaluation_mode(network):
        assert not any(part.training for part in network.modules())
        raise KeyError
    assert [part.training for part in network.modules()] == [True, True, False, True]


def test_the_fits_random_numbers_are_a_function_of_its_seed():
    cpu = torch.device("cpu")
    drawn = []
    for seed in (3, 3, 4):
        torch.rand(7)
        before = torch.get_rng_state()
        with pytest.raises(KeyError), own_randomness(seed, cpu):
            drawn.append(torch.rand(3))
            raise KeyError
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_generators_inside_modules_are_saved_by_name():
    network = nn.Sequential(nn.Identity(), nn.Identity())
    network[1].noise = torch.Generator().manual_seed(1)
    cpu = torch.device("cpu")
    state = random_state(cpu, network)
    a = torch.rand(3, generator=network[1].noise)
    set_random_state(state, cpu, network)
    assert torch.equal(a, torch.rand(3, generator=network[1].noise))


@pytest.mark.parametrize(
    "network, rows, expected",
    [
        (nn.Linear(64, 64), 256, 1),
        (nn.Linear(1024, 1024), 256, 2),
        (nn.Linear(64, 64), 100_000, 2),
        (nn.Conv2d(3, 4, 3), 1, 2),
        (nn.Identity(), 10, 1),
    ],
)
def test_small_networks_get_one_thread_and_large_ones_all(network, rows, expected):
    torch.set_num_threads(2)
    assert choose_threads(network, rows) == expected
    torch.set_num_threads(1)
    assert choose_threads(network, rows) == 1  # never more than the user allows


@pytest.mark.parametrize("limit", [0.5, 5.0 - 5e-7, 5.0, 5.1])
@pytest.mark.parametrize("gradient", [[3.0, 4.0], [0.0, 0.0], [3.0, math.nan], [3.0, math.inf]])
def test_gradients_are_clipped_bit_for_bit_as_torch_clips_them(gradient, limit):
    ours, theirs = (nn.Parameter(torch.zeros(2, dtype=torch.float32)) for _ in range(2))
    without = nn.Parameter(torch.zeros(1))
    for parameter in (ours, theirs):
        parameter.grad = torch.tensor(gradient, dtype=torch.float32)
    norm = clip_gradients([ours, without], limit)
    expected = nn.utils.clip_grad_norm_([theirs, without], limit).item()
    assert norm == expected or (math.isnan(norm) and math.isnan(expected))
    assert_close(ours.grad, theirs.grad, rtol=0, atol=0, equal_nan=True)
