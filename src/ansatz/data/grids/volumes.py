"""Array files as grids, one example each: .npy and NIfTI."""

from functools import partial
from pathlib import Path

import numpy as np
import torch

from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.image_file import check_file
from ansatz.data.grids.layout import Channels, as_values, channels_first, check_shape
from ansatz.data.grids.listing import Listing
from ansatz.data.grids.masks import class_names, codes_of, refuse_colour, values_in
from ansatz.data.grids.nifti import read_nifti
from ansatz.data.grids.options import GridReading
from ansatz.data.grids.spacing import Spacing, common_spacing
from ansatz.errors import DataError
from ansatz.storage.decoding import decoding

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
    """Array files of one shape, and their masks if they have some.

    Arrays are never resized, but volumes are brought to one spacing (:mod:`~.spacing`).
    """
    first = _first(listing.paths, damaged)
    place, count = _place(first, listing.paths[0], options), options.channels
    grid = _as_grid(first, place, listing.paths[0], count)
    spacing = common_spacing(listing, options, damaged, notes)
    if spacing is None:
        check_shape(grid.shape, options.channels, options.size, str(listing.paths[0]))
        shape = grid.shape
    else:
        check_shape(grid.shape, options.channels, None, str(listing.paths[0]))
        shape = (grid.shape[0], *spacing.size)
    dtype = torch.uint8 if first.dtype == np.uint8 else torch.float32
    read = partial(_read, place=place, count=count, shape=shape, dtype=dtype, spacing=spacing)
    common = None if spacing is None else spacing.common
    paths, names = tuple(listing.paths), tuple(listing.names)
    files = GridFiles(paths, names, read, shape, dtype, spacing=common)
    if not listing.masks:
        return files, None
    refuse_colour(options.unlabelled, f"masks like {listing.masks[0].name}")
    found = _values(listing, damaged) - {options.unlabelled}
    if not found and damaged:
        raise damaged[min(damaged)]
    values = sorted(value for value in found if value >= 0)
    named = class_names(values, options.classes, f"masks like {listing.masks[0].name}")
    coded = partial(_coded, values=np.array(values), size=shape[1:], spacing=spacing)
    masks = GridFiles(tuple(listing.masks), names, coded, (1, *shape[1:]), torch.uint8)
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
    path: Path,
    place: Channels,
    count: int | None,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    spacing: Spacing | None,
) -> np.ndarray:
    grid = _as_grid(load_array(path), place, path, count)
    if dtype == torch.uint8 and grid.dtype != np.uint8:
        raise DataError(f"{path} holds {grid.dtype} numbers, the first file bytes: give one kind.")
    if spacing is not None and grid.shape[0] == shape[0]:
        grid = spacing.values(grid, path)
    if grid.shape != shape:
        raise DataError(f"{path} has shape {grid.shape}, the first file {shape}: arrays keep one.")
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


def _coded(
    path: Path, values: np.ndarray, size: tuple[int, ...], spacing: Spacing | None
) -> np.ndarray:
    numbers = _numbers(path)
    own = size if spacing is None else spacing.places[path].size
    if numbers.shape != own:
        raise DataError(f"{path} has size {numbers.shape}, its example {own}: they must agree.")
    codes = codes_of(numbers, values)[None]
    return codes if spacing is None else spacing.codes(codes, path)
