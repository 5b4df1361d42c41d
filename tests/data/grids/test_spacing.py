"""Volumes of several spacings: positions in mm are kept, and masks come back to their voxels."""

import gzip
import struct

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ansatz.data.grids import read_grids
from ansatz.data.grids.nifti import encode_like, read_header, read_nifti
from ansatz.data.grids.spacing import resample
from ansatz.errors import DataError, UsageError


def write(path, values, widths):
    """A NIfTI-1 file; widths as in values.shape, slowest axis first."""
    raw = bytearray(352)
    struct.pack_into("<i", raw, 0, 348)
    struct.pack_into("<8h", raw, 40, 3, *values.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<h", raw, 70, {"u1": 2, "f4": 16}[values.dtype.str[1:]])
    struct.pack_into("<8f", raw, 76, 1, *widths[::-1], 1, 1, 1, 1)
    struct.pack_into("<3f", raw, 108, 352, 1, 0)
    struct.pack_into("<4f", raw, 280, *(1.5, 0, 0, -40.0))  # srow_x of the affine
    raw[344:348] = b"n+1\0"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(bytes(raw) + values.tobytes()))


def centres(count, width):
    return (np.arange(count) + 0.5) * width


def ball(widths, side=24.0, radius=8.0):
    axes = [centres(round(side / w), w) - side / 2 for w in widths]
    return (sum(a**2 for a in np.meshgrid(*axes, indexing="ij")) < radius**2).astype(np.uint8)


@pytest.mark.parametrize("other", [0.4, 0.7, 1.3, 2.0])
def test_a_ramp_in_mm_stays_the_ramp(other):
    ramp = 3.0 * centres(40, 1.0).astype(np.float32)[:, None] + np.zeros((1, 4), np.float32)
    found = resample(ramp, (1.0, 1.0), (other, 1.0), mode="linear")[:, 0]
    place = centres(len(found), other)
    inner = (place > 0.5) & (place < 39.5)  # beyond the outer centres the border holds
    assert inner.sum() > 15
    assert_allclose(found[inner], 3 * place[inner], rtol=1e-5)


def test_a_mask_goes_to_finer_voxels_and_back():
    mask = ball((1.0, 1.0, 2.0))
    fine = resample(mask, (1.0, 1.0, 2.0), (0.5, 0.5, 0.5), mode="nearest")
    back = resample(fine, (0.5, 0.5, 0.5), (1.0, 1.0, 2.0), mode="nearest", size=mask.shape)
    assert_array_equal(back, mask)


@pytest.mark.parametrize("widths", [(1.5, 1.0, 1.0), (2.0, 1.0, 0.75), (0.8, 0.8, 0.8)])
def test_dice_of_a_ball_does_not_depend_on_the_spacing(widths):
    found = resample(ball(widths), widths, (1.0, 1.0, 1.0), mode="nearest", size=(24, 24, 24))
    truth = ball((1.0, 1.0, 1.0))
    assert 2 * (found & truth).sum() / (found.sum() + truth.sum()) > 0.93


@pytest.fixture
def volumes(tmp_path):
    for k, widths in enumerate([(2.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]):
        write(tmp_path / f"images/{k}.nii.gz", ball(widths).astype(np.float32), widths)
        write(tmp_path / f"masks/{k}.nii.gz", ball(widths), widths)
    return tmp_path


def test_volumes_are_brought_to_the_median_spacing(volumes):
    table = read_grids(volumes / "images", masks=volumes / "masks")
    assert table.grids.shape == (1, 24, 24, 24) and table.grids.spacing == (1.0, 1.0, 1.0)
    assert table.grids[[1]].spacing == (1.0, 1.0, 1.0)
    assert "1 of 3 volumes resampled to a spacing of 1 x 1 x 1" in " ".join(table.notes)
    assert set(table.masks.load().unique().tolist()) == {0, 1}


def test_a_spacing_is_in_the_order_of_the_header(volumes):
    table = read_grids(volumes / "images", spacing=(1, 1, 2))  # i, j, k
    assert table.grids.shape == (1, 12, 24, 24) and table.grids.spacing == (2.0, 1.0, 1.0)


def test_none_keeps_the_voxels(volumes):
    with pytest.raises(DataError, match="arrays keep one"):
        read_grids(volumes / "images", spacing="none")
    assert read_grids([volumes / "images/0.nii.gz"], spacing="none").grids.shape == (1, 12, 24, 24)


def test_masks_are_written_with_the_header_of_their_volume(volumes, tmp_path):
    path = volumes / "images/0.nii.gz"
    made = tmp_path / "made.nii.gz"
    made.write_bytes(encode_like(path, ball((2.0, 1.0, 1.0))))
    assert_array_equal(read_nifti(made, 2**20), ball((2.0, 1.0, 1.0)))
    assert read_header(made).widths == (2.0, 1.0, 1.0)
    old, new = (gzip.decompress(each.read_bytes()) for each in (path, made))
    assert old[252:344] == new[252:344]  # qform and sform


@pytest.mark.parametrize("odd", [(1, 1, 0), (1, -1, 1), (1,) * 4, (), "1,1,1", ("a",)])
def test_a_spacing_that_cannot_be_is_refused(volumes, odd):
    with pytest.raises(UsageError, match="spacing"):
        read_grids(volumes / "images", spacing=odd)


def test_a_wrong_number_of_widths_is_refused(volumes):
    with pytest.raises(UsageError, match=r"2 values, .*0.nii.gz has 3 axes"):
        read_grids(volumes / "images", spacing=(1, 1))


def test_a_header_with_nan_is_named(volumes):
    write(volumes / "images/1.nii.gz", ball((1.0, 1.0, 1.0)), (1.0, float("nan"), 1.0))
    with pytest.raises(DataError, match=r"1.nii.gz: a spacing \(pixdim\) of 1 x nan x 1"):
        read_grids(volumes / "images")
