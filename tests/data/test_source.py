"""The contract of every source, run for each of them."""

import pytest
import torch

from ansatz.data import Batch, TensorSource
from ansatz.data.batch import map_tensors, to_device


def rows(n):
    x = torch.arange(n, dtype=torch.float64)
    return Batch.of((x.unsqueeze(1), x.long().unsqueeze(1)), (x, -x), weight=x + 1, offset=2 * x)


SOURCES = {
    "tensors": lambda n, seed: TensorSource(rows(n), 4, seed=seed),
    "tensors in order": lambda n, seed: TensorSource(rows(n), 4, seed=seed, shuffle=False),
    "one batch": lambda n, seed: TensorSource(rows(n), 1000, seed=seed),
    "no last one": lambda n, seed: TensorSource(rows(n), 5, seed=seed, smallest=2),
    "single rows": lambda n, seed: TensorSource(rows(n), 1, seed=seed),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def order(source, epoch, start=0):
    return [batch.index.tolist() for batch in source.batches(epoch, start)]


@every_source
@pytest.mark.parametrize("n", [0, 1, 4, 11])
def test_every_row_comes_once_per_epoch(make, n):
    source = make(n, seed=0)
    batches = order(source, 3)
    assert sorted(k for batch in batches for k in batch) == list(range(n))
    assert len(batches) == len(source)


@every_source
def test_batches_are_a_function_of_seed_epoch_and_position(make):
    source = make(11, seed=7)
    first = order(source, 2)
    list(source.batches(5))  # what was asked in between does not matter
    torch.randn(3)
    assert order(source, 2) == first == order(make(11, seed=7), 2)


@every_source
def test_starting_at_k_is_skipping_k(make):
    source = make(11, seed=1)
    whole = order(source, 4)
    for start in range(len(whole) + 1):
        assert order(source, 4, start) == whole[start:]


@every_source
def test_fields_stay_aligned(make):
    for batch in make(11, seed=3).batches(0):
        k = batch.index.to(torch.float64)
        assert torch.equal(batch.inputs[0][:, 0], k) and torch.equal(
            batch.inputs[1][:, 0], batch.index
        )
        assert torch.equal(batch.target[0], k) and torch.equal(batch.target[1], -k)
        assert torch.equal(batch.weight, k + 1) and torch.equal(batch.offset, 2 * k)


def test_epochs_and_seeds_have_different_orders():
    source = TensorSource(rows(50), 50, seed=0)
    orders = {tuple(order(source, epoch)[0]) for epoch in range(5)}
    orders |= {tuple(order(TensorSource(rows(50), 50, seed=1), 0)[0])}
    assert len(orders) == 6


def test_blocks_do_not_change_the_order():
    """Rows wide enough that an epoch is gathered in several blocks."""
    wide = Batch.of(torch.zeros(40, 2**18), torch.arange(40.0))  # 2 MB a row, 8 rows a block
    source = TensorSource(wide, 3, seed=0)
    batches = order(source, 1)
    assert [len(batch) for batch in batches] == [3] * 13 + [1]
    assert sorted(k for batch in batches for k in batch) == list(range(40))
    assert order(source, 1, 5) == batches[5:]


def test_the_users_random_state_is_left_alone():
    before = torch.get_rng_state()
    list(TensorSource(rows(11), 2, seed=0).batches(0))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_moves_as_a_whole():
    moved = to_device(rows(3), "meta")
    devices = []
    map_tensors(lambda tensor: devices.append(tensor.device.type), moved)
    assert isinstance(moved, Batch) and set(devices) == {"meta"} and len(devices) == 7


def test_a_batch_size_below_1_is_refused():
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        TensorSource(rows(3), 0)


def test_every_batch_has_its_share_of_each_stratum():
    strata = (torch.arange(1000) % 10 == 0).double()
    table = Batch.of(torch.arange(1000.0).unsqueeze(1), strata)
    source = TensorSource(table, 100, seed=0, strata=strata)
    seen = []
    for batch in source.batches(epoch=0):
        assert abs(batch.target.sum() - 10) <= 1
        seen += batch.index.tolist()
    assert sorted(seen) == list(range(1000)) and seen != list(range(1000))
    again = [batch.index.tolist() for batch in source.batches(epoch=1)]
    assert [row for batch in again for row in batch] != seen


@pytest.mark.parametrize("block", [1, 10**6])
@pytest.mark.parametrize("n", range(1, 24))
def test_too_few_rows_join_the_batch_before_them(n, block, monkeypatch):
    monkeypatch.setattr("ansatz.data.source._BLOCK", block)
    for start in range(3):
        plain = TensorSource(rows(n), 5, seed=1)
        found = order(TensorSource(rows(n), 5, seed=1, smallest=3), 0, start)
        expected = order(plain, 0)
        if len(expected) > 1 and len(expected[-1]) < 3:
            expected[-2:] = [expected[-2] + expected[-1]]
        assert found == expected[start:]
