"""Reads grids from wherever they are."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from torch import Tensor

from ansatz.data.files import LIMIT_BYTES, checked_path, load_npz, read_bytes
from ansatz.data.frames import as_frame
from ansatz.data.grids.arrays import (
    CIFAR10,
    from_arrays,
    is_cifar,
    is_idx,
    labels_beside,
    read_cifar,
    read_idx,
)
from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.find import ARRAYS, is_data_set, is_table, list_files
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.image import look
from ansatz.data.grids.layout import as_values, channels_first
from ansatz.data.grids.listing import ADVICE, Listing, family, report_damaged
from ansatz.data.grids.nifti import is_nifti
from ansatz.data.grids.options import GridReading, ReadGridsOptions, refuse_given
from ansatz.data.grids.tiles import cut_tiles
from ansatz.data.grids.volumes import load_array
from ansatz.errors import DataError, UsageError


def read_grids(data: Any, **options: Unpack[ReadGridsOptions]) -> GridTable:
    """Reads images, signals or volumes with whatever is known about each of them.

    Args:
        data: a folder of images (see :func:`~.folder.list_folder`), a table with a column of
            paths, ``.npz``, ``.npy``, NIfTI or IDX files, the name of a data set, an array, a
            mapping of arrays, a frame, or a list of paths.
        size: (height, width) that images are brought to, and that arrays must have; None for
            the size that at least half of the images have, else the medians.
        channels: how many: image files can have 1 or 3, arrays must have that many. For arrays
            also where they are: ``"first"``, ``"last"``, None or ``"none"`` for no channels;
            ``"auto"`` decides by the shape.
        image: the column of paths in a table, which may lack their ending (``0001``); None looks
            for one.
        masks: a folder of masks, a table's column of paths to them, an array, or, for one file
            of several pages, a file of as many.
        pages: what the pages of image files (TIFF stacks, animations) are: ``"images"``, an
            example each; ``"volume"``, the slices of one; ``"first"``, left out but the first.
            ``"auto"`` takes the first and says so; of one file with a file of masks, all as images.
        tiles: number of tiles that each example with its mask is cut into along its longest axis
            (:func:`~.tiles.cut_tiles`), so that a single example can be split.
        spacing: the width of a voxel that NIfTI volumes are brought to, in the order of their
            headers (i, j, k), like ``(1, 1, 2)``; ``"none"`` keeps the voxels as they are. None
            takes the medians where the volumes differ (:mod:`~.spacing`).
        classes: names of the classes that masks or labels give as numbers.
        unlabelled: the value in masks that means "not known", or the colour, ``"#000000"``, which
            also reads palettes by their colours.
        signals: whether each row's numbers in a table are one signal.
        target: columns of a table of signals that are not part of the signal.
        outcomes: False reads the examples alone, to predict them: masks may be missing, and
            folders are not classes.
        shares: True makes shares in [0, 1] of images of 8 bits, as of 16 bits; False reads
            colours of 16 bits at 8; None takes what the files have, and shares where both occur.
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
    how = GridReading.of(**options)
    masks = how.masks
    if isinstance(data, GridTable):
        return _in_tiles(data, how)
    if not is_table(data):
        refuse_given(f"{_called(data)} has no columns of paths", image=how.image)
    if how.signals and _holds_rows(data):
        names = ("size", "channels", "classes", "masks", "unlabelled")
        said = {name: getattr(how, name) for name in names}
        said |= {"pages": how.said_pages, "tiles": how.tiles}
        refuse_given("a row of numbers is one signal as it is", **said)
        return read_signals(data, how.target)
    listing = list_files(data, how)
    if listing is None:
        refuse_given(f"{_called(data)} holds arrays, which have no pages", pages=how.said_pages)
    if listing is not None:
        table = assemble(listing, how)
    elif isinstance(data, str | PathLike):
        table = _read_arrays(str(data), how)
    elif isinstance(data, Mapping):
        arrays = {**data, **({} if masks is None else {"masks": masks})}
        table = from_arrays(arrays, "the arrays", how)
    else:
        is_array = isinstance(data, Grids | np.ndarray | Tensor)
        table = _from_array(data if is_array else np.asarray(data), masks, how)
    if table.masks is None:
        named = listing is not None or table.target is None  # files have names of classes
        said = {"unlabelled": how.unlabelled, "classes": how.classes if named else None}
        refuse_given(f"{table.origin} has no masks", **said)
    return _in_tiles(table, how)


def _in_tiles(table: GridTable, options: GridReading) -> GridTable:
    if options.tiles is None:
        return table
    if table.masks is None:
        refuse_given(f"{table.origin} has no masks", tiles=options.tiles)
    return cut_tiles(table, options.tiles)


def _holds_rows(data: Any) -> bool:
    """Tests whether data can hold a signal in each row."""
    if isinstance(data, str | PathLike):
        path = Path(data)
        is_file = is_idx(path) or is_cifar(path) or path.suffix.lower() in ARRAYS
        is_other = path.is_dir() or is_file or family(path)
        return not is_other and not is_data_set(data)
    return not isinstance(data, Grids | np.ndarray | Tensor)


