"""Lists the files that hold the examples, before any of them is read."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ansatz.data.files import checked_path
from ansatz.data.grids.arrays import is_cifar, is_idx
from ansatz.data.grids.folder import list_folder, list_inputs
from ansatz.data.grids.image_file import Limits, count_pages
from ansatz.data.grids.listing import Listing, family, report_damaged
from ansatz.data.grids.options import GridReading, refuse_given
from ansatz.data.grids.path_table import list_table
from ansatz.errors import DataError, UsageError

ARRAYS = (".npz", ".npy")  # files of many examples
_TABLES = frozenset(".csv .tsv .txt .parquet .pq .arrow .feather .ipc".split())


def list_files(data: Any, options: GridReading) -> Listing | None:
    """The files that hold one example each; None where data are arrays or a data set's name."""
    listing = _list(data, options, options.image, options.masks)
    if listing is None or not _are_images(listing):
        return listing
    if options.pages == "images":
        return by_page(listing, options.limits, skip=options.skips)
    if options.pages != "auto" or not is_image_file(data) or not listing.masks:
        return listing
    found = by_page(listing, options.limits, skip=options.skips)
    if found.pages:
        found.notes.append(
            f"the {len(found.pages)} pages of {listing.names[0]} and of its masks were read as "
            "images of their own (--pages images)."
        )
    return found


def is_image_file(data: Any) -> bool:
    """Tests whether data are the path of one image file, by its name."""
    is_path = isinstance(data, str | PathLike)
    return is_path and family(Path(data)) == "image" and not Path(data).is_dir()


def is_table(data: Any) -> bool:
    """Tests whether data are a table that may name files: a frame, or a file called like one."""
    if not isinstance(data, str | PathLike):
        return hasattr(data, "columns")
    name = str(data).lower().removesuffix(".gz")
    return Path(name).suffix in _TABLES and not Path(data).is_dir()


def is_data_set(data: Any) -> bool:
    """Tests whether data are the name of a data set, and no file or folder is called so."""
    from ansatz.data.registry import names

    return isinstance(data, str) and data in names() and not Path(data).exists()


def _list(data: Any, options: GridReading, image: str | None, masks: Any) -> Listing | None:
    if isinstance(data, str | PathLike):
        return _list_path(str(data), options, image, masks)
    if hasattr(data, "columns"):
        return list_table(data, "the table", Path(), image, masks, outcomes=options.outcomes)
    if isinstance(data, Sequence) and data and isinstance(data[0], str | PathLike):
        return _from_paths(data, masks)
    return None


def _are_images(listing: Listing) -> bool:
    return all(family(path) == "image" for path in (*listing.paths, *listing.masks))


def _list_path(given: str, options: GridReading, image: str | None, masks: Any) -> Listing | None:
    if is_data_set(given):
        return None
    path = Path(given)
    if path.is_dir():
        beside = None if masks is None else _mask_folder(path, masks)
        if not options.outcomes:
            return list_inputs(path, beside)
        return list_folder(path, beside, skip=options.skips)
    path = checked_path(given)
    if is_idx(path) or is_cifar(path) or path.suffix.lower() in ARRAYS:
        return None
    if family(path):
        return _one_file(path, given, options, masks)
    if is_table(path):
        from ansatz.data.table import read_table

        table = read_table(path)
        outcomes = options.outcomes
        listing = list_table(table.frame, given, path.parent, image, masks, outcomes=outcomes)
        listing.notes += table.notes
        return listing
    raise DataError(
        f"{given}: {path.suffix.lower() or path.name} files hold no images that are read. Give a "
        "folder, .npz, .npy, NIfTI, IDX, or a table with a column of paths."
    )


def _one_file(path: Path, given: str, options: GridReading, masks: Any) -> Listing:
    listing = Listing(given, [path], [path.name], {"image": [path.name]})
    if masks is None or not options.outcomes:
        return listing
    if not (is_image_file(path) and is_image_file(masks)):
        why = f"{given} is a single file; its masks are an image file with as many pages"
        refuse_given(why, masks=masks)
    beside = path.parent / masks
    found = beside if beside.is_file() and not Path(masks).is_file() else masks
    listing.masks, listing.target = [checked_path(str(found))], "mask"
    return listing


def _mask_folder(folder: Path, masks: Any) -> Path:
    if not isinstance(masks, str | PathLike):
        raise UsageError(f"masks of a folder are a folder, got {type(masks).__name__}.")
    inside = folder / masks
    found = inside if inside.is_dir() else Path(masks)
    if found.resolve() == folder.resolve():
        raise UsageError(
            f"--masks {masks} is the folder of the images: each would be its own mask. Leave it "
            "out where masks lie beside their images (1_mask.png beside 1.png): they are found; or "
            "put them into a folder of their own."
        )
    return found


def _from_paths(data: Sequence[Any], masks: Any) -> Listing:
    paths = [Path(each) for each in data]
    names = [str(each) for each in data]
    listing = Listing("the list of files", paths, names, {"image": list(names)})
    if masks is not None:
        listing.masks, listing.target = [Path(each) for each in masks], "mask"
        if len(listing.masks) != len(paths):
            raise UsageError(f"{len(paths)} images and {len(listing.masks)} masks.")
    return listing


def by_page(listing: Listing, limits: Limits, *, skip: bool = False) -> Listing:
    """The listing with a row for each page, and a column ``page`` that counts them from 1."""
    damaged: dict[int, DataError] = {}
    counts = [_count(listing, place, limits, damaged) for place in range(len(listing.paths))]
    kept = report_damaged(damaged, len(counts), skip, listing.notes)
    if set(counts) == {1}:
        return listing
    rows = [(k, page) for k in kept.tolist() for page in _page_numbers(counts[k])]
    columns = {name: [cells[k] for k, _ in rows] for name, cells in listing.columns.items()}
    return Listing(
        listing.origin,
        [listing.paths[k] for k, _ in rows],
        [listing.names[k] + ("" if page is None else f" page {page + 1}") for k, page in rows],
        {"page": [1 + (page or 0) for _, page in rows], **columns},
        [listing.masks[k] for k, _ in rows] if listing.masks else [],
        listing.notes,
        listing.target,
        [page for _, page in rows],
    )


def _count(listing: Listing, place: int, limits: Limits, damaged: dict[int, DataError]) -> int:
    """Pages of a file, and of its mask."""
    path, mask = listing.paths[place], listing.masks[place] if listing.masks else None
    try:
        count = count_pages(path, limits)
        masks = count if mask is None else count_pages(mask, limits)
    except DataError as error:
        damaged[place] = error
        return 0
    if count != masks:
        raise DataError(
            f"{path} has {_page_text(count)}, its mask {mask} {_page_text(masks)}: each page needs "
            "its mask."
        )
    return count


def _page_numbers(count: int) -> Iterable[int | None]:
    return [None] if count == 1 else range(count)


def _page_text(count: int) -> str:
    return "one page" if count == 1 else f"{count} pages"
