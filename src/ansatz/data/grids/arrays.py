"""Arrays of many examples: named arrays that belong together, and IDX files."""

import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ansatz.data.files import LIMIT_BYTES, read_bytes
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.layout import as_values, channels_first, doubtful_images
from ansatz.data.grids.masks import Masks
from ansatz.data.grids.options import GridReading
from ansatz.errors import DataError

_INPUTS = ("x", "images", "image", "img", "imgs", "data", "inputs", "volumes", "signals", "t1")
_MASKS = ("mask", "masks", "segmentation", "segmentations", "y", "label", "labels", "target")
_OUTCOMES = ("class", "classes", "y", "label", "labels", "target", "targets")
_NAMES = ("class_names", "label_names", "classes_names")
_PARTS = {"train": "train", "val": "validation", "valid": "validation", "test": "test"}


def from_arrays(arrays: Mapping[str, Any], origin: str, options: GridReading) -> GridTable:
    """Named arrays as grids with their table.

    ``x`` (or images, data, inputs, volumes, signals) are the grids; an array of the same pixels
    called ``masks`` (or y, labels) holds their classes; arrays of N numbers or words are columns.
    ``x_train, y_train, x_test, y_test`` become one table with a column ``split``.
    ``class_names`` gives whole numbers in y their names.
    """
    import pandas as pd

    found = {str(name): _array(values) for name, values in arrays.items()}
    names = next((found.pop(name) for name in _NAMES if name in found), None)
    joined, split = _joined(found, origin)
    key = _grid_name(joined, origin)
    inputs = joined.pop(key)
    what = f"{origin}: array '{key}'"
    values = channels_first(
        as_values(inputs, what), options.place, what, count=options.channels, size=options.size
    )
    grids = Grids(values.contiguous())
    masks_key = _mask_name(joined, grids)
    masks = None
    classes = options.classes if names is None else tuple(map(str, names))
    if masks_key is not None:
        labels = joined.pop(masks_key)
        labels = labels[:, 0] if labels.ndim == len(grids.shape) + 1 else labels
        said = f"{origin}: array '{masks_key}'"
        masks = Masks.coded(labels, said, classes=classes, unlabelled=options.unlabelled)
    frame = pd.DataFrame(index=range(len(grids)))
    for name, column in joined.items():
        for label, numbers in _columns(name, column, len(grids), origin):
            frame[label] = numbers
    if split is not None:
        frame["split"] = split
    target = "mask" if masks is not None else _outcome_name(frame)
    if masks is None and target is not None and classes is not None:
        frame[target] = _named(frame[target].to_numpy(), classes, f"{origin}: '{target}'")
    doubt = doubtful_images(inputs.shape) if options.place == "auto" else None
    notes = [] if doubt is None else [f"array '{key}' {doubt}"]
    return GridTable(origin, frame, grids, masks, notes, target)


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


class _Part(NamedTuple):
    stem: str
    part: str  # empty where the name has none


def _split_name(name: str) -> _Part:
    parts = "|".join(_PARTS)
    after = re.fullmatch(rf"(.+)_({parts})", name)
    before = re.fullmatch(rf"({parts})_(.+)", name)
    if after:
        return _Part(after[1], after[2])
    return _Part(before[2], before[1]) if before else _Part(name, "")


def _joined(
    found: dict[str, np.ndarray], origin: str
) -> tuple[dict[str, np.ndarray], list[str] | None]:
    """Arrays of train, validation and test one after the other, and which row is which."""
    named = {name: _split_name(name) for name in found}
    parts = list(dict.fromkeys(each.part for each in named.values() if each.part))
    if not parts:
        return dict(found), None
    stems = list(dict.fromkeys(each.stem for each in named.values() if each.part))
    by = {(each.stem, each.part): found[name] for name, each in named.items()}
    made: dict[str, np.ndarray] = {}
    for stem in stems:
        arrays = [by.get((stem, part)) for part in parts]
        if any(array is None for array in arrays):
            raise DataError(f"{origin}: '{stem}' is not there for each of {', '.join(parts)}.")
        try:
            made[stem] = np.concatenate([array for array in arrays if array is not None])
        except ValueError as error:
            raise DataError(f"{origin}: the parts of '{stem}' do not fit: {error}.") from None
    lengths = [len(by[stems[0], part]) for part in parts]
    split = [_PARTS[part] for part, n in zip(parts, lengths, strict=True) for _ in range(n)]
    return made, split


