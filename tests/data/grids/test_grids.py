import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz.data.grids import Grids, GridTable, Masks
from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.grids import row_numbers
from ansatz.errors import DataError, UsageError
from ansatz.spec import InputSpec

PLACES = {  # shape, channels -> (C, *size): the table of channels_first, row by row
    ((5, 1, 9), "auto"): (1, 9),
    ((5, 9, 1), "auto"): (1, 9),
    ((5, 1, 9), None): (1, 1, 9),
    ((5, 1, 1), "auto"): (1, 1, 1),
    ((5, 100), "auto"): (1, 100),
    ((5, 8, 9), "auto"): (1, 8, 9),
    ((5, 2, 100), "first"): (2, 100),
    ((5, 100, 2), "last"): (2, 100),
    ((5, 8, 9, 3), "auto"): (3, 8, 9),
    ((5, 8, 9, 4), "auto"): (4, 8, 9),
    ((5, 1, 8, 9), "auto"): (1, 8, 9),
    ((5, 3, 8, 9), "auto"): (3, 8, 9),
    ((5, 7, 8, 9), None): (1, 7, 8, 9),
    ((5, 3, 8, 3), "last"): (3, 3, 8),
    ((5, 7, 8, 9), "last"): (9, 7, 8),
    ((5, 1, 7, 8, 9), "auto"): (1, 7, 8, 9),
    ((5, 7, 8, 9, 1), "auto"): (1, 7, 8, 9),
}


@pytest.mark.parametrize("shape, channels", PLACES, ids=str)
def test_the_channels_are_where_the_table_says(shape, channels):
    values = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    grids = Grids.of(values, channels)
    assert grids.shape == PLACES[shape, channels]
    if len(shape) == len(grids.shape):
        expected = values[:, None]
    else:
        last = channels == "last" or (channels == "auto" and shape[-1] in (1, 3, 4))
        expected = np.moveaxis(values, -1, 1) if last else values
    assert_array_equal(grids.load().numpy(), expected)
    assert grids.load().is_contiguous() and grids.spec == InputSpec.grid(*grids.shape)


@pytest.mark.parametrize(
    "shape, channels, said",
    [
        ((5, 3, 8, 3), "auto", "could both be channels. Say channels='first'"),
        ((5, 7, 8, 9), "auto", "are not 1, 3 or 4.*None for volumes"),
        ((5,), "auto", "examples first"),
        ((5, 8), "first", "one of channels"),
        ((0, 8, 8), "auto", "nothing in it"),
        ((5, 2, 2, 2, 2, 2), "auto", "one to three axes"),
    ],
)
def test_an_unclear_shape_is_asked_about(shape, channels, said):
    with pytest.raises(DataError, match=said):
        Grids.of(np.zeros(shape), channels)


