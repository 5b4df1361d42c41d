"""NIfTI files: the voxels, their spacing, and masks with the header of their volume."""

import gzip
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ansatz.errors import DataError
from ansatz.storage.decoding import decoding

_HEADER, _HEADER_2 = 348, 540  # bytes of NIfTI-1 and of NIfTI-2
_FARTHEST = 2**24  # bytes of extensions before the voxels
_MAGIC, _MAGIC_2 = b"n+1\0", b"n+2\0\r\n\x1a\n"  # header and volume in one file
_TYPES = {  # the code in the header -> the type of a voxel
    **{2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8"},
    **{256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"},
}


def read_nifti(path: Path, limit_bytes: int) -> np.ndarray:
    r"""A volume ``(D, H, W)``, or ``(C, D, H, W)`` where the file has a fourth axis.

    The file's axes (i, j, k) run from the fastest to the slowest; here k is D, j is H and i is W.
    Where the header gives a slope s and an intercept t, a voxel v means s v + t.

    References:
        Cox et al. (2004), A (sort of) new image data format standard: NIfTI-1. NIfTI-2 (2011) has
        the same fields, wider and in another order.
    """
    with _opened(path) as file:
        head = _header(_leading(file), path)
        needed = head.voxels * head.dtype.itemsize
        if needed > limit_bytes:
            raise DataError(f"{path} claims {needed:,} bytes of voxels, over {limit_bytes:,}.")
        file.read(head.start - head.length)
        # No more than the header claims is unpacked, and at most the limit.
        raw = file.read(needed)
    if len(raw) < needed:
        sizes = " x ".join(map(str, head.shape))
        raise DataError(f"{path} claims {sizes} voxels, more than it holds: truncated.")
    values = np.frombuffer(raw, head.dtype, head.voxels).reshape(head.shape)  # slowest axis first
    if head.slope == 1 and head.intercept == 0:
        return values.astype(head.dtype.newbyteorder("="))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused later
        return (values.astype(np.float64) * head.slope + head.intercept).astype(np.float32)


def is_nifti(path: Path) -> bool:
    """Tests whether a file is called as NIfTI files are."""
    return path.name.lower().endswith((".nii", ".nii.gz"))


def read_header(path: Path) -> "Header":
    """The header alone; no voxel is read."""
    with _opened(path) as file:
        return _header(_leading(file), path)


def encode_like(path: Path, labels: np.ndarray) -> bytes:
    """A packed NIfTI file of a mask ``(D, H, W)``, uint8 or uint16, with the header of ``path``.

    The spacing and the affine maps are those of the volume; sizes, type and scaling are the mask's.
    """
    with _opened(path) as file:
        raw = bytearray(_leading(file))
    order = _byte_order(bytes(raw), path)
    sizes = (labels.ndim, *reversed(labels.shape), *[1] * (7 - labels.ndim))
    code = {1: 2, 2: 512}[labels.dtype.itemsize]
    bits, start = 8 * labels.dtype.itemsize, len(raw) + 4
    if len(raw) == _HEADER:
        struct.pack_into(f"{order}8h", raw, 40, *sizes)
        struct.pack_into(f"{order}2h", raw, 70, code, bits)
        struct.pack_into(f"{order}3f", raw, 108, start, 1.0, 0.0)
        struct.pack_into(f"{order}2f", raw, 124, 0.0, 0.0)  # the range of display: not known
    else:
        struct.pack_into(f"{order}2h", raw, 12, code, bits)
        struct.pack_into(f"{order}8q", raw, 16, *sizes)
        struct.pack_into(f"{order}q4d", raw, 168, start, 1.0, 0.0, 0.0, 0.0)
    voxels = labels.astype(np.dtype(f"{order}{labels.dtype.str[1:]}")).tobytes()
    return gzip.compress(bytes(raw) + bytes(4) + voxels, mtime=0)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with decoding(path, "NIfTI file"):
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            yield file


class Header(NamedTuple):
    """What a NIfTI header says; shape and widths from the slowest axis to the fastest."""

    length: int
    shape: tuple[int, ...]
    dtype: np.dtype
    start: int  # the byte at which the voxels begin
    slope: float
    intercept: float
    widths: tuple[float, ...]  # of a voxel along each axis that is not the channels'

    @property
    def voxels(self) -> int:
        return math.prod(self.shape)


def _leading(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """The header, whose first number is its length."""
    first = file.read(_HEADER)
    is_second = first[:4] in (struct.pack("<i", _HEADER_2), struct.pack(">i", _HEADER_2))
    return first + file.read(_HEADER_2 - _HEADER) if is_second else first


def _header(raw: bytes, path: Path) -> Header:
    order = _byte_order(raw, path)
    if len(raw) == _HEADER:
        sizes = struct.unpack_from(f"{order}8h", raw, 40)
        (code,) = struct.unpack_from(f"{order}h", raw, 70)
        start, slope, intercept = struct.unpack_from(f"{order}3f", raw, 108)
        widths = struct.unpack_from(f"{order}7f", raw, 80)
    else:
        sizes = struct.unpack_from(f"{order}8q", raw, 16)
        (code,) = struct.unpack_from(f"{order}h", raw, 12)
        start, slope, intercept = struct.unpack_from(f"{order}q2d", raw, 168)
        widths = struct.unpack_from(f"{order}7d", raw, 112)
    if code not in _TYPES:
        raise DataError(f"{path}: voxels of NIfTI type {code} are not read, only plain numbers.")
    if not len(raw) <= start <= _FARTHEST:
        raise DataError(f"{path}: its voxels begin at byte {start:g}, which cannot be.")
    if slope == 0 or not np.isfinite([slope, intercept]).all():
        slope, intercept = 1.0, 0.0  # the standard's way of saying "not scaled"
    dtype = np.dtype(order + _TYPES[code])
    shape = _shape(sizes, path)
    widths = tuple(reversed(widths[: min(len(shape), 3)]))
    return Header(len(raw), shape, dtype, int(start), slope, intercept, widths)


def _byte_order(raw: bytes, path: Path) -> str:
    if len(raw) < _HEADER:
        raise DataError(f"{path} is not a NIfTI file: {len(raw)} bytes, its header has {_HEADER}.")
    for order in "<>":
        if struct.unpack_from(f"{order}i", raw)[0] == _HEADER:
            if raw[344:348] == b"ni1\0":
                raise DataError(f"{path} is the header of a pair .hdr/.img; save it as one .nii.")
            if raw[344:348] == _MAGIC:
                return order
        if len(raw) == _HEADER_2 and raw[4:12] == _MAGIC_2:
            if struct.unpack_from(f"{order}i", raw)[0] == _HEADER_2:
                return order
    raise DataError(f"{path} is not a NIfTI file: its header does not begin like one.")


def _shape(sizes: tuple[int, ...], path: Path) -> tuple[int, ...]:
    axes = sizes[0]
    found = list(sizes[1 : axes + 1]) if 1 <= axes <= 7 else []
    while len(found) > 3 and found[-1] == 1:
        found.pop()
    if not 1 <= len(found) <= 4 or min(found) < 1:
        raise DataError(f"{path}: sizes {sizes} are not those of a volume.")
    return tuple(reversed(found))
