"""NIfTI: volumes of medical scanners, one file each."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ansatz.errors import DataError

_HEADER, _HEADER_2 = 348, 540  # bytes of NIfTI-1 and of NIfTI-2
_FARTHEST = 2**24  # bytes of extensions before the voxels
_MAGIC, _MAGIC_2 = b"n+1\0", b"n+2\0\r\n\x1a\n"  # header and volume in one file
_TYPES = {  # the code in the header -> the type of a voxel
    2: "u1",
    4: "i2",
    8: "i4",
    16: "f4",
    64: "f8",
    256: "i1",
    512: "u2",
    768: "u4",
    1024: "i8",
    1280: "u8",
}


def read_nifti(path: Path, limit_bytes: int) -> np.ndarray:
    r"""A volume ``(D, H, W)``, or ``(C, D, H, W)`` where the file has a fourth axis.

    The file's axes (i, j, k) run from the fastest to the slowest; here k is D, j is H and i is W.
    Where the header gives a slope s and an intercept t, a voxel v means s v + t.

    Args:
        path: ``.nii`` or ``.nii.gz``.
        limit_bytes: that the voxels may take.

    References:
        Cox et al. (2004), A (sort of) new image data format standard: NIfTI-1. NIfTI-2 (2011) has
        the same fields, wider and in another order.
    """
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            head = _header(_leading(file), path)
            needed = head.voxels * head.dtype.itemsize
            if needed > limit_bytes:
                raise DataError(f"{path} claims {needed:,} bytes of voxels, over {limit_bytes:,}.")
            file.read(head.start - head.length)
            # No more than the header claims is unpacked, and at most the limit.
            raw = file.read(needed)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}. Fetch it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(raw) < needed:
        sizes = " x ".join(map(str, head.shape))
        raise DataError(f"{path} claims {sizes} voxels, more than it holds: truncated.")
    values = np.frombuffer(raw, head.dtype, head.voxels).reshape(head.shape)  # slowest axis first
    if head.slope == 1 and head.intercept == 0:
        return values.astype(head.dtype.newbyteorder("="))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused later
        return (values.astype(np.float64) * head.slope + head.intercept).astype(np.float32)


class _Header(NamedTuple):
    length: int
    shape: tuple[int, ...]
    dtype: np.dtype
    start: int  # the byte at which the voxels begin
    slope: float
    intercept: float

    @property
    def voxels(self) -> int:
        return math.prod(self.shape)


def _leading(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """The header, whose first number is its length."""
    first = file.read(_HEADER)
    is_second = first[:4] in (struct.pack("<i", _HEADER_2), struct.pack(">i", _HEADER_2))
    return first + file.read(_HEADER_2 - _HEADER) if is_second else first


def _header(raw: bytes, path: Path) -> _Header:
    order = _byte_order(raw, path)
    if len(raw) == _HEADER:
        sizes = struct.unpack_from(f"{order}8h", raw, 40)
        (code,) = struct.unpack_from(f"{order}h", raw, 70)
        start, slope, intercept = struct.unpack_from(f"{order}3f", raw, 108)
    else:
        sizes = struct.unpack_from(f"{order}8q", raw, 16)
        (code,) = struct.unpack_from(f"{order}h", raw, 12)
        start, slope, intercept = struct.unpack_from(f"{order}q2d", raw, 168)
    if code not in _TYPES:
        raise DataError(f"{path}: voxels of NIfTI type {code} are not read, only plain numbers.")
    if not len(raw) <= start <= _FARTHEST:
        raise DataError(f"{path}: its voxels begin at byte {start:g}, which cannot be.")
    if slope == 0 or not np.isfinite([slope, intercept]).all():
        slope, intercept = 1.0, 0.0  # the standard's way of saying "not scaled"
    dtype = np.dtype(order + _TYPES[code])
    return _Header(len(raw), _shape(sizes, path), dtype, int(start), slope, intercept)


def write_nifti(path: Path, volume: np.ndarray) -> None:
    """Writes a volume ``(D, H, W)`` or ``(C, D, H, W)``, gzipped where the name ends in ``.gz``."""
    codes = {name: code for code, name in _TYPES.items()}
    little = np.ascontiguousarray(volume, dtype=volume.dtype.newbyteorder("<"))
    name = f"{volume.dtype.kind}{volume.dtype.itemsize}"
    if name not in codes or volume.ndim not in (3, 4):
        raise DataError(f"NIfTI holds (D, H, W) plain numbers, got {volume.shape} {volume.dtype}.")
    header = bytearray(_HEADER + 4)
    struct.pack_into("<i", header, 0, _HEADER)
    sizes = [volume.ndim, *reversed(volume.shape), *[1] * (7 - volume.ndim)]
    struct.pack_into("<8h", header, 40, *sizes)
    struct.pack_into("<2h", header, 70, codes[name], 8 * volume.dtype.itemsize)
    struct.pack_into("<8f", header, 76, *[1.0] * 8)
    struct.pack_into("<3f", header, 108, _HEADER + 4, 1.0, 0.0)
    header[344:348] = _MAGIC
    content = bytes(header) + little.tobytes()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


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
