"""Array files as grids, one example each: .npy and NIfTI."""

import gzip
import math
import struct
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import torch

from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.image_file import check_file
from ansatz.data.grids.layout import Channels, as_values, channels_first, check_shape
from ansatz.data.grids.listing import Listing
from ansatz.data.grids.masks import class_names, codes_of, refuse_colour, values_in
from ansatz.data.grids.options import GridReading
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
    with decoding(path, "NIfTI file"):
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


LIMIT_BYTES = 2**30  # a volume is larger than an image: 1024 x 1024 x 1024 bytes


def load_array(path: Path, limit_bytes: int = LIMIT_BYTES) -> np.ndarray:
    """The array in a ``.npy``, ``.nii`` or ``.nii.gz`` file, never unpickled."""
    check_file(path, limit_bytes)
    if path.suffix.lower() != ".npy":
        return read_nifti(path, limit_bytes)
    with decoding(path, ".npy file"):
        try:
            # Mapped first: the shape in the header is allocated only if the file is that long.
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError as error:
            if "allow_pickle" in str(error) or "Python objects" in str(error):
                raise DataError(
                    f"{path} holds Python objects, which are never loaded. Save a plain array."
                ) from None
            raise


def array_files(
    listing: Listing, options: GridReading, damaged: dict[int, DataError], notes: list[str]
) -> tuple[GridFiles, tuple[GridFiles, tuple[str, ...]] | None]:
    """Array files of one shape, and their masks if they have some; arrays are never resized."""
    first = _first(listing.paths, damaged)
    place, count = _place(first, listing.paths[0], options), options.channels
    grid = _as_grid(first, place, listing.paths[0], count)
    check_shape(grid.shape, options.channels, options.size, str(listing.paths[0]))
    dtype = torch.uint8 if first.dtype == np.uint8 else torch.float32
    read = partial(_read, place=place, count=count, shape=grid.shape, dtype=dtype)
    files = GridFiles(tuple(listing.paths), tuple(listing.names), read, grid.shape, dtype)
    if not listing.masks:
        return files, None
    refuse_colour(options.unlabelled, f"masks like {listing.masks[0].name}")
    found = _values(listing, damaged) - {options.unlabelled}
    if not found and damaged:
        raise damaged[min(damaged)]
    values = sorted(value for value in found if value >= 0)
    named = class_names(values, options.classes, f"masks like {listing.masks[0].name}")
    coded = partial(_coded, values=np.array(values), size=grid.shape[1:])
    shape = (1, *grid.shape[1:])
    masks = GridFiles(tuple(listing.masks), tuple(listing.names), coded, shape, torch.uint8)
    return files, (masks, named)


def _place(array: np.ndarray, path: Path, options: GridReading) -> Channels:
    """NIfTI says what its axes are; an array of three large axes is a volume."""
    if options.place != "auto":
        return options.place
    if path.suffix.lower() != ".npy":
        return "first" if array.ndim == 4 else None
    usual = (1, 3, 4)
    is_volume = array.ndim == 3 and array.shape[0] not in usual and array.shape[-1] not in usual
    return None if is_volume and options.channels is None else "auto"


def _first(paths: list[Path], damaged: dict[int, DataError]) -> np.ndarray:
    for place, path in enumerate(paths):
        try:
            return load_array(path)
        except DataError as error:
            damaged[place] = error
    raise damaged[0]


def _as_grid(array: np.ndarray, place: Channels, path: Path, count: int | None) -> np.ndarray:
    values = channels_first(as_values(array[None], str(path)), place, str(path), count=count)
    return np.ascontiguousarray(values[0].numpy())


def _read(
    path: Path, place: Channels, count: int | None, shape: tuple[int, ...], dtype: torch.dtype
) -> np.ndarray:
    grid = _as_grid(load_array(path), place, path, count)
    if grid.shape != shape:
        raise DataError(f"{path} has shape {grid.shape}, the first file {shape}: arrays keep one.")
    if dtype == torch.uint8 and grid.dtype != np.uint8:
        raise DataError(f"{path} holds {grid.dtype} numbers, the first file bytes: give one kind.")
    return grid.astype(np.float32) if dtype == torch.float32 else grid


def _values(listing: Listing, damaged: dict[int, DataError]) -> set[int]:
    found: set[int] = set()
    for place, path in enumerate(listing.masks):
        try:
            found.update(values_in(_numbers(path)))
        except DataError as error:
            damaged.setdefault(place, error)
    return found


def _numbers(path: Path) -> np.ndarray:
    array = load_array(path)
    if array.dtype.kind not in "biu" and not (np.mod(array, 1) == 0).all():
        raise DataError(f"{path} holds numbers that are not whole; masks hold a class per pixel.")
    return array if array.dtype == np.uint8 else array.astype(np.int64)


def _coded(path: Path, values: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    numbers = _numbers(path)
    if numbers.shape != size:
        raise DataError(f"{path} has size {numbers.shape}, its example {size}: they must agree.")
    return codes_of(numbers, values)[None]
