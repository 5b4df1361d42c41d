"""Containers of sets: cutting, keys, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz.data import Batch, Sets
from ansatz.data.batch import take_rows
from ansatz.data.sets.batch import SetBatch, chunks
from ansatz.data.sets.source import CutSource
from ansatz.errors import DataError

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(n, 2)) for n in (3, 0, 1, 6)]


def test_sets_are_taken_by_position_as_from_a_list():
    sets = Sets.of(PARTS)
    for index in (np.array([3, 0, 3]), np.array([True, False, True, True]), slice(1, 4)):
        expected = [PARTS[k] for k in np.arange(4)[index]]
        found = sets[index]
        assert_array_equal(found.values, np.concatenate(expected))
        assert found.lengths.tolist() == [len(each) for each in expected]


def test_an_array_of_three_axes_is_sets_of_one_size():
    assert Sets.of(np.zeros((4, 5, 2))).lengths.tolist() == [5] * 4


def test_equal_multisets_have_one_key():
    a = PARTS[3]
    twice, once = np.repeat(a, [2, 1, 1, 1, 1, 1], 0), np.repeat(a, [1, 2, 1, 1, 1, 1], 0)
    keys = Sets.of([a, a[::-1], twice, once, a[:5], PARTS[1], -0.0 * a, 0.0 * a]).content_keys()
    assert keys[0] == keys[1] and keys[6] == keys[7]
    assert len(set(keys.tolist())) == 6


def test_elements_keep_their_set_and_share_its_key():
    sets = Sets.of(PARTS)
    rows = sets.elements()[np.array([9, 0, 4])]
    assert rows.owners.tolist() == [3, 0, 3]
    packed, place = rows.packed()
    assert_array_equal(packed.values[place], sets.values[[9, 0, 4]])
    keys = rows.content_keys()
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    "X, words",
    [
        ([np.zeros((2, 3)), np.zeros((2, 4))], "set 2 has 4 numbers per element, others have 3"),
        ([[[1.0, 2.0], [3.0]]], "set 1 must be an array of numbers.*unequal length"),
        ([np.array([[1.0], [np.inf]])], "set 1, element 2: infinite"),
        ([np.zeros((2, 2, 2))], r"set 1 must have shape \(elements, D\)"),
    ],
)
def test_what_is_no_set_is_named(X, words):
    with pytest.raises(DataError, match=words):
        Sets.of(X)


def test_offsets_that_do_not_fit_are_refused():
    for offsets in ([0, 2], [0, 3, 2, 4], [1, 4], [0.0, 4.0]):
        with pytest.raises(DataError, match=r"a\.npz: offsets must be whole numbers from 0 to 4"):
            Sets.packed(np.zeros((4, 2)), np.array(offsets), "a.npz")


def test_chunks_cover_every_set_once():
    offsets = torch.tensor([0, 3, 3, 4, 10, 30, 31])
    batch = SetBatch(torch.zeros(31, 1), offsets, torch.zeros(31, 0), torch.zeros(6, 0))
    for most in (1, 5, 8, 100):
        parts = chunks(batch, most)
        assert [k for part in parts for k in range(6)[part]] == list(range(6))


def batch_of(sets):
    x = SetBatch(
        torch.from_numpy(sets.values),
        torch.from_numpy(sets.offsets),
        torch.zeros(len(sets.values), 0),
        torch.zeros(len(sets), 0),
    )
    return Batch(x, torch.arange(len(sets)), torch.ones(len(sets)), None, torch.arange(len(sets)))


def test_a_source_gives_whole_sets_in_an_order_of_seed_and_epoch():
    sets = Sets.of([np.full((n, 1), n) for n in range(11)])
    source = CutSource(batch_of(sets), 4, seed=3, smallest=4)
    assert len(source) == 2
    first = list(source.batches(1))
    assert sorted(torch.cat([b.index for b in first]).tolist()) == list(range(11))
    for batch in first:
        assert batch.inputs.offsets.diff().tolist() == batch.index.tolist()
        assert torch.equal(
            batch.inputs.values.flatten(), batch.index.repeat_interleave(batch.index)
        )
    assert torch.equal(next(iter(source.batches(1, start=1))).index, first[1].index)
    assert not torch.equal(next(source.batches(2)).index, first[0].index)


def test_rows_of_a_group_come_together():
    groups = torch.tensor([2, 0, 0, 1, 2, 0, 1])
    rows = Batch.of(torch.arange(7.0).unsqueeze(1), torch.zeros(7))
    source = CutSource(rows, 3, seed=0, groups=groups)
    found = [batch.index for batch in source.batches(0)]
    assert len(found) == len(source) == 3
    assert sorted(sorted(groups[each].unique().tolist()) for each in found) == [[0], [1], [2]]
    assert take_rows(rows, found[0]).inputs[0].shape == (len(found[0]), 1)


def test_tables_of_elements_are_cut_too():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": list("xyz")})
    sets = Sets(table, [0, 2, 3], None, np.array(["p", "q"]))
    assert sets[[1]].values["b"].tolist() == ["z"] and sets.place(2) == "set q, element 1"
