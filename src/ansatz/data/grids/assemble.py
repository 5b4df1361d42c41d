"""Reads a list of files into grids with their table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.grid_files import GridFiles, in_runs
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.grids import Grids, digest
from ansatz.data.grids.image import FIRST_PAGE, Look
from ansatz.data.grids.image_file import bombs_are_errors
from ansatz.data.grids.images import choose_kind, image_files, look_at
from ansatz.data.grids.listing import Listing, family, report_damaged
from ansatz.data.grids.mask_files import mask_files
from ansatz.data.grids.masks import Masks
from ansatz.data.grids.options import GridReading, refuse_given
from ansatz.data.grids.stacks import stack_files
from ansatz.data.grids.volumes import array_files
from ansatz.errors import DataError, ResourceError, UsageError

_LARGE = 1024 * 1024  # pixels


def assemble(listing: Listing, options: GridReading) -> GridTable:
    """Looks at all files, chooses what they become, reads them, leaves out what is damaged."""
    import pandas as pd

    own = next((a for a, b in zip(listing.paths, listing.masks, strict=False) if a == b), None)
    if own is not None:
        raise UsageError(f"{own} would be its own mask: --masks (masks=) are other files.")
    known = [path for path in listing.paths if family(path)]  # others: ids that led nowhere
    families = {family(path) for path in known}
    if len(families) > 1:
        odd = next(path for path in known if family(path) != family(known[0]))
        raise DataError(f"{listing.origin}: {odd.name} beside {known[0].name}: give one.")
    damaged: dict[int, DataError] = {}
    notes = list(listing.notes)
    files, coded = _choose(families, listing, options, damaged, notes)
    known_before = len(damaged)
    store = gather(files, options.memory, damaged)
    cells = None if coded is None else gather(coded[0], options.memory, damaged)
    if options.skips and known_before < len(damaged) < len(listing.paths):
        # What only decoding found out: such a file has no say in what the others become.
        chosen, notes = _kind(files, coded), list(listing.notes)
        files, coded = _choose(families, listing, options, damaged, notes)
        if _kind(files, coded) != chosen:
            store = gather(files, options.memory, damaged)
            cells = None if coded is None else gather(coded[0], options.memory, damaged)
    kept = report_damaged(damaged, len(listing.paths), options.skips, notes)
    if isinstance(store, GridFiles):
        notes.append(_from_files(Grids(files), options))
    frame = pd.DataFrame(listing.columns, index=range(len(listing.paths)))
    frame = frame.iloc[kept].reset_index(drop=True)
    masks = None
    if coded is not None and cells is not None:
        masks = Masks(_rows(cells, kept), [listing.names[k] for k in kept], coded[1])
    named = [listing.names[k] for k in kept]
    grids = Grids(_rows(store, kept), named, spacing=files.spacing)
    return GridTable(listing.origin, frame, grids, masks, notes, listing.target)


Coded = tuple[GridFiles, tuple[str, ...]] | None  # mask files and the names of their classes


def _choose(
    families: set[Any],
    listing: Listing,
    options: GridReading,
    damaged: dict[int, DataError],
    notes: list[str],
) -> tuple[GridFiles, Coded]:
    """Chooses what the files become, by those that are not known to be damaged."""
    if families == {"array"}:
        refuse_given(
            f"{listing.origin} holds arrays, which have no pages", pages=options.said_pages
        )
        return array_files(listing, options, damaged, notes)
    if options.pages == "volume":
        return stack_files(listing, options, damaged, notes)
    return _images(listing, options, damaged, notes)


def _kind(files: GridFiles, coded: Coded) -> tuple[Any, ...]:
    return files.shape, files.dtype, None if coded is None else coded[1]


def _images(
    listing: Listing, options: GridReading, damaged: dict[int, DataError], notes: list[str]
) -> tuple[GridFiles, Coded]:
    looks = look_at(listing.places, options.limits, damaged)
    if listing.masks:
        _compare_sizes(listing, looks, options, damaged)
    places = [k for k, each in enumerate(looks) if each is not None and k not in damaged]
    if not places or (damaged and not options.skips):
        report_damaged(damaged, len(looks), options.skips, notes)
    seen = [each for k in places if (each := looks[k]) is not None]
    if options.pages == "first":
        seen = [_without(each, FIRST_PAGE) for each in seen]
    kind = choose_kind(
        seen,
        [listing.names[k] for k in places],
        size=options.image_size,
        channels=options.channels,
        notes=notes,
        shares=options.shares,
    )
    if math.prod(kind.size) > _LARGE:
        notes.append(
            f"images of {kind.size[0]} x {kind.size[1]} take long to train on: --size "
            "(size=) reads them smaller."
        )
    files = image_files(listing.places, listing.names, kind, options.limits)
    if not listing.masks:
        return files, None
    coded = mask_files(
        listing.mask_places,
        listing.names,
        kind.size,
        options.limits,
        classes=options.classes,
        unlabelled=options.unlabelled,
        damaged=damaged,
    )
    if any(each.size != kind.size for each in seen):
        notes.append("masks were scaled alike (nearest pixel); around them no class is known.")
    return files, coded


def _compare_sizes(
    listing: Listing,
    looks: Sequence[Look | None],
    options: GridReading,
    damaged: dict[int, DataError],
) -> None:
    """A mask has the size of its image."""
    odd: dict[int, DataError] = {}
    for place, mask in enumerate(look_at(listing.mask_places, options.limits, odd)):
        image = looks[place]
        if place in odd:
            damaged.setdefault(place, odd[place])
        elif image is not None and mask is not None and mask.size != image.size:
            (height, width), (h, w) = mask.size, image.size
            damaged[place] = DataError(
                f"{listing.mask_places[place]} is {height} x {width}, its image "
                f"{listing.names[place]} {h} x {w}: a mask has the size of its image."
            )


def _without(seen: Look, remark: str) -> Look:
    return seen._replace(remarks=tuple(each for each in seen.remarks if each != remark))


def _rows(store: Tensor | GridFiles, kept: np.ndarray) -> Tensor | GridFiles:
    if isinstance(store, GridFiles):
        return store.select(kept)
    return store if len(kept) == len(store) else store[kept]


def _from_files(grids: Grids, options: GridReading) -> str:
    if options.memory <= 1:  # --stream
        return "the examples are read from their files as they are needed."
    said = "a quarter of what is free" if options.memory_limit is None else "the limit"
    return (
        f"the decoded examples would take {_size(grids.nbytes)}, more than {said} "
        f"({_size(options.memory)}): they are read from their files as they are needed."
    )


def _size(count: int) -> str:
    unit, name = next((u for u in ((2**30, "GB"), (2**20, "MB")) if count >= u[0]), (2**10, "KB"))
    return f"{count / unit:.3g} {name}"


def gather(files: GridFiles, memory: int, damaged: dict[int, DataError]) -> Tensor | GridFiles:
    """A tensor of all files if it takes at most ``memory`` bytes, else the files with digests."""

    def attempt(place: int) -> np.ndarray | DataError:
        try:
            return files.read(files.paths[place])
        except DataError as error:
            return error

    count = len(files.paths)
    size = count * math.prod(files.shape) * files.dtype.itemsize
    fits = size <= memory
    made = _allocated((count, *files.shape), files.dtype, size) if fits else torch.empty(0)
    kept = made.numpy()
    digests = np.zeros(count, np.uint64)
    places = [place for place in range(count) if place not in damaged]
    with bombs_are_errors():
        arrays = in_runs(attempt, places, files.paths, ahead=files.ahead)
        for place, found in zip(places, arrays, strict=True):
            if isinstance(found, DataError):
                damaged[place] = found
            elif fits:
                kept[place] = found
            else:
                digests[place] = digest(found)
    return made if fits else files._replace(digests=digests)


def _allocated(shape: tuple[int, ...], dtype: torch.dtype, size: int) -> Tensor:
    try:
        return torch.empty(shape, dtype=dtype)
    except RuntimeError:
        raise ResourceError(
            f"the decoded examples take {size / 2**30:.1f} GB, which are not free. "
            "Read them smaller (--size) or from their files (--memory-limit)."
        ) from None
