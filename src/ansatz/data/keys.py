"""A number for the content of each row: equal rows have equal keys, wherever they stand."""

import hashlib
from typing import Any

import numpy as np

from ansatz.data.categorical import spelled
from ansatz.data.frames import as_frame, is_frame
from ansatz.seeds import derive

_BLOCK_CELLS = 2**17
_U = np.uint64


def row_keys(*parts: Any, seed: int = 0) -> np.ndarray:
    """Hashes each row's cells to 64 bits, ``(N,)``.

    It does not depend on the order of the rows, of named columns, or on whether a whole number
    is stored as an integer: duplicates have one key, in one file or in two. Two rows that
    differ share a key with probability 2^-64.

    Args:
        parts: tables, arrays or grids with the same number of rows; together they are the row.
        seed: other seeds give unrelated keys.

    Example:
        >>> from ansatz.data import row_keys
        >>> a, b, c = row_keys({"x": [1, 2, 1], "s": ["u", "u", "u"]}, seed=0)
        >>> bool(a == c), bool(a == b)
        (True, False)
    """
    total: Any = None
    for place, part in enumerate(parts):
        if hasattr(part, "content_keys"):
            keys = part.content_keys(seed)
        else:
            keys = cell_keys(part, seed, place)
        total = keys if total is None else total + keys
    return mix(total)


def cell_keys(part: Any, seed: int = 0, place: int = 0) -> np.ndarray:
    """A hash of each row's cells that adds up over the parts of a row."""
    if is_frame(part):
        return _frame_keys(as_frame(part), seed, place)
    return _array_keys(np.asarray(part), seed, place)


def mix(values: np.ndarray) -> np.ndarray:
    """Scatters 64-bit numbers: a bijection after which every bit depends on every bit.

    References:
        Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators (SplitMix64).
    """
    z = values + _U(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    return z ^ (z >> _U(31))


def text_keys(texts: list[str]) -> np.ndarray:
    """A 64-bit hash of each text, the same in every process."""
    return np.array([derive(0, "level", text) for text in texts], dtype=np.uint64)


def _frame_keys(frame: Any, seed: int, place: int) -> np.ndarray:
    numeric, names = [], []
    total = np.zeros(len(frame), dtype=np.uint64)
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            numeric.append(name)
            names.append(f"{place}/{name}")
            continue
        codes, levels = spelled(frame[name])
        hashed = np.append(text_keys(levels), _U(1))[codes]
        total += mix(hashed ^ _U(derive(seed, "column", f"{place}/{name}")))
    if numeric:
        total += _matrix_keys(frame[numeric].to_numpy(dtype=float), seed, names)
    return total


def _array_keys(values: np.ndarray, seed: int, place: int) -> np.ndarray:
    if values.ndim > 2:  # masks: a salt for each of their cells would cost more than the hash
        salt = _U(derive(seed, "array", place))
        return mix(np.array([_digest(row) for row in values], dtype=np.uint64) ^ salt)
    flat = values.reshape(len(values), -1)
    if flat.dtype.kind not in "fiub":
        return _frame_keys(as_frame(flat), seed, place)
    return _matrix_keys(flat, seed, [f"{place}/{k}" for k in range(flat.shape[1])])


def _digest(row: np.ndarray) -> int:
    numbers = np.ascontiguousarray(row, dtype=np.float64) + 0.0  # -0 is 0
    return int.from_bytes(hashlib.blake2b(numbers.tobytes(), digest_size=8).digest(), "big")


def _matrix_keys(values: np.ndarray, seed: int, names: list[str]) -> np.ndarray:
    salt = np.array([derive(seed, "column", name) for name in names], dtype=np.uint64)
    keys = np.empty(len(values), dtype=np.uint64)
    step = max(1, _BLOCK_CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        block = values[start : start + step].astype(np.float64) + 0.0  # -0 is 0
        block[np.isnan(block)] = np.nan  # one bit pattern for all
        bits = block.view(np.uint64)
        keys[start : start + step] = mix(bits ^ salt).sum(axis=1, dtype=np.uint64)
    return keys
