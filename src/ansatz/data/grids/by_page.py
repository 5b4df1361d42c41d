"""Files of several pages as examples: one for each page."""

from collections.abc import Iterable
from pathlib import Path

from ansatz.data.grids.image_file import Limits, opened
from ansatz.data.grids.listing import Listing
from ansatz.errors import DataError

MOST_PAGES = 2**15


def count_pages(path: Path, limits: Limits) -> int:
    """How many pages or frames a file has; none of them is decoded.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.by_page import count_pages
        >>> from ansatz.data.grids.image_file import Limits
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tif"
        >>> page = Image.new("L", (5, 4))
        >>> page.save(path, save_all=True, append_images=[page, page])
        >>> count_pages(path, Limits())
        3
    """
    with opened(path, limits) as image:
        if image.format != "TIFF":
            count = int(getattr(image, "n_frames", 1))
        else:  # whose pages are a chain that may be made endless
            numbers = range(1, MOST_PAGES + 1)
            count = next((k for k in numbers if not _has_page(image, k)), MOST_PAGES + 1)
    if count > MOST_PAGES:
        raise DataError(f"{path} declares more than {MOST_PAGES:,} pages: not decoded.")
    return count


def by_page(listing: Listing, limits: Limits) -> Listing:
    """The listing with a row for each page, and a column ``page`` that counts them from 1.

    A file that cannot be opened stays one row: whoever reads it says what is wrong with it.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.by_page import by_page
        >>> from ansatz.data.grids.image_file import Limits
        >>> from ansatz.data.grids.listing import Listing
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tif"
        >>> page = Image.new("L", (5, 4))
        >>> page.save(path, save_all=True, append_images=[page])
        >>> by_page(Listing("cells", [path], ["a.tif"], {"image": ["a.tif"]}), Limits()).names
        ['a.tif page 1', 'a.tif page 2']
    """
    counts = [_count(listing, place, limits) for place in range(len(listing.paths))]
    if set(counts) <= {None, 1}:
        return listing
    rows = [(k, page) for k, count in enumerate(counts) for page in _numbers(count)]
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


def _count(listing: Listing, place: int, limits: Limits) -> int | None:
    """Pages of a file, and of its mask; None where one of them cannot be opened."""
    path, mask = listing.paths[place], listing.masks[place] if listing.masks else None
    try:
        count = count_pages(path, limits)
        masks = count if mask is None else count_pages(mask, limits)
    except DataError:
        return None
    if count != masks:
        raise DataError(
            f"{path} has {_text(count)}, its mask {mask} {_text(masks)}: each page needs its mask."
        )
    return count


def _numbers(count: int | None) -> Iterable[int | None]:
    return [None] if count in (None, 1) else range(count)


def _has_page(image: object, number: int) -> bool:
    try:
        image.seek(number)  # type: ignore[attr-defined]
    except EOFError:
        return False
    return True


def _text(count: int) -> str:
    return "one page" if count == 1 else f"{count} pages"
