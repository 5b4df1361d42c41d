"""Files of several pages as volumes: a page is a slice."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ansatz.data.grids.grid_files import GridFiles, in_order
from ansatz.data.grids.image import Look, look
from ansatz.data.grids.image_file import Limits, bombs_are_errors, count_pages, kept_open
from ansatz.data.grids.images import Kind, choose_kind, read_image
from ansatz.data.grids.layout import check_shape
from ansatz.data.grids.listing import Listing
from ansatz.data.grids.mask_files import open_mask, values_of_all
from ansatz.data.grids.masks import class_names, codes_of
from ansatz.data.grids.options import GridReading
from ansatz.data.grids.places import Page
from ansatz.data.grids.volumes import LIMIT_BYTES
from ansatz.errors import DataError

Size = tuple[int, int, int]  # pages, height, width


def look_through(path: Path, limits: Limits) -> list[Look]:
    """Reads the headers of all pages; they must have one size and fit into memory together."""
    count = count_pages(path, limits)
    if count == 1:
        raise DataError(f"{path} has one page, which is not a volume: leave out --pages (pages=).")
    with kept_open():
        found = [look(Page(path, number), limits) for number in range(count)]
    for number, each in enumerate(found):
        if each.size != found[0].size:
            raise DataError(
                f"{Page(path, number)} is {_text(each.size)}, the first {_text(found[0].size)}: "
                "the pages of a volume have one size. As images of their own: --pages images."
            )
    size = sum(math.prod(each.size) * _bytes(each) for each in found)
    if size > LIMIT_BYTES:
        raise DataError(
            f"{path} declares {count} pages of {_text(found[0].size)}, {size:,} bytes, more than "
            f"{LIMIT_BYTES:,}: not decoded."
        )
    return found


def stack_files(
    listing: Listing, options: GridReading, damaged: dict[int, DataError], notes: list[str]
) -> tuple[GridFiles, tuple[GridFiles, tuple[str, ...]] | None]:
    """Files of as many pages of one size, each a volume, and their masks if they have some.

    Like arrays they are never resized; a file of another shape than the first is an odd one.
    """
    size, looks = _one_size(listing.paths, options.limits, damaged)
    names = [f"{listing.names[place]} page {k + 1}" for place in looks for k in range(size[0])]
    seen = [each for place in looks for each in looks[place]]
    kind = choose_kind(
        seen, names, size=size[1:], channels=options.channels, notes=notes, shares=options.shares
    )
    shape = (kind.channels, *size)
    check_shape(shape, None, options.size, str(listing.paths[0]))
    dtype = torch.uint8 if kind.depth == "8 bit" else torch.float32
    read = partial(_read, kind=kind, shape=shape, limits=options.limits)
    files = GridFiles(tuple(listing.paths), tuple(listing.names), read, shape, dtype)
    if not listing.masks:
        return files, None
    what = f"masks like {listing.masks[0].name}"
    opens = partial(_numbers, size=size, limits=options.limits)
    values, colours = values_of_all(opens, listing.masks, what, options.unlabelled, damaged)
    named = class_names(values, options.classes, what)
    numbers = partial(_numbers, colours=colours, size=size, limits=options.limits)
    coded = partial(_coded, values=np.array(values), numbers=numbers)
    masks = tuple(listing.masks)
    return files, (GridFiles(masks, tuple(listing.names), coded, (1, *size), torch.uint8), named)


def _one_size(
    paths: Sequence[Path], limits: Limits, damaged: dict[int, DataError]
) -> tuple[Size, dict[int, list[Look]]]:
    """The first stack's size, and what is seen in the stacks that have it."""

    def attempt(path: Path) -> list[Look] | DataError:
        try:
            return look_through(path, limits)
        except DataError as error:
            return error

    size: Size | None = None
    found: dict[int, list[Look]] = {}
    with bombs_are_errors():
        for place, seen in enumerate(in_order(attempt, paths)):
            if isinstance(seen, DataError):
                damaged[place] = seen
                continue
            own = (len(seen), *seen[0].size)
            size = size or own
            if own == size:
                found[place] = seen
            else:
                damaged[place] = _odd(paths[place], own, size, "the first file")
    if size is None:
        raise damaged[min(damaged)]
    return size, found


def _read(path: Path, kind: Kind, shape: tuple[int, ...], limits: Limits) -> np.ndarray:
    """``(C, D, H, W)``."""
    made = np.empty(shape, np.uint8 if kind.depth == "8 bit" else np.float32)
    with kept_open():
        for number in range(shape[1]):
            made[:, number] = read_image(Page(path, number), kind, limits)
    return made


def _numbers(path: Path, colours: bool, size: Size, limits: Limits) -> np.ndarray:
    """``(D, H, W)`` whole numbers of a mask, which has the size of its volume."""
    seen = look_through(path, limits)
    own = (len(seen), *seen[0].size)
    if own != size:
        raise _odd(path, own, size, "its volume")
    with kept_open():
        pages = [open_mask(Page(path, k), limits, colours=colours) for k in range(size[0])]
    return np.stack(pages)


def _coded(path: Path, values: np.ndarray, numbers: Callable[[Path], np.ndarray]) -> np.ndarray:
    """``(1, D, H, W)`` uint8 codes; 255 for what is not a class."""
    return codes_of(numbers(path), values)[None]


def _bytes(seen: Look) -> int:
    """Of a decoded pixel."""
    return (3 if seen.is_colour else 1) * (1 if seen.depth == "8 bit" else 4)


def _odd(path: Path, own: Size, size: Size, other: str) -> DataError:
    return DataError(
        f"{path} has {own[0]} pages of {_text(own[1:])}, {other} {size[0]} of {_text(size[1:])}: "
        "volumes keep one shape."
    )


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
