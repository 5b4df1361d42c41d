"""Files one by one, each at its own size: for what is predicted cell by cell."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.find import list_files
from ansatz.data.grids.gather import ADVICE, refuse_or_tell
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.image import look
from ansatz.data.grids.listing import Listing, family
from ansatz.data.grids.options import Options
from ansatz.data.grids.read import read_grids
from ansatz.data.grids.reading_options import GridOptions
from ansatz.errors import DataError


class Each(NamedTuple):
    """One file, or one page of it.

    Args:
        table: of one example; of all examples where data are no files.
        size: (height, width) that the image had where it was brought to another.
        stack: the name of the file that the image is a page of; None for a whole file.
    """

    table: GridTable
    size: tuple[int, int] | None = None
    stack: str | None = None


def read_each(data: Any, *, notes: list[str], **reading: Unpack[GridOptions]) -> Iterator[Each]:
    """A table for each file, or for each page where pages are images.

    What is not a list of files (arrays, a data set by name) is one table.

    Args:
        data: as of :func:`~ansatz.data.grids.read_grids`.
        notes: takes what was assumed and left out, each sentence once; complete at the end.
        reading: options of :func:`~ansatz.data.grids.read_grids`.
    """
    reading["outcomes"] = False
    options = Options.of(**reading)
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
        yield Each(table, size, _stack(listing, place))
    refuse_or_tell(damaged, len(listing.paths), options.skips, notes)


def _stack(listing: Listing, place: int) -> str | None:
    """The name of the file that an example is a page of."""
    page = listing.pages[place] if listing.pages else None
    return None if page is None else listing.names[place].removesuffix(f" page {page + 1}")