def _grid_name(arrays: dict[str, np.ndarray], origin: str) -> str:
    by_name = [name for name in arrays if name.lower() in _INPUTS and arrays[name].ndim >= 2]
    large = [name for name, values in arrays.items() if values.ndim >= 3]
    free = [name for name in large if name.lower() not in _MASKS]
    for candidates in (by_name, free, large):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            break
    shapes = ", ".join(f"{name} {values.shape}" for name, values in arrays.items()) or "none"
    raise DataError(
        f"{origin}: which array holds the grids? Call it 'x' (or images): got {shapes}."
    )


def _mask_name(arrays: dict[str, np.ndarray], grids: Grids) -> str | None:
    size = grids.shape[1:]
    for name, values in arrays.items():
        labels = values[:, 0] if values.ndim == len(size) + 2 and values.shape[1] == 1 else values
        if name.lower() in _MASKS and labels.ndim > 1 and labels.shape[1:] == size:
            return name
    return None


def _columns(
    name: str, values: np.ndarray, count: int, origin: str
) -> list[tuple[str, np.ndarray]]:
    if values.ndim == 0 or len(values) != count:
        raise DataError(f"{origin}: array '{name}' has shape {values.shape} for {count} examples.")
    if values.dtype.hasobject:
        values = np.array([str(value) for value in values.ravel()]).reshape(values.shape)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1:
        return [(name, values)]
    if values.ndim == 2:
        return [(f"{name}{k}", values[:, k - 1]) for k in range(1, values.shape[1] + 1)]
    raise DataError(
        f"{origin}: array '{name}' has shape {values.shape}; expected a number per example, or a "
        "class per pixel (of one-hot masks: argmax over the axis of the classes)."
    )


def _outcome_name(frame: Any) -> str | None:
    return next((name for name in frame.columns if name.lower() in _OUTCOMES), None)


def _named(codes: np.ndarray, classes: tuple[str, ...], what: str) -> np.ndarray:
    """Class codes 0..K-1 by their names."""
    if codes.dtype.kind not in "biu":
        return codes
    if codes.min() < 0 or codes.max() >= len(classes):
        raise DataError(
            f"{what} goes from {codes.min()} to {codes.max()}, but {len(classes)} classes are "
            "named: expected 0, 1, ..., one less than their number."
        )
    return np.array(classes, dtype=object)[codes.astype(np.int64)]


_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IDX_NAME = re.compile(r"(?P<stem>.*)-idx\d-ubyte(?:\.gz)?")


def is_idx(path: Path) -> bool:
    """Tests whether a file's name is one of IDX: ``...-images-idx3-ubyte``, perhaps ``.gz``."""
    return _IDX_NAME.fullmatch(path.name) is not None


def read_idx(path: Path, limit_bytes: int = LIMIT_BYTES) -> np.ndarray:
    """The array in an IDX file, gzipped or not.

    A header of 4 bytes (0, 0, the code of the type, the number of axes) is followed by one
    big-endian 32-bit size per axis, then by the numbers.

    References:
        LeCun, Cortes and Burges (1998), The MNIST database of handwritten digits.
    """
    raw = read_bytes(path, limit_bytes)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_TYPES or not 1 <= raw[3] <= 5:
        raise DataError(f"{path} is not an IDX file: its first bytes are {raw[:4].hex(' ')}.")
    axes, dtype = raw[3], np.dtype(_IDX_TYPES[raw[2]])
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


_CIFAR_NAME = re.compile(r"(data_batch_\d|test_batch)\.bin")
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


def is_cifar(path: Path) -> bool:
    """Tests whether a file's name is one of CIFAR-10's batches: ``data_batch_1.bin``."""
    return _CIFAR_NAME.fullmatch(path.name) is not None


def read_cifar(raw: bytes, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The images ``(N, 3, 32, 32)`` and class codes ``(N,)`` of a batch of CIFAR-10.

    A record is a byte of the class and 3,072 of the image: red, green, blue, row by row.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    size = 1 + 3 * 32 * 32
    if not raw or len(raw) % size:
        length = f"{len(raw):,} bytes, not n x {size:,}"
        raise DataError(f"{where} is not a batch of CIFAR-10: {length}.")
    records = np.frombuffer(raw, np.uint8).reshape(-1, size)
    if records[:, 0].max() >= len(CIFAR10):
        raise DataError(f"{where} has the class {records[:, 0].max()}; CIFAR-10 has 0 to 9.")
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


def labels_beside(path: Path) -> Path | None:
    """The file of labels that belongs to a file of images; None if it is not there."""
    stem = path.name.partition("-idx")[0].replace("images", "labels")
    names = [f"{stem}-idx1-ubyte", f"{stem}-idx1-ubyte.gz"]
    found = (path.with_name(name) for name in names)
    return next((each for each in found if each != path and each.is_file()), None)
