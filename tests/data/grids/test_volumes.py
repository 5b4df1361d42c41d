import gzip
import struct

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz.data.grids import read_grids
from ansatz.data.grids.nifti import _TYPES, read_nifti
from ansatz.errors import DataError

LIMIT = 10**7


def volume(*shape, dtype=np.int16):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_what_was_written_is_read(tmp_path, dtype, name):
    values = volume(2, 3, 4, dtype=dtype)
    write_nifti(tmp_path / name, values)
    found = read_nifti(tmp_path / name, LIMIT)
    assert_array_equal(found, values)
    assert found.dtype == values.dtype


def header(order, sizes, code, slope=1.0, intercept=0.0, offset=352.0):
    """The fields of the standard, at the bytes where it puts them."""
    raw = bytearray(352)
    struct.pack_into(f"{order}i", raw, 0, 348)
    struct.pack_into(f"{order}8h", raw, 40, len(sizes), *sizes, *[1] * (7 - len(sizes)))
    struct.pack_into(f"{order}h", raw, 70, code)
    struct.pack_into(f"{order}3f", raw, 108, offset, slope, intercept)
    raw[344:348] = b"n+1\0"
    return bytes(raw)


def write_nifti(path, values):
    code = next(k for k, name in _TYPES.items() if np.dtype(name) == values.dtype)
    content = header("<", values.shape[::-1], code) + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def second_header(order, sizes, code, slope=1.0, intercept=0.0, offset=544):
    """NIfTI-2: the same fields, wider, at other bytes."""
    raw = bytearray(544)
    struct.pack_into(f"{order}i", raw, 0, 540)
    raw[4:12] = b"n+2\0\r\n\x1a\n"
    struct.pack_into(f"{order}h", raw, 12, code)
    struct.pack_into(f"{order}8q", raw, 16, len(sizes), *sizes, *[1] * (7 - len(sizes)))
    struct.pack_into(f"{order}q2d", raw, 168, offset, slope, intercept)
    return bytes(raw)


both = pytest.mark.parametrize("head", [header, second_header])


@both
@pytest.mark.parametrize("order", "<>")
def test_the_first_axis_is_the_fastest_in_either_byte_order(tmp_path, order, head):
    voxel = np.arange(24, dtype=f"{order}i2")  # x fastest, 4 x 3 x 2
    (tmp_path / "a.nii").write_bytes(head(order, (4, 3, 2), 4) + voxel.tobytes())
    found = read_nifti(tmp_path / "a.nii", LIMIT)
    x, y, z = 3, 1, 1
    assert found.shape == (2, 3, 4) and found[z, y, x] == x + 4 * (y + 3 * z)


@both
def test_slope_and_intercept_give_the_meant_value(tmp_path, head):
    voxels = np.arange(8, dtype="<i2").tobytes()
    (tmp_path / "a.nii").write_bytes(head("<", (2, 2, 2), 4, 0.5, -3.0) + voxels)
    found = read_nifti(tmp_path / "a.nii", LIMIT)
    assert_array_equal(found.ravel(), 0.5 * np.arange(8) - 3)
    (tmp_path / "a.nii").write_bytes(head("<", (2, 2, 2), 4, 0.0, 0.0) + voxels)
    assert_array_equal(read_nifti(tmp_path / "a.nii", LIMIT).ravel(), np.arange(8))


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is empty"),
        (b"x" * 400, "does not begin like one"),
        (bytes(100), "100 bytes, its header has 348"),
        (header("<", (2, 2, 2), 4) + bytes(15), "claims 2 x 2 x 2 voxels, more than it holds"),
        (header("<", (30000, 30000, 30000), 64), "claims 216,000,000,000,000 bytes"),
        (header("<", (2, -2, 2), 4) + bytes(16), "not those of a volume"),
        (header("<", (2, 2, 2), 128) + bytes(24), "NIfTI type 128"),
        (struct.pack("<i", 540) + bytes(536), "does not begin like one"),
        (second_header("<", (2, 2, 2), 4)[:400], "does not begin like one"),
        (second_header("<", (2, 2, 2), 4) + bytes(15), "claims 2 x 2 x 2 voxels, more than it"),
        (second_header("<", (2**40, 2**40, 2), 64), "claims 19,342,813,113,834,066,795,298,816"),
        (second_header("<", (2, 2, 2), 4, offset=400) + bytes(16), "begin at byte 400"),
        (gzip.compress(header("<", (2000, 2000, 2000), 64)), "claims 64,000,000,000 bytes"),
        (
            gzip.compress(header("<", (2, 2, 2), 4))[:-9],
            "a.nii.gz is not a readable NIfTI file: Compressed file ended before",
        ),
        (header("<", (2, 2, 2), 4, offset=1e30) + bytes(16), r"begin at byte 1e\+30"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_what_is_no_volume_is_refused(tmp_path, content, said):
    name = "a.nii.gz" if content[:2] == b"\x1f\x8b" else "a.nii"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        read_grids(tmp_path / name)


def test_no_more_is_unpacked_than_the_header_claims(tmp_path):
    labels = np.zeros((24, 512, 512), np.uint8)  # such masks shrink a thousand times
    write_nifti(tmp_path / "a.nii.gz", labels)
    assert read_nifti(tmp_path / "a.nii.gz", 2**24).shape == labels.shape
    (tmp_path / "b.nii.gz").write_bytes(
        gzip.compress(header("<", (2, 2, 2), 4) + bytes(16) + bytes(10**7))
    )
    assert read_nifti(tmp_path / "b.nii.gz", 16).shape == (2, 2, 2)


@both
def test_damaged_headers_end_in_one_line_or_a_volume(tmp_path, head):
    rng = np.random.default_rng(0)
    good = np.frombuffer(head("<", (2, 3, 4), 4) + bytes(48), np.uint8)
    for _ in range(100):
        bad = good.copy()
        bad[rng.integers(0, 192, 2)] = rng.integers(0, 256, 2)
        (tmp_path / "a.nii").write_bytes(bad.tobytes())
        try:
            read_nifti(tmp_path / "a.nii", LIMIT)
        except DataError as error:
            assert "a.nii" in str(error)


def test_a_folder_of_volumes_with_masks(tmp_path):
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    for k in range(3):
        write_nifti(tmp_path / f"images/{k}.nii.gz", volume(2, 3, 4) + k)
        write_nifti(tmp_path / f"labels/{k}.nii.gz", (volume(2, 3, 4) % 2 * 5).astype(np.uint8))
    table = read_grids(tmp_path)
    assert table.grids.shape == (1, 2, 3, 4) and table.grids.dtype == torch.float32
    assert_array_equal(table.grids.load()[2, 0], volume(2, 3, 4) + 2)
    assert_array_equal(table.masks.load()[1], volume(2, 3, 4) % 2)
    assert table.masks.classes == ("0", "5")
    files = read_grids(tmp_path, memory_limit=10)
    assert_array_equal(files.grids.load(), table.grids.load())
    write_nifti(tmp_path / "labels/1.nii.gz", volume(2, 3, 3, dtype=np.uint8))
    with pytest.raises(DataError, match=r"1.nii.gz has size \(2, 3, 3\), its example \(2, 3, 4\)"):
        read_grids(tmp_path)


def test_arrays_of_several_shapes_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((5, 6, 7)))
    np.save(tmp_path / "b.npy", np.zeros((5, 6, 8)))
    with pytest.raises(DataError, match=r"b.npy has shape \(1, 5, 6, 8\), the first file"):
        read_grids(tmp_path)
