"""IDX: the files of MNIST and of those who followed it."""

import re
import struct
from pathlib import Path

import numpy as np

from ansatz.data.files import LIMIT_BYTES, read_bytes
from ansatz.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NAME = re.compile(r"(?P<stem>.*)-idx\d-ubyte(?:\.gz)?")


def is_idx(path: Path) -> bool:
    """Whether a file is called like an IDX file: ``...-images-idx3-ubyte``, perhaps ``.gz``."""
    return _NAME.fullmatch(path.name) is not None


def read_idx(path: Path, limit_bytes: int = LIMIT_BYTES) -> np.ndarray:
    """The array in an IDX file, gzipped or not.

    A header of 4 bytes (0, 0, the code of the type, the number of axes) is followed by one
    big-endian 32-bit size per axis, then by the numbers.

    Args:
        path: the file.
        limit_bytes: what it may unpack to.

    References:
        LeCun, Cortes and Burges (1998), The MNIST database of handwritten digits.
    """
    raw = read_bytes(path, limit_bytes)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES or not 1 <= raw[3] <= 5:
        raise DataError(f"{path} is not an IDX file: its first bytes are {raw[:4].hex(' ')}.")
    axes, dtype = raw[3], np.dtype(_TYPES[raw[2]])
    start = 4 + 4 * axes
    if len(raw) < start:
        raise DataError(f"{path} ends in its header.")
    shape = struct.unpack_from(f">{axes}I", raw, 4)
    count = int(np.prod(shape, dtype=object))
    if len(raw) != start + count * dtype.itemsize:
        raise DataError(
            f"{path} claims {' x '.join(map(str, shape))} numbers; it holds "
            f"{len(raw) - start:,} bytes of them. Fetch it again."
        )
    values = np.frombuffer(raw, dtype, count, start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def labels_beside(path: Path) -> Path | None:
    """The file of labels that belongs to a file of images; None if it is not there."""
    stem = path.name.partition("-idx")[0].replace("images", "labels")
    names = [f"{stem}-idx1-ubyte", f"{stem}-idx1-ubyte.gz"]
    found = (path.with_name(name) for name in names)
    return next((each for each in found if each != path and each.is_file()), None)
