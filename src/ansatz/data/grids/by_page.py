"""Files of several pages as examples: one for each page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansatz.data.grids.gather import refuse_or_tell
from ansatz.data.grids.image_file import Limits, opened
from ansatz.data.grids.listing import Listing
from ansatz.errors import DataError

MOST_PAGES = 2**15


def count_pages(path: Path, limits: Limits) -> int:
    """How many pages or frames a file has; none of them is decoded, and a damaged one counts."""
    with opened(path, limits) as image:
        if image.format != "TIFF":
            count = int(getattr(image, "n_frames", 1))
        else:  # whose pages are a chain that may be made endless
            count = _length(image)
    if count > MOST_PAGES:
        raise DataError(f"{path} declares more than {MOST_PAGES:,} pages: not decoded.")
    return count


def by_page(listing: Listing, limits: Limits, *, skip: bool = False) -> Listing:
    """The listing with a row for each page, and a column ``page`` that counts them from 1.

    Args:
        listing: whole files.
        limits: what a file may claim.
        skip: leave out files that cannot be opened, instead of refusing them.
    """
    damaged: dict[int, DataError] = {}
    counts = [_count(listing, place, limits, damaged) for place in range(len(listing.paths))]
    kept = refuse_or_tell(damaged, len(counts), skip, listing.notes)
    if set(counts) == {1}:
        return listing
    rows = [(k, page) for k in kept.tolist() for page in _numbers(counts[k])]
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
            f"{path} has {_text(count)}, its mask {mask} {_text(masks)}: each page needs its mask."
        )
    return count


def _numbers(count: int) -> Iterable[int | None]:
    return [None] if count == 1 else range(count)


def _length(image: Any) -> int:
    """Pages of a TIFF file, up to one that is damaged and leads no further."""
    for number in range(1, MOST_PAGES + 1):
        try:
            image.seek(number)
        except EOFError:
            return number
        except Exception:  # whoever reads this page says what is wrong with it
            return number + 1
    return MOST_PAGES + 1


def _text(count: int) -> str:
    return "one page" if count == 1 else f"{count} pages"