def _read_arrays(given: str, options: GridReading) -> GridTable:
    """Files that hold all examples, and data sets by name."""
    if is_data_set(given):
        return _data_set(given, options)
    path, masks = Path(given), options.masks
    if path.suffix.lower() == ".npy":
        if isinstance(masks, str | PathLike):
            masks = load_array(checked_path(str(masks)))
        return _from_array(load_array(path), masks, options, given)
    if is_idx(path):
        refuse_given(f"{given} holds images alone", masks=masks)
        return _from_idx(path, options)
    if is_cifar(path):
        refuse_given(f"{given} holds images alone", masks=masks)
        images, codes = read_cifar(read_bytes(path, LIMIT_BYTES), given)
        named = options._replace(classes=options.classes or tuple(CIFAR10), place="first")
        return from_arrays({"x": images, "class": codes}, given, named)
    refuse_given(f"{given} holds its masks itself, as an array 'masks'", masks=masks)
    return from_arrays(load_npz(path, LIMIT_BYTES), given, options)


def _called(data: Any) -> str:
    return str(data) if isinstance(data, str | PathLike) else "what was given"


def _data_set(name: str, options: GridReading) -> GridTable:
    from ansatz.data.registry import load

    found = load(name)
    if found.grids is None:
        raise UsageError(f"data set '{name}' is a table, not images; mnist is one of images.")
    said = {each: getattr(options, each) for each in ("classes", "masks", "unlabelled")}
    refuse_given(f"data set '{name}' is read as published", **said)
    count, *size = found.grids.shape
    odd_size = None if options.size in (None, tuple(size)) else options.size
    odd_count = None if options.channels in (None, count) else options.channels
    shape = " x ".join(map(str, found.grids.shape))
    refuse_given(
        f"data set '{name}' is read as published, {shape}", size=odd_size, channels=odd_count
    )
    target = found.target if isinstance(found.target, str) else None
    frame = found.frame
    if len(found.splits) == 1:
        part = np.full(len(frame), "train", dtype=object)
        part[found.splits[0][1]] = "test"
        frame = frame.assign(split=part)
    return GridTable(name, frame, found.grids, found.masks, [], target)


def _from_array(
    data: Any, masks: Any, options: GridReading, origin: str = "the array"
) -> GridTable:
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


def _from_idx(path: Path, options: GridReading) -> GridTable:
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


def read_signals(data: Any, target: Sequence[str] = ()) -> GridTable:
    """Signals of one channel: the columns of numbers, in their order, that are not targets."""
    origin, notes = "the table", []
    if isinstance(data, str | PathLike):
        from ansatz.data.table import read_table

        table = read_table(data)
        frame, origin, notes = table.frame, table.origin, list(table.notes)
    else:
        frame = as_frame(data)
    there = [name for name in target if name in frame.columns]
    given = frame.drop(columns=there).select_dtypes(["number", "bool"])
    numbers = list(given.columns)
    if len(numbers) < 2:
        raise DataError(f"{origin}: a signal needs at least two columns of numbers.")
    values = frame[numbers].to_numpy(dtype=np.float32)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise DataError(
            f"{origin}, row {row + 1}, column '{numbers[column]}': a gap in a signal. Fill it, or "
            "leave the row out."
        )
    grids = Grids(as_values(values, origin).unsqueeze(1))
    rest = frame.drop(columns=numbers).reset_index(drop=True)
    notes.append(f"{len(numbers)} columns of numbers were read as a signal of one channel.")
    return GridTable(origin, rest, grids, None, notes, there[0] if there else None)


class Each(NamedTuple):
    """One file, or one page of it.

    Args:
        table: of one example; of all examples where data are not files.
        size: (height, width) that the image had where it was brought to another.
        stack: the name of the file that the image is a page of; None for a whole file.
        volume: the NIfTI file of the example.
    """

    table: GridTable
    size: tuple[int, int] | None = None
    stack: str | None = None
    volume: Path | None = None


def read_each(
    data: Any, *, notes: list[str], **reading: Unpack[ReadGridsOptions]
) -> Iterator[Each]:
    """A table for each file, or for each page where pages are images.

    What is not a list of files (arrays, a data set by name) is one table.
    """
    reading["outcomes"] = False
    options = GridReading.of(**reading)
    listing = None if options.signals else list_files(data, options)
    if listing is None:
        table = read_grids(data, **reading)
        notes += table.notes
        yield Each(table)
        return
    notes += listing.notes
    damaged: dict[int, DataError] = {}
    for place, path in enumerate(listing.places):
        try:
            table = assemble(listing.one(place), options._replace(on_corrupt="refuse"))
        except DataError as error:
            if not options.skips:
                raise
            damaged[place] = DataError(str(error).removesuffix(ADVICE))
            continue
        said = [note.replace("1 of 1 images", "some images") for note in table.notes]
        notes += [note for note in said if note not in notes]
        is_fitted = options.size is not None and family(listing.paths[place]) == "image"
        size = look(path, options.limits).size if is_fitted else None
        volume = listing.paths[place] if is_nifti(listing.paths[place]) else None
        yield Each(table, size, _stack_name(listing, place), volume)
    report_damaged(damaged, len(listing.paths), options.skips, notes)


def _stack_name(listing: Listing, place: int) -> str | None:
    """The name of the file that an example is a page of."""
    page = listing.pages[place] if listing.pages else None
    return None if page is None else listing.names[place].removesuffix(f" page {page + 1}")