def test_bytes_stay_bytes_and_other_numbers_become_float32():
    for kind in (np.uint8, np.bool_):
        assert Grids.of(np.ones((2, 4, 4), kind)).dtype == torch.uint8
    for kind in (np.int16, np.uint16, np.int64, np.float16, np.float64, ">f4", ">i2"):
        grids = Grids.of(np.full((2, 4, 4), 7, kind))
        assert grids.dtype == torch.float32 and grids.load().unique().tolist() == [7]
    assert Grids.of(torch.ones(2, 4, 4, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize(
    "values, said",
    [
        (np.array([[[1.0, np.nan]]]), r"nan at \[0, 0, 1\]"),
        (np.full((1, 2, 2), np.inf), r"inf at \[0, 0, 0\]"),
        (np.full((1, 2, 2), 1e300), r"1e\+300 at"),
        (np.array([[[object()]]]), "Python objects"),
        (np.array([[["a"]]]), "values of type <U1"),
        (np.ones((1, 2, 2), complex), "complex"),
    ],
)
def test_what_is_no_finite_number_is_refused(values, said):
    with pytest.raises(DataError, match=said):
        Grids.of(values)


def from_files(values):
    """The same examples behind the interface of files."""
    paths = tuple(range(len(values)))
    dtype = torch.from_numpy(values).dtype
    return Grids(
        GridFiles(
            paths, tuple(f"{k}.png" for k in paths), values.__getitem__, values.shape[1:], dtype
        )
    )


@pytest.mark.parametrize(
    "rows",
    [[3, 1, 1], np.array([0, -1]), np.arange(5) % 2 == 0, slice(1, 4), slice(None, None, -2), []],
    ids=str,
)
def test_rows_are_numpys_rows_in_memory_and_in_files(rows):
    values = np.random.default_rng(0).integers(0, 256, (5, 1, 3, 4), np.uint8)
    memory, files = Grids(torch.from_numpy(values)), from_files(values)
    index = rows if len(np.shape(rows)) == 0 else np.asarray(rows, bool if len(rows) == 5 else int)
    for grids in (memory, files):
        assert_array_equal(grids[rows].load().numpy(), values[index])
        assert_array_equal(grids.load(rows).numpy(), values[index])
    assert files[rows].names == tuple(f"{k}.png" for k in np.arange(5)[index])
    assert not files[rows].is_in_memory and files.to_memory().names == files.names
    assert memory.nbytes == files.nbytes == values.nbytes


def test_rows_that_do_not_exist_are_refused():
    with pytest.raises(UsageError, match="row 5 of 5"):
        row_numbers([5], 5)
    with pytest.raises(UsageError, match="3 truth values for 5"):
        row_numbers([True, False, True], 5)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_equal_examples_have_equal_keys_wherever_they_are(kind):
    values = np.random.default_rng(0).integers(0, 4, (50, 1, 2, 2)).astype(kind)
    keys = Grids(torch.from_numpy(values)).content_keys(seed=3)
    assert_array_equal(from_files(values).content_keys(seed=3), keys)
    same = (values[:, None] == values[None]).all(axis=(2, 3, 4))
    assert_array_equal(keys[:, None] == keys[None], same)
    assert not np.isin(keys, Grids(torch.from_numpy(values)).content_keys(seed=4)).any()
    if kind is np.float32:
        assert_array_equal(
            Grids(torch.from_numpy(-values * 0)).content_keys(), Grids.of(values * 0).content_keys()
        )


def test_masks_are_coded_by_sorted_values():
    masks = Masks.coded(np.array([[[0, 255]], [[7, -1]]]), "masks", unlabelled=255)
    assert masks.load().tolist() == [[[0, -1]], [[1, -1]]] and masks.load().dtype == torch.int64
    assert masks.classes == ("0", "7") and masks.shape == (1, 2)
    assert masks[[1]].classes == ("0", "7") and masks[[1]].load().tolist() == [[[1, -1]]]
    named = Masks.coded(torch.tensor([[[0.0, 1.0]]]), "masks", classes=["cell", "membrane"])
    assert named.classes == ("cell", "membrane")


@pytest.mark.parametrize(
    "values, options, said",
    [
        (np.arange(256).reshape(1, 16, 16), {}, "256 different values, more than 255"),
        (np.zeros((1, 2, 2)), {"classes": ["a", "b"]}, "1 values 0; 2 classes are named"),
        (np.full((1, 2, 2), -1), {}, "no pixel has a class"),
        (np.full((1, 2, 2), 0.5), {}, "not whole"),
        (np.array([[["a"]]]), {}, "expected whole numbers"),
        (np.zeros((1, 1, 2, 2, 2)), {}, "expected"),
    ],
)
def test_masks_that_hold_no_classes_are_refused(values, options, said):
    with pytest.raises(DataError, match=said):
        Masks.coded(values, "masks", **options)


def test_a_table_has_one_row_and_one_mask_per_grid():
    import pandas as pd

    grids, masks = Grids.of(np.zeros((2, 4, 4))), Masks.coded(np.zeros((2, 4, 3)), "masks")
    with pytest.raises(DataError, match="3 rows, 2 grids"):
        GridTable("mine", pd.DataFrame(index=range(3)), grids)
    with pytest.raises(DataError, match=r"masks of size \(4, 3\) for grids of size \(4, 4\)"):
        GridTable("mine", pd.DataFrame(index=range(2)), grids, masks)
