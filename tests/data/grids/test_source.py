import threading

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.data.batch import all_tensors
from ansatz.data.grids import Grids, GridSource, read_grids
from ansatz.data.grids.grid_files import in_order
from ansatz.errors import DataError


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    for k in range(11):
        image = rng.integers(0, 256, (4, 6), np.uint8)
        Image.fromarray(image).save(tmp_path / f"images/{k}.png")
        Image.fromarray((image > 99).astype(np.uint8)).save(tmp_path / f"masks/{k}.png")
    return tmp_path


def same(a, b):
    for one, other in zip(a, b, strict=True):
        for x, y in zip(all_tensors(one), all_tensors(other), strict=True):
            assert_close(x, y, rtol=0, atol=0)


@pytest.mark.parametrize("memory_limit", [None, 100])
@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"strata": torch.arange(11) % 2}])
def test_the_batches_are_those_of_tensors(folder, memory_limit, options):
    table = read_grids(folder, memory_limit=memory_limit)
    assert table.grids.is_in_memory == (memory_limit is None)
    rows = Batch.of((), torch.randn(11), torch.rand(11), torch.randn(11, 1))
    rows = rows._replace(index=torch.arange(11) * 10, inputs=(torch.randn(11, 2),))
    source = GridSource(table.grids, rows, 4, seed=5, **options)
    whole = rows._replace(inputs=(table.grids.load(), *rows.inputs))
    expected = TensorSource(whole, 4, seed=5, **options)
    assert len(source) == len(expected) == 3
    for epoch, start in ((0, 0), (1, 0), (1, 2), (1, 3)):
        same(source.batches(epoch, start), expected.batches(epoch, start))
    batch = next(iter(source.batches(0)))
    assert batch.inputs[0].dtype == torch.uint8


@pytest.mark.parametrize("memory_limit", [None, 100])
def test_masks_come_with_their_images(folder, memory_limit):
    table = read_grids(folder, memory_limit=memory_limit)
    rows = Batch.of((), torch.zeros(11))
    source = GridSource(table.grids, rows, 4, seed=1, masks=table.masks)
    for batch in source.batches(0):
        (x,) = batch.inputs
        assert batch.target.dtype == torch.int64
        assert_close(batch.target, (x[:, 0] > 99).long())


def test_a_file_that_vanishes_is_named_and_no_thread_is_left(folder):
    table = read_grids(folder, memory_limit=100)
    source = GridSource(table.grids, Batch.of((), torch.zeros(11)), 2, shuffle=False, workers=2)
    (folder / "images/7.png").unlink()
    batches, seen = source.batches(0), 0
    with pytest.raises(DataError, match=r"7.png does not exist"):
        for _ in batches:
            seen += 1
    assert seen == 3  # rows 0..5 came
    assert not [t for t in threading.enumerate() if t.name.startswith("ansatz-read")]


def test_whoever_stops_early_leaves_no_thread(folder):
    table = read_grids(folder, memory_limit=100)
    batches = GridSource(table.grids, Batch.of((), torch.zeros(11)), 1).batches(0)
    next(batches)
    batches.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ansatz-read")]


def test_results_come_in_order_and_no_more_wait_than_said():
    begun, gate = [], threading.Event()

    def items():
        for k in range(20):
            begun.append(k)
            yield k

    results = in_order(lambda k: (gate.wait(), k)[1], items(), workers=3, ahead=4)
    gate.set()
    assert next(results) == 0
    assert len(begun) == 5
    assert list(results) == list(range(1, 20))


def test_counts_must_agree():
    grids = Grids.of(np.zeros((3, 4, 4)))
    with pytest.raises(ValueError, match=r"as many, got \[3, 4\]"):
        GridSource(grids, Batch.of((), torch.zeros(4)), 2)
