"""Grids from wherever they are."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ansatz.data.files import LIMIT_BYTES, checked_path
from ansatz.data.grids.arrays import from_arrays
from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.folder import list_folder
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.idx import is_idx, labels_beside, read_idx
from ansatz.data.grids.image_file import Limits
from ansatz.data.grids.layout import as_values, channels_first
from ansatz.data.grids.listing import Listing, family
from ansatz.data.grids.options import Options
from ansatz.data.grids.path_table import list_table
from ansatz.data.grids.signals import read_signals
from ansatz.data.grids.volumes import load_array
from ansatz.data.npz import load_npz
from ansatz.errors import DataError, UsageError

_TABLES = frozenset(".csv .tsv .txt .parquet .pq .arrow .feather .ipc".split())


def read_grids(
    data: Any,
    *,
    size: int | Sequence[int] | None = None,
    channels: int | str | None = "auto",
    image: str | None = None,
    masks: Any = None,
    classes: Sequence[str] | None = None,
    unlabelled: int | None = None,
    signals: bool = False,
    target: Sequence[str] = (),
    limit_pixels: int = Limits().pixels,
    limit_bytes: int = Limits().bytes,
    on_corrupt: str = "refuse",
    memory_limit: str | int | None = None,
) -> GridTable:
    """Reads images, signals or volumes with whatever is known about each of them.

    Args:
        data: a folder of images (see :func:`~.folder.list_folder`), a table with a column of
            paths, ``.npz``, ``.npy``, NIfTI or IDX files, the name of a data set, an array, a
            mapping of arrays, a frame, or a list of paths.
        size: (height, width) that images are brought to, and that arrays must have; None for
            the size that at least half of the images have, else the medians.
        channels: how many: image files can have 1 or 3, arrays must have that many. For arrays
            also where they are: ``"first"``, ``"last"``, None for no channels; ``"auto"`` tells
            by the shape.
        image: the column of paths in a table; None looks for one.
        masks: a folder of masks, a table's column of paths to them, or an array.
        classes: names of the classes that masks or labels give as numbers.
        unlabelled: the value in masks that means "not known".
        signals: whether each row's numbers in a table are one signal.
        target: columns of a table of signals that are no part of the signal.
        limit_pixels: height times width that an image file may declare.
        limit_bytes: that an image file may have.
        on_corrupt: ``"refuse"``, or ``"skip"`` to leave out files that cannot be read.
        memory_limit: what decoded examples may take, ``"4GB"``; None for a quarter of what is
            free. Larger sets stay in their files.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids import read_grids
        >>> read_grids(np.zeros((5, 32, 32, 3), np.uint8)).grids
        Grids(5 of shape (3, 32, 32), uint8, in memory)
    """
    options = Options.of(
        size=size,
        channels=channels,
        classes=classes,
        unlabelled=unlabelled,
        limit_pixels=limit_pixels,
        limit_bytes=limit_bytes,
        on_corrupt=on_corrupt,
        memory_limit=memory_limit,
    )
    if isinstance(data, GridTable):
        return data
    if isinstance(data, str | PathLike):
        return _read_path(str(data), options, image, masks, signals, target)
    if isinstance(data, Grids | np.ndarray | Tensor):
        return _from_array(data, masks, options)
    if signals:
        return read_signals(data, target)
    if hasattr(data, "columns"):
        return assemble(list_table(data, "the table", Path(), image, masks), options)
    if isinstance(data, Mapping):
        given = {**data, **({} if masks is None else {"masks": masks})}
        return from_arrays(given, "the arrays", options)
    if isinstance(data, Sequence) and data and isinstance(data[0], str | PathLike):
        return assemble(_from_paths(data, masks), options)
    return _from_array(np.asarray(data), masks, options)


def _read_path(
    given: str,
    options: Options,
    image: str | None,
    masks: Any,
    signals: bool,
    target: Sequence[str],
) -> GridTable:
    path = Path(given)
    named = None if path.exists() else _data_set(given)
    if named is not None:
        return named
    if path.is_dir():
        beside = None if masks is None else _mask_folder(path, masks)
        return assemble(list_folder(path, beside, skip=options.skips), options)
    path = checked_path(given)
    ending = path.suffix.lower()
    if is_idx(path):
        return _from_idx(path, options)
    if ending == ".npz":
        return from_arrays(load_npz(path, LIMIT_BYTES), given, options)
    if ending == ".npy":
        return _from_array(load_array(path), masks, options, given)
    if family(path):
        return assemble(Listing(given, [path], [path.name], {"image": [path.name]}), options)
    if signals:
        return read_signals(path, target)
    if ending in _TABLES or path.name.lower().endswith((".csv.gz", ".tsv.gz")):
        from ansatz.data.table import read_table

        table = read_table(path)
        listing = list_table(table.frame, given, path.parent, image, masks)
        listing.notes += table.notes
        return assemble(listing, options)
    raise DataError(
        f"{given}: {ending or path.name} files hold no images that are read. Give a folder, "
        ".npz, .npy, NIfTI, IDX, or a table with a column of paths."
    )


def _data_set(name: str) -> GridTable | None:
    from ansatz.data.registry import load, names

    if name not in names():
        return None
    found = load(name)
    if found.grids is None:
        raise UsageError(f"data set '{name}' is a table, not images; mnist is one of images.")
    target = found.target if isinstance(found.target, str) else None
    frame = found.frame
    if len(found.splits) == 1:
        part = np.full(len(frame), "train", dtype=object)
        part[found.splits[0][1]] = "test"
        frame = frame.assign(split=part)
    return GridTable(name, frame, found.grids, found.masks, [], target)


def _mask_folder(folder: Path, masks: Any) -> Path:
    if not isinstance(masks, str | PathLike):
        raise UsageError(f"masks of a folder are a folder, got {type(masks).__name__}.")
    inside = folder / masks
    return inside if inside.is_dir() else Path(masks)


def _from_array(data: Any, masks: Any, options: Options, origin: str = "the array") -> GridTable:
    import pandas as pd

    if masks is not None:
        given = data.load() if isinstance(data, Grids) else data
        place = options._replace(place="first") if isinstance(data, Grids) else options
        return from_arrays({"x": given, "masks": masks}, origin, place)
    grids = data
    if not isinstance(data, Grids):
        values = channels_first(
            as_values(data, origin),
            options.place,
            origin,
            count=options.channels,
            size=options.size,
        )
        grids = Grids(values.contiguous())
    return GridTable(origin, pd.DataFrame(index=range(len(grids))), grids)


def _from_paths(data: Sequence[Any], masks: Any) -> Listing:
    paths = [Path(each) for each in data]
    names = [str(each) for each in data]
    listing = Listing("the list of files", paths, names, {"image": list(names)})
    if masks is not None:
        listing.masks, listing.target = [Path(each) for each in masks], "mask"
        if len(listing.masks) != len(paths):
            raise UsageError(f"{len(paths)} images and {len(listing.masks)} masks.")
    return listing


def _from_idx(path: Path, options: Options) -> GridTable:
    values = read_idx(path)
    if values.ndim < 2:
        raise DataError(f"{path} holds labels; give the file of images that belongs to it.")
    beside = labels_beside(path)
    if beside is None:
        table = from_arrays({"x": values}, str(path), options)
        table.notes.append(f"no labels beside {path.name}: the images have no classes.")
        return table
    labels = read_idx(beside)
    names = options.classes or tuple(str(k) for k in range(int(labels.max(initial=0)) + 1))
    return from_arrays({"x": values, "class": labels}, str(path), options._replace(classes=names))
